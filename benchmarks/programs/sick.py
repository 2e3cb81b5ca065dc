"""A function that takes some milliseconds, for benchmarks/sick.py."""

from __future__ import annotations


def worked(number: int, size: int) -> int:
    """A sum that takes as long as `size` says."""
    total = 0
    for each in range(size):
        total += each * number
    return total
