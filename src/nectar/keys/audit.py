"""The audit hook of the process: one for all who ask what the interpreter does.

In: events of the interpreter, in the thread that acts. Out: calls of who listens to them. Law: an event that nobody
listens to costs one look into a dict. A hook cannot be removed, so it is there only once somebody listens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

Listener = Callable[[tuple[Any, ...]], None]
_listeners: Final[dict[str, Listener]] = {}
_is_installed = False


def listen(listeners: Mapping[str, Listener]) -> None:
    """From now on these are called with the arguments of their events; they must not fail. Each event has one."""
    global _is_installed
    taken = _listeners.keys() & listeners.keys()
    assert not taken, f"somebody listens to {sorted(taken)}"
    _listeners.update(listeners)
    if not _is_installed:
        _is_installed = True
        sys.addaudithook(_heard)


def _heard(event: str, args: tuple[Any, ...]) -> None:
    listener = _listeners.get(event)
    if listener is not None:
        listener(args)
