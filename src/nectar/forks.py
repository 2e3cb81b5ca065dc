"""What Nectar does around a fork: registered here and nowhere else, and done in one order.

A child has the memory of its parent and one of its threads. What the others held or were doing is nobody's there. Law:
two threads may fork at once, so whoever notes something before a fork notes it for its own thread, and gives back
nothing but its own; and what fails in one place is no reason to leave out another.
"""

from __future__ import annotations

# Its hook takes a lock that is needed to load modules of Nectar, for which ours wait. The last to register comes first.
import logging  # noqa: F401
import os
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, TypeVar

_Hook = TypeVar("_Hook", bound=Callable[[], object])


class Stage(IntEnum):
    """When something is done before a fork. Last comes what only looks, and holds nothing of others back."""

    PREPARE = 0  # children find at hand what each would make for itself
    STOP = 1  # other threads do not begin with what no child could end
    WAIT = 2  # other threads have ended what no child could


_before: Final[list[tuple[Stage, Callable[[], object]]]] = []
_in_parent: Final[list[Callable[[], object]]] = []
_in_child: Final[list[Callable[[], object]]] = []


def before(stage: Stage) -> Callable[[_Hook], _Hook]:
    """What is decorated is done by each thread that is about to fork."""

    def registered(hook: _Hook) -> _Hook:
        _before.append((stage, hook))
        _before.sort(key=lambda each: each[0])
        return hook

    return registered


def in_parent(hook: _Hook) -> _Hook:
    """From now on this is done by each thread that has forked, or could not."""
    _in_parent.append(hook)
    return hook


def in_child(hook: _Hook) -> _Hook:
    """From now on this is done in each child, after what those have registered whom its module imports."""
    _in_child.append(hook)
    return hook


def _do(hooks: Iterable[Callable[[], object]]) -> None:
    failures: list[BaseException] = []
    for hook in tuple(hooks):
        try:
            hook()
        except BaseException as failure:
            failures.append(failure)
    if failures:
        raise failures[0]  # Python says so, and goes on


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=lambda: _do(hook for _, hook in _before),
        after_in_parent=lambda: _do(_in_parent),
        after_in_child=lambda: _do(_in_child),
    )
