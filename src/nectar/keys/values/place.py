"""Puts the place into errors raised by code that does not know where the walk stands."""

from __future__ import annotations

import functools
from typing import Final

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext

HERE: Final = "(here)"


def placed(table: dict[type, Expander]) -> dict[type, Expander]:
    """The same expanders; an UnencodableError at HERE comes out with the walk's own path."""
    known: dict[Expander, Expander] = {}
    return {kind: known.setdefault(expander, _placed(expander)) for kind, expander in table.items()}


def _placed(expander: Expander) -> Expander:
    @functools.wraps(expander)
    def expand(value: object, walk: WalkContext) -> Expansion:
        try:
            return expander(value, walk)
        except UnencodableError as error:
            if error.path != HERE:
                raise
            raise UnencodableError(error.what, walk.path(), error.reason) from None

    return expand
