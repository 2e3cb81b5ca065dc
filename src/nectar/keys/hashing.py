"""How many threads BLAKE3 may use: all there are, but one after a fork."""

from __future__ import annotations

import os

import blake3

_threads = blake3.blake3.AUTO


def threads_for(size: int, parallel_from: int) -> int:
    """Threads to hash so many bytes with."""
    return _threads if size >= parallel_from else 1


def _stay_single() -> None:
    """After a fork the hash function's threads are gone, and waiting for them would never end."""
    global _threads
    _threads = 1


if hasattr(os, "register_at_fork"):  # systems without fork have no such function
    os.register_at_fork(after_in_child=_stay_single)
