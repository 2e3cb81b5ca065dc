"""Requests to a server that are Nectar's own, and no program's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_own: Final[ContextVar[bool]] = ContextVar("nectar_own_request", default=False)


@contextmanager
def of_our_own() -> Iterator[None]:
    """Requests that are made within are no program's: nothing is looked up or kept for them."""
    token = _own.set(True)
    try:
        yield
    finally:
        _own.reset(token)


def is_our_own() -> bool:
    """Whether the request that is being made is no program's."""
    return _own.get()
