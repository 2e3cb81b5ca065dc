"""Spark programs on Sail, embedded: taken apart as they are sent, keyed, and answered with what is known."""
