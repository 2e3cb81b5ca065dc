"""An index that a program does not wait for when it does not answer.

In: an index, and the health of its catalog. Out: the same index; what running programs ask it is asked through the
health. What people ask for by name (a version, a lineage, a deletion) is waited for as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nectar.catalog.state import Granted
from nectar.errors import CatalogUnavailableError

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.waiting.health import Health

_READS: Final = frozenset({
    "contents", "inquire", "lengths", "lookup", "lookups", "observed", "reservations", "usage", "versions",
})  # fmt: skip
_WRITES: Final = frozenset({
    "abandon", "add", "add_observed", "add_version", "announce", "count_lookups", "drop_leases", "lose", "lose_derived",
    "put_leases", "record", "record_source", "release_reservation", "remember_contents", "remember_lengths", "reserve",
    "supersede", "touch",
})  # fmt: skip


class GuardedIndex:
    """An index whose calls by running programs take a moment at most."""

    def __init__(self, index: Index, health: Health) -> None:
        self._index, self._health = index, health
        health.probe_with(partial(index.lookups, [b""]), index.try_writing)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._index, name)
        if name in _READS or name in _WRITES:
            found = self._guarded(name, found)
            setattr(self, name, found)
        return found

    def _guarded(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        health, reads = self._health, name in _READS
        breaker = health.reading if reads else health.writing
        late = self._give_back if name == "reserve" else None

        def call(*arguments: Any, **options: Any) -> Any:
            if reads and health.expects_answer():  # what writes may wait for a lock
                try:
                    return method(*arguments, **options)
                except CatalogUnavailableError as failure:
                    health.failed(breaker, failure)
                    raise
            return health.ask(partial(method, *arguments, **options), breaker, late)

        return call

    def _give_back(self, answer: Any, error: BaseException | None) -> None:
        """A reservation that was granted when nobody waited for it any more is given back."""
        if isinstance(answer, Granted):
            self._index.release_reservation(answer.reservation.token)
