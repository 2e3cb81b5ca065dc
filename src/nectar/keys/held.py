"""What was there when something was looked at, to be compared with what is there later: quick, because every walk asks.

In: a namespace and names, or an object that was taken apart. Out: whether the same is still there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nectar.keys.atoms import ATOMS
from nectar.keys.expansion import Expander, Expansion, WalkContext


class Held:
    """The objects under some names of a namespace at one moment, and the names under which there was none."""

    __slots__ = ("_absent", "_get", "_then")

    def __init__(self, space: Mapping[str, Any], names: Iterable[str]) -> None:
        wanted = tuple(names)
        present = [name for name in wanted if name in space]
        self._absent = tuple(name for name in wanted if name not in space)
        # twice, because for a single name no tuple is made
        self._get: Callable[[Any], tuple[Any, ...]] = (
            operator.itemgetter(present[0], *present) if present else lambda _: ()
        )
        self._then = self._get(space)

    def is_still_in(self, space: Mapping[str, Any]) -> bool:
        """Whether the very same objects are there, and nothing where nothing was."""
        try:
            now = self._get(space)
        except KeyError:
            return False
        return all(map(operator.is_, now, self._then)) and not any(map(space.__contains__, self._absent))


class ByExpanding:
    """Expands again and compares; for objects whose expander gives no cheaper way."""

    __slots__ = ("expander", "expansion", "value", "walk")

    def __init__(self, expander: Expander, value: object, expansion: Expansion, walk: WalkContext) -> None:
        self.expander = expander
        self.value = value
        self.expansion = expansion
        self.walk = walk

    def __call__(self) -> bool:
        """Whether it gives the same."""
        old = self.expansion
        new = self.expander(self.value, self.walk)
        return (
            new.tag == old.tag
            and new.payload == old.payload
            and len(new.children) == len(old.children)
            and all(_same(a, b) for a, b in zip(new.children, old.children, strict=True))
            and len(new.buffers) == len(old.buffers) == 0
        )


def _same(new: object, old: object) -> bool:
    if new is old:
        return True
    atom = ATOMS.get(type(new))
    return atom is not None and type(new) is type(old) and atom(new) == atom(old)
