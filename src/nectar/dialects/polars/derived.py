"""Results of other programs as sources of a plan, known by their keys.

A lazy frame that scans a name holds the key the name pointed to, and no place: where the result lies is looked up when
it is read, and a result that was deleted is made again first. Law: the source is the computation that made it, so a
program over a name has the keys that it would have over the query that the name stands for.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from nectar.dialects.polars.plan import Step
from nectar.dialects.polars.stored import rows_of
from nectar.keys.values.polars_functions import given_in
from nectar.program.tree import Order
from nectar.trust.secrets import logger

_log: Final = logger("nectar.polars")
if TYPE_CHECKING:  # few plans scan results
    from nectar.catalog.service import Catalog
    from nectar.datasets.access import Place

# Made again, it may have its rows in another order, and its sums may differ in the last bit: parts of programs that use
# it in several places must not be answered from two makings of it.
NOT_DETERMINED: Final = Order(scrambles=True, arbitrary=True)
# What the plan of such a source holds besides its function and its schema; anything else would not be ours.
_AS_MADE: Final = {
    "python_source": "IOPlugin", "validate_schema": False, "is_pure": True, "explain_name": None,
    "explain_detail": None,
}  # fmt: skip


class ResultReader:
    """What Polars calls to read a result. Pickled inside a plan it is a key, and where the catalog was.

    program: fingerprint of the program that made it. label: what it is called, for people.
    """

    def __init__(self, key: bytes, program: bytes, label: str, home: str, store: str) -> None:
        self.key, self.program, self.label, self.home, self.store = key, program, label, home, store

    @property
    def place(self) -> Place:
        """Where it was scanned."""
        from nectar.datasets.access import Place

        return Place(self.home, self.store)

    def __call__(
        self, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None, batch_size: int | None
    ) -> tuple[Iterator[pl.DataFrame], bool]:
        """The rows and columns that are wanted."""
        from nectar.datasets.access import catalog_knowing, result_of

        frame = result_of(catalog_knowing(self.key, self.place), self.key, self.label).to_polars()
        return rows_of(frame, with_columns, predicate, n_rows)


def scan_of(reader: ResultReader, schema: pl.Schema) -> pl.LazyFrame:
    """A lazy frame over a result."""
    return pl.LazyFrame._scan_python_function(schema=schema, scan_fn=reader, is_pure=True)


def reader_of(step: Step) -> ResultReader | None:
    """The reader of a step that is a source of this kind; None if it is anything else."""
    if step.kind != "PythonScan":
        return None
    options: dict[str, Any] = dict(step.body.get("options") or {})
    scan_function, _ = bytes(options.pop("scan_fn", b"")), options.pop("schema_fn", None)
    if options != _AS_MADE or set(step.body) != {"options"}:
        return None
    found = given_in(scan_function)
    return found.function if found is not None and type(found.function) is ResultReader else None


# schemas


def schema_bytes(frame: pl.DataFrame) -> bytes:
    """The schema of a frame, as it is on record beside its result."""
    memory = io.BytesIO()
    frame.clear().write_ipc_stream(memory)
    return memory.getvalue()


def schema_in(catalog: Catalog, key: bytes, label: str) -> pl.Schema:
    """The schema of a result, from the record of how it came about; otherwise from the result itself.

    A damaged record counts as none: the result is opened, or made again, and says what it holds.
    """
    from nectar.datasets.access import result_of

    recorded = catalog.index.schema_of(key)
    if recorded is not None:
        try:
            return pl.read_ipc_stream(io.BytesIO(recorded)).schema
        except (Exception, pl.exceptions.PanicException) as error:  # rows of older catalogs have no seal
            _log.debug("what is on record of %s is damaged: %r", label, error)
    with result_of(catalog, key, label) as result:
        return result.to_polars().schema
