"""Results that this process finds again and again, as they were opened: small ones, which lie in the catalog itself.

In: keys. Out: entries and results, without looking them up, as long as nobody has written to the catalog. Law: what the
catalog is at is asked *before* a result is looked up, so that one is remembered with a state in which it was there;
what has been written since, by whoever, may have been that it is gone.

To ask takes a quarter of a look-up, so it is not done for what is asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, NamedTuple

from nectar.errors import CatalogUnavailableError

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.catalog.uses import Uses
    from nectar.model.entry import Entry
    from nectar.store.read import Result

_MOST_KEYS: Final = 4096  # that were asked for
_MOST_BYTES: Final = 4 << 20  # of results


class Remembered(NamedTuple):
    """A result, and the state of the catalog before it was looked up."""

    state: Hashable
    entry: Entry
    result: Result


class Recent:
    """Of one catalog. Threads may use it beside each other: what one forgets another looks up."""

    def __init__(self, index: Index, uses: Uses, counted: Callable[[], object]) -> None:
        self._index, self._uses, self._counted = index, uses, counted
        self._asked: set[bytes] = set()
        self._known: dict[bytes, Remembered] = {}
        self._size = 0

    def state(self, key: bytes) -> Hashable | None:
        """What the catalog is at now; None for a key that was not asked for before, and where there is no telling."""
        if key not in self._asked:
            if len(self._asked) >= _MOST_KEYS:
                self._asked.clear()
            self._asked.add(key)
            return None
        try:
            return self._index.version()
        except CatalogUnavailableError:
            return None

    def find(self, key: bytes, state: Hashable) -> Remembered | None:
        """A result that was looked up in this very state."""
        known = self._known.get(key)
        return known if known is not None and known.state == state else None

    def found(self, key: bytes, state: Hashable | None, entry: Entry, result: Result) -> None:
        """It was looked up after the catalog was in this state."""
        if state is None or entry.inline is None:
            return
        if key not in self._known:
            if self._size + entry.size > _MOST_BYTES:
                self._known.clear()
                self._size = 0
            self._size += entry.size
        self._known[key] = Remembered(state, entry, result)

    def used(self, key: bytes, program: bytes) -> None:
        """A result was found here: it counts like any other."""
        self._uses.looked_up((program,), {})
        self._uses.used(key)
        self._counted()
