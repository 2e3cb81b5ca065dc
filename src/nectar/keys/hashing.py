"""How many threads BLAKE3 may use: all there are, but one after a fork."""

from __future__ import annotations

import blake3

from nectar.forks import in_child

_threads = blake3.blake3.AUTO


def threads_for(size: int, parallel_from: int) -> int:
    """Threads to hash so many bytes with."""
    return _threads if size >= parallel_from else 1


@in_child
def _stay_single() -> None:
    """After a fork the hash function's threads are gone, and waiting for them would never end."""
    global _threads
    _threads = 1
