"""A result that an engine writes by itself, to a place that the store has chosen.

The place is leased and announced before anything is written. Law: what is handed over is published and gets its row by
`Catalog.keep`, or nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from msgspec import Struct, field

from nectar.model.entry import Lease
from nectar.store.commit import Published, Staging


class Handover(Struct, eq=False):
    """A context manager, for an engine to write Parquet files. beside: what is kept with them, by name.

    Its place is given back when it is left without having been kept.
    """

    lease: Lease
    _staging: Staging
    _over: Callable[[Lease], None]
    beside: dict[str, bytes] = field(default_factory=dict)
    _published: bool = False

    def __enter__(self) -> Handover:
        self._staging.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._staging.__exit__(kind, error, trace)
        if not self._published:
            self._over(self.lease)

    @property
    def path(self) -> str:
        """A folder that is not there, for the engine to make. Raises StoreFailure where no engine could."""
        return self._staging.for_engine()

    def publish(self, subject: str = "") -> Published:
        """What the engine has written is there, whole and durable; the lease holds until it has its row."""
        self._staging.adopt_tables()
        for name, data in self.beside.items():
            self._staging.write_bytes(name, data)
        published = self._staging.publish(subject)
        self._published = True
        return published
