"""Polars programs: lazy frames, read and rewritten through the form in which Polars serialises them."""
