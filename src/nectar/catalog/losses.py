"""What becomes of results that turn out to be gone or damaged: they are evicted, to be computed anew when asked for.

Law: nothing stays that was made from a result whose bytes are others, as far as provenance knows. Not even what was
made before the damage was seen is spared: nobody knows since when it was there.
"""

from __future__ import annotations

from typing import Final

from nectar.catalog.index.base import Index
from nectar.clock import Clock
from nectar.errors import CatalogFailure, DamagedRecipeError
from nectar.model.entry import Entry
from nectar.store.problem import Problem
from nectar.trust.secrets import logger

_log: Final = logger("nectar.catalog")


class Losses:
    """Evicts what is lost. Whatever goes wrong with the catalog, nobody fails because of it."""

    def __init__(self, index: Index, clock: Clock, read_only: bool) -> None:
        self._index, self._clock, self._read_only = index, clock, read_only

    def gone(self, entry: Entry, reason: str) -> None:
        """The entry is evicted."""
        try:
            known = self._read_only or self._index.lose(entry, self._clock.now())
        except CatalogFailure as failure:
            known, reason = True, f"{reason}; {failure}"
        if known:  # otherwise somebody evicted it meanwhile, and that is no loss
            _log.warning("the result %s is lost and computed anew when asked for: %s", entry.key.hex()[:12], reason)

    def damaged(self, entry: Entry, problem: Problem) -> None:
        """The entry is evicted, and with it what was made from it, which may be wrong.

        Bytes that cannot be read have made nothing wrong: who read them before has read what was verified.
        """
        self.gone(entry, f"{problem.reason} ({problem.part})")
        if problem.what != "unreadable":
            self.derived_from(entry)

    def derived_from(self, entry: Entry) -> None:
        """What was made from a damaged result is evicted, whatever protects it."""
        if self._read_only:
            return
        try:
            derived = self._index.lose_derived(entry.key, self._clock.now())
        except CatalogFailure as failure:
            _log.warning("what was made from the damaged result %s may be wrong: %s", entry.key.hex()[:12], failure)
            return
        if derived:
            told = "%d results that were made from %s are computed anew when asked for, since it is damaged"
            _log.warning(told, len(derived), entry.key.hex()[:12])


def whole_recipe(index: Index, identity: bytes) -> list[bytes] | None:
    """The parts of a recipe; None if there is none, or none that is as it was written."""
    try:
        return index.get_recipe(identity)
    except DamagedRecipeError as failure:
        _log.warning("%s", failure)
        return None
