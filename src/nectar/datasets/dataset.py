"""Dataset: a result that somebody named, to be read in whichever way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nectar.catalog.service import Catalog
from nectar.datasets.access import Place, catalog_at, place_in_force, result_of
from nectar.datasets.pointer import read_pointer
from nectar.datasets.reference import POINTER, chosen, parsed
from nectar.model.entry import Name
from nectar.model.lineage import Direction, Made
from nectar.report.lineage import LineageReport
from nectar.store.read import Result

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


class Dataset:
    """The result that a version of a name points to. It is read when it is asked for, and not before."""

    def __init__(self, place: Place, key: bytes, bound: Name | None = None) -> None:
        self._place = place
        self.key = key
        self.name = bound.name if bound else ""
        self.version = bound.version if bound else 0
        self.note = bound.note if bound else ""

    def __repr__(self) -> str:
        return f"Dataset({self.label!r})"

    @property
    def label(self) -> str:
        """The name and its version, or the beginning of the key."""
        return f"{self.name}@{self.version}" if self.name else self.key.hex()[:12]

    @property
    def _catalog(self) -> Catalog:
        """Asked for each time: Nectar may be switched on or off between two readings."""
        return catalog_at(Path(self._place.home), self._place.store)

    @property
    def kept(self) -> bool:
        """Whether the result lies in the store, and need not be made again."""
        return self.key in self._catalog.index.lookup([self.key])

    @property
    def made(self) -> Made | None:
        """Who made it, when, how long it took: what is on record of it."""
        return self._catalog.index.made([self.key]).get(self.key)

    def result(self) -> Result:
        """The result as the store has it, made again if it was deleted; to be closed by whoever asks."""
        return result_of(self._catalog, self.key, self.label)

    def to_polars(self) -> pl.DataFrame:
        """The table as a Polars frame; not copied where it is mapped."""
        with self.result() as result:
            return result.to_polars()

    def to_arrow(self) -> pa.Table:
        """The table as Arrow has it; not copied where it is mapped."""
        with self.result() as result:
            return result.to_arrow()

    def to_pandas(self) -> Any:
        """The table as a pandas frame."""
        return self.to_arrow().to_pandas()

    @property
    def paths(self) -> Sequence[str]:
        """The Arrow files of the result as they lie now; none if it is so small that it lies in the catalog itself.

        Nor are those that others could change told of: they are read into memory, and verified there.
        They may be deleted at any time, and then lie elsewhere: programs that are to work tomorrow use the name.
        """
        with self.result() as result:
            return result.paths

    @property
    def versions(self) -> list[Name]:
        """What the name has pointed to, newest first, with times, people and notes."""
        return self._catalog.index.history(self.name) if self.name else []

    def lineage(self, direction: Direction = "upstream") -> LineageReport:
        """What it came from, or with "downstream" what was made from it."""
        index = self._catalog.index
        graph = index.trace_results([self.key], direction)
        return LineageReport(
            self.label, graph, index.function_texts([each.digest for each in graph.functions.values()])
        )


@dataclass(frozen=True, slots=True)
class Meant:
    """A result that somebody named. label: what it is called, for people. bound: None if it was not by a name."""

    catalog: Catalog
    place: Place
    key: bytes
    bound: Name | None
    label: str

    @property
    def home(self) -> str:
        """The folder of the catalog."""
        return self.place.home

    @property
    def store(self) -> str:
        """Where the results are, if that is elsewhere."""
        return self.place.store

    @property
    def program(self) -> bytes:
        """The fingerprint of the program that made it; its key, if nothing else is known."""
        return self.catalog.index.program_of(self.key) or self.key


def meant(text: str, place: Place | None = None) -> Meant:
    """The result that a name, a version of it, or a pointer file stands for."""
    place = place_in_force() if place is None else place
    catalog = catalog_at(Path(place.home), place.store)
    if str(text).endswith(POINTER):
        pointer = read_pointer(Path(text))
        label = f"{pointer.name}@{pointer.version}" if pointer.name else f"{text}"
        return Meant(catalog, place, bytes.fromhex(pointer.key), None, label)
    reference = parsed(text)
    bound = chosen(reference, catalog.index.history(reference.name))
    return Meant(catalog, place, bound.key, bound, f"{bound.name}@{bound.version}")


def open(name: str) -> Dataset:
    """The dataset of a name (team/top_urls), of a version (team/top_urls@2, team/top_urls@2026-11-01), or a pointer."""
    found = meant(name)
    return Dataset(found.place, found.key, found.bound)
