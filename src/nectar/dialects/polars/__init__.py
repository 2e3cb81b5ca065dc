"""Polars programs: lazy frames, read and rewritten through the form in which Polars serialises them."""

# Before any module of this package: Nectar may be waiting for Polars, to hook into it with these modules, and cannot
# while one of them is still being imported.
import polars as polars
