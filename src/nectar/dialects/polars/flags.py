"""With which optimisations of Polars a query runs: part of its key, because they decide what is computed at all.

A step that nobody needs is left out by some of them, and with it the error that it would raise. No two sets are taken
for the same: those that Polars' eager methods use raise where the usual ones answer, too.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

_USUAL: Final[Any] = pl.QueryOptFlags()._pyoptflags
_NAMES: Final = [name for name in dir(_USUAL) if isinstance(getattr(_USUAL, name), bool)]


def flags_of(optimizations: pl.QueryOptFlags) -> str:
    """The names of the optimisations that are on, after a word; empty for those that are usual."""
    found = _names(optimizations._pyoptflags)
    return "" if found == _names(_USUAL) else " ".join(["flags", *found])


def optimizations_of(flags: str) -> pl.QueryOptFlags:
    """The optimisations that `flags_of` gave these names to."""
    made = pl.QueryOptFlags()
    for name in _NAMES if flags else ():
        setattr(made._pyoptflags, name, name in flags.split()[1:])
    return made


def _names(inner: Any) -> list[str]:
    return [name for name in _NAMES if getattr(inner, name)]
