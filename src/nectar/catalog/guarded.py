"""An index that a program does not wait for when it does not answer.

In: an index, and the health of its catalog. Out: the same index; what it is asked goes through the health. Law: that
holds for every method, also for one that nobody has thought of, unless `WAITED_FOR` names it and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nectar.catalog.state import Granted
from nectar.errors import CatalogUnavailableError
from nectar.waiting.answering import ask_here, is_unhurried

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.waiting.health import Health

_T = TypeVar("_T")
# What only reads waits for no lock of writers, and may be asked by the program itself (health.expects_answer).
READS: Final = frozenset({
    "broken_recipes", "broken_rows", "candidates", "contents", "doomed", "entries", "get_recipe", "inquire", "jobs",
    "leases", "lengths", "lookup", "lookups", "observed", "passed", "referred", "reservations", "totals", "unused",
    "usage", "version", "versions",
})  # fmt: skip
WRITES: Final = frozenset({
    "abandon", "add", "add_observed", "add_version", "announce", "count_lookups", "doom", "drop_leases",
    "drop_recipes", "drop_rows", "evict", "expire", "forget_doomed", "forget_old", "forget_unneeded", "log", "lose",
    "lose_derived", "note_pass", "put_leases", "put_recipe", "record", "record_source", "recount",
    "release_reservation", "remember_contents", "remember_lengths", "renew_recipe", "reserve", "shrink", "supersede",
    "touch",
})  # fmt: skip
WAITED_FOR: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("find", "find_made", "history", "made", "names", "program_of", "resolve", "schema_of"),
        "somebody has named what they want, and without it their program cannot go on",
    ),
    **dict.fromkeys(
        ("function_texts", "trace_function", "trace_input", "trace_results"), "somebody asks for a lineage, and waits"
    ),
    **dict.fromkeys(
        ("bind", "erase", "forget", "pin", "unbind"), "somebody wants it done, and is told of it when it is"
    ),
    "close": "it is the last thing that is done, and the catalog as a whole is closed through the health",
    "try_writing": "it is what the health asks to find out how the catalog is",
}
# Nobody needs the answer: what cannot be written now is written beside the program, as soon as that can be done.
LATER: Final = frozenset({"drop_leases", "release_reservation", "remember_contents", "remember_lengths"})
_LATER_BYTES: Final = 4096  # that each of them holds at most, in nearly all cases
_ROWS: Final = frozenset({"candidates", "entries"})  # tell one row after the other
_AT_A_TIME: Final = 500  # rows that are read while a program waits


class GuardedIndex:
    """An index whose calls by running programs take a moment at most."""

    def __init__(self, index: Index, health: Health) -> None:
        self._index, self._health = index, health
        health.probe_with(partial(index.lookups, [b""]), index.try_writing)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._index, name)
        if not callable(found) or name in WAITED_FOR:
            return found
        guarded = self._guarded(name, found)
        setattr(self, name, guarded)
        return guarded

    def _guarded(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name in _ROWS:
            return self._by_pages(method)
        return self._read(method) if name in READS else self._written(name, method)

    def _read(self, method: Callable[..., _T]) -> Callable[..., _T]:
        health = self._health

        def call(*arguments: Any, **options: Any) -> _T:
            work = partial(method, *arguments, **options)
            if not health.expects_answer():
                return health.ask(work, health.reading)
            try:
                return ask_here(work, health.patience)
            except CatalogUnavailableError as failure:
                health.failed(health.reading, failure)
                raise

        return call

    def _by_pages(self, method: Callable[..., Iterator[_T]]) -> Callable[..., Iterator[_T]]:
        """Reading begins with the first row that somebody wants, and goes on with each."""
        page_of = self._read(lambda rows: list(islice(rows, _AT_A_TIME)))

        def call(*arguments: Any, **options: Any) -> Iterator[_T]:
            rows = method(*arguments, **options)
            while page := page_of(rows):
                yield from page

        return call

    def _written(self, name: str, method: Callable[..., _T]) -> Callable[..., _T]:
        health = self._health
        late = {"reserve": self._release, "announce": self._drop}.get(name)

        def call(*arguments: Any, **options: Any) -> _T:
            hears = None if late is None else partial(late, arguments)
            return health.ask(partial(method, *arguments, **options), health.writing, hears)

        return self._or_later(method, call) if name in LATER else call

    def _or_later(self, method: Callable[..., _T], call: Callable[..., _T]) -> Callable[..., Any]:
        health = self._health

        def call_or_leave(*arguments: Any, **options: Any) -> Any:
            try:
                return call(*arguments, **options)
            except CatalogUnavailableError:
                if health.later is None or is_unhurried():
                    raise
                return health.later(partial(method, *arguments, **options), _LATER_BYTES)

        return call_or_leave

    # what was granted when nobody waited for it any more is given back

    def _release(self, arguments: tuple[Any, ...], answer: object, error: BaseException | None) -> None:
        if isinstance(answer, Granted):
            self._index.release_reservation(answer.reservation.token)

    def _drop(self, arguments: tuple[Any, ...], answer: object, error: BaseException | None) -> None:
        if answer:
            self._index.drop_leases([arguments[0].token])
