"""Reading: an entry opens to its whole result, or to the reason why not.

Law: when `open_parts` returns parts, all of them were there with the right length, and they stay readable whatever is
deleted afterwards. What is not there is Gone; what is there and wrong is a Problem.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from nectar.errors import StoreFailure, UserError
from nectar.model.entry import Entry, Kind
from nectar.store.commit import unpacked
from nectar.store.files import Files
from nectar.store.formats import arrow, objects, parquet
from nectar.store.layout import MANIFEST, data_folder
from nectar.store.manifest import Column, Manifest, Part, decode, digest
from nectar.store.sources import MemorySource, Source

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_Table = TypeVar("_Table")

What = Literal["manifest", "missing", "length", "ends", "checksum", "unreadable"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a result, for people, and with which part of it."""

    what: What
    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such result: it was evicted, or never published."""

    location: str
    reason: str = "it is not in the store"


@dataclass(frozen=True, slots=True)
class Damaged:
    """The result is there, but not as it was written."""

    reason: str
    part: str


@dataclass(frozen=True, slots=True)
class Parts:
    """A manifest and its parts, opened, in the same order."""

    manifest: Manifest
    sources: tuple[Source, ...]

    def close(self) -> None:
        """Nothing is held open any longer, except what somebody still uses."""
        for source in self.sources:
            source.close()


def open_parts(files: Files, entry: Entry) -> Parts | Gone | list[Problem]:
    """All parts of an entry, opened, with the right lengths and ends; or Gone; or everything wrong with it."""
    if entry.inline is not None:
        return _inline_parts(entry, entry.inline)
    folder = data_folder(entry.location)
    read = _read_manifest(files, entry, folder)
    if not isinstance(read, Manifest):
        return read
    sources: list[Source] = []
    problems: list[Problem] = []
    for part in read.parts:
        opened = _open_part(files, folder, part)
        (problems if isinstance(opened, Problem) else sources).append(opened)  # type: ignore[arg-type]
    if not problems:
        return Parts(read, tuple(sources))
    for source in sources:
        source.close()
    # Parts vanish before our eyes while somebody deletes the result. Then the manifest is gone by now, too.
    missing = any(problem.what == "missing" for problem in problems)
    if missing and files.read(f"{folder}/{MANIFEST}", "manifest") is None:
        return Gone(entry.location, "it was deleted while it was being opened")
    return problems


def wrong_digests(parts: Parts) -> list[Problem]:
    """Parts whose bytes are not those that were written; reads everything."""
    problems = []
    for part, source in zip(parts.manifest.parts, parts.sources, strict=True):
        try:
            if source.digest() != bytes.fromhex(part.blake3):
                problems.append(Problem("checksum", part.name, "its bytes are not those that were written"))
        except (OSError, ValueError) as error:
            problems.append(Problem("unreadable", part.name, f"it cannot be read: {error}"))
    return problems


def _read_manifest(files: Files, entry: Entry, folder: str) -> Manifest | Gone | list[Problem]:
    try:
        data = files.read(f"{folder}/{MANIFEST}", "manifest")
    except StoreFailure as error:
        return [_unreadable(MANIFEST, error)]
    if data is None:
        return Gone(entry.location)
    return _checked_manifest(data, entry, files.show(folder))


def _checked_manifest(data: bytes, entry: Entry, where: str) -> Manifest | list[Problem]:
    if digest(data) != entry.manifest:
        return [Problem("manifest", MANIFEST, "the manifest is not the one that the catalog knows")]
    manifest = decode(data, where)
    return [Problem("manifest", MANIFEST, manifest)] if isinstance(manifest, str) else manifest


def _open_part(files: Files, folder: str, part: Part) -> Source | Problem:
    try:
        source = files.source(f"{folder}/{part.name}")
    except StoreFailure as error:
        return _unreadable(part.name, error)
    if source is None:
        return Problem("missing", part.name, "the part is missing")
    problem = _misfit(source, part)
    if problem is not None:
        source.close()
        return problem
    return source


def _unreadable(part: str, error: StoreFailure) -> Problem:
    # A device that cannot read a file has lost it. Missing rights or too many open files say nothing about the result.
    if error.errno != errno.EIO:
        raise error
    return Problem("unreadable", part, str(error))


def _misfit(source: Source, part: Part) -> Problem | None:
    if source.size != part.size:
        return Problem("length", part.name, f"it has {source.size} bytes and not {part.size} as it should")
    if part.name.startswith("table-"):
        check = parquet.broken_ends if part.name.endswith(".parquet") else arrow.broken_ends
        try:
            broken = check(*source.ends(arrow.ENDS), source.size)
        except OSError as error:
            return Problem("unreadable", part.name, f"it cannot be read: {error}")
        return None if broken is None else Problem("ends", part.name, broken)
    return None


def _inline_parts(entry: Entry, inline: bytes) -> Parts | list[Problem]:
    content = unpacked(inline)
    if content is None:
        return [Problem("manifest", MANIFEST, "the inline result cannot be taken apart")]
    manifest = _checked_manifest(content[0], entry, "the index")
    if not isinstance(manifest, Manifest):
        return manifest
    absent = [part.name for part in manifest.parts if part.name not in content[1]]
    if absent:
        return [Problem("missing", name, "the part is missing") for name in absent]
    parts = Parts(manifest, tuple(MemorySource(content[1][part.name]) for part in manifest.parts))
    misfits = map(_misfit, parts.sources, manifest.parts)
    # A few kilobytes: hashing them costs less than remembering that they were hashed.
    return [problem for problem in misfits if problem is not None] or wrong_digests(parts) or parts


class Result:
    """A result, whole, that stays readable until it is closed, whatever is deleted meanwhile."""

    def __init__(self, parts: Parts, paths: tuple[str, ...], where: str, report: Callable[[Problem], None]) -> None:
        self._parts, self._where, self._report = parts, where, report
        self.paths = paths  # where the parts lie, or lay when it was opened

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kind(self) -> Kind:
        """Whether it is an object, or a table in Arrow or in Parquet files."""
        return self._parts.manifest.kind

    @property
    def table_paths(self) -> tuple[str, ...]:
        """Where the files of the table lie, or lay when it was opened; empty if it lies inline."""
        named = zip(self._parts.manifest.parts, self.paths, strict=False)
        return tuple(path for part, path in named if part.name.startswith("table-"))

    @property
    def rows(self) -> int:
        """Rows of the table; 0 for an object."""
        return self._parts.manifest.rows

    @property
    def made_by(self) -> str:
        """The library whose table was kept; empty for an object."""
        return self._parts.manifest.made_by

    @property
    def schema(self) -> tuple[Column, ...]:
        """Names and types of the columns, for people; `to_arrow().schema` has the types themselves."""
        return self._parts.manifest.schema

    def to_arrow(self) -> pa.Table:
        """The table; not copied where it is mapped. Raises StoreFailure if it cannot be read."""
        if self.kind == "parquet":
            return self._reported(
                lambda: parquet.read_arrow([source.view() for source in self._table_sources()], self.rows)
            )
        return self._reported(lambda: arrow.read_arrow(self.tables(), self._parts.manifest.writer, self.rows))

    def to_polars(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The frame, or some of its columns; not copied where mapped. Raises StoreFailure if it cannot be read."""
        manifest, parts = self._parts.manifest, self._tables()
        return self._reported(lambda: arrow.read_polars(parts, manifest.writer, self.rows, manifest.schema, columns))

    def schema_ahead(self) -> pl.Schema | None:
        """The types of the frame, if it is better read when it is known which columns are needed; otherwise None."""
        return self._reported(lambda: arrow.schema_ahead(self._tables(), self.schema))

    def to_object(self, *, writable: bool = False) -> Any:
        """The object. Its arrays are read-only, or private copies made page by page when written to."""
        if self._parts.manifest.writer != "pickle":
            raise UserError(f"the result at {self._where} is no object: use to_arrow() or to_polars()")
        named = self._named()
        beside = named.get("object.buffers")
        content = b"" if beside is None else beside.private() if writable else beside.view()
        return objects.load(named["object.pickle"].view(), content, self._parts.manifest.buffers, self._where)

    def part(self, name: str) -> memoryview:
        """The bytes that were written under this name with `write_bytes`."""
        source = self._named().get(f"raw-{name}")
        if source is None:
            raise UserError(f"the result at {self._where} has no part {name!r}")
        return memoryview(source.view())

    def close(self) -> None:
        """Files are closed; tables and arrays that were handed out stay valid."""
        self._parts.close()

    def _named(self) -> dict[str, Source]:
        return {part.name: source for part, source in zip(self._parts.manifest.parts, self._parts.sources, strict=True)}

    def tables(self) -> list[Any]:
        """The bytes of the Arrow files that the table consists of, in order; not copied where they are mapped."""
        return [source.view() for source in self._tables()]

    def _tables(self) -> list[Source]:
        if self.kind != "arrow":
            instead = "no table: use to_object()" if self.kind == "object" else "in Parquet files: use to_arrow()"
            raise UserError(f"the result at {self._where} is {instead}")
        return self._table_sources()

    def _table_sources(self) -> list[Source]:
        return [source for name, source in self._named().items() if name.startswith("table-")]

    def _reported(self, read: Callable[[], _Table]) -> _Table:
        try:
            return read()
        except StoreFailure as error:
            self._report(Problem("unreadable", "table", str(error)))
            raise
