"""Loading what Nectar needs next: the program waits, and so it is accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from nectar.overhead.garbage import take_seconds, uncollected
from nectar.overhead.steering import Steering

_NOTICED: Final = 1e-3  # seconds that are worth an entry in the account


@contextmanager
def loading(steering: Steering | None, module: str = "") -> Iterator[None]:
    """What the block takes is Nectar's time, spent on starting. steering: of whom; None if there is no account yet.

    module: what looks at queries, if the block loads that; later processes know how long it takes.
    """
    begun = 0.0 if steering is None else steering.timer()
    with uncollected():
        yield
    if steering is not None:
        take_seconds()  # they are the same
        seconds = steering.timer() - begun
        if seconds > _NOTICED:
            steering.ledger.spend("starting", seconds)
        if module:
            steering.loaded(module, seconds)
