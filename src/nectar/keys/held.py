"""What a namespace holds under some names, to be compared with what it holds later: quick, because every walk asks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any


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
