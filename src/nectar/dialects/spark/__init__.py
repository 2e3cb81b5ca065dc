"""Spark programs on Sail or Spark: taken apart as they are sent, keyed, and answered with what is known."""
