"""Reading: an entry opens to its whole result, or to the reason why not.

Law: when `open_parts` returns parts, all of them were there with the right length, and they stay readable whatever is
deleted afterwards. What is not there is Gone; what is there and wrong, or lost by its device, is a Problem. What cannot
be read now (no memory, no rights, no answer) raises StoreFailure and is neither: nothing is deleted because of it. No
byte of a part reaches a library before it was verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from nectar.errors import StoreFailure, UserError
from nectar.model.entry import Entry, Kind
from nectar.store.chunks import Checked, DamagedPartError
from nectar.store.files import Files
from nectar.store.formats import objects
from nectar.store.inline import LISTS, unpacked
from nectar.store.layout import COLUMNS, MANIFEST, data_folder, is_location, key_of
from nectar.store.loss import DamagedError, is_loss
from nectar.store.manifest import Column, Manifest, Part, decode, digest, subject_of
from nectar.store.problem import Gone, Problem
from nectar.store.sources import MemorySource, Source
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_Table = TypeVar("_Table")
_LISTS: Final = bytes((LISTS,))
_log: Final = logger("nectar.store")
_lists: Final = msgspec.msgpack.Decoder(tuple[bytes, dict[str, bytes]]).decode


class Parts(msgspec.Struct, frozen=True):
    """A manifest and its parts, opened, in the same order."""

    manifest: Manifest
    sources: tuple[Checked, ...]

    @property
    def in_memory(self) -> bool:
        """Whether nobody else can change some of it from now on; nothing is known of it from before."""
        return any(source.stamp is None for source in self.sources)

    def believe(self) -> None:
        """Nothing is verified any more when it is read."""
        for source in self.sources:
            source.sound = bytearray(b"\1" * len(source.sound))

    def close(self) -> None:
        """Nothing is held open any longer, except what somebody still uses."""
        for source in self.sources:
            source.close()


def open_parts(files: Files, entry: Entry, *, copied: bool = False) -> Parts | Gone | list[Problem]:
    """All parts of an entry, opened, with the right lengths and ends; or Gone; or everything wrong with it.

    copied: they are held in memory, where nobody else can change them.
    """
    if entry.inline is not None:
        return _inline_parts(entry, entry.inline)
    if not is_location(entry.location) or key_of(entry.location) != entry.key:
        return [Problem("manifest", MANIFEST, "the catalog leads to no place of this result")]
    folder = data_folder(entry.location)
    read = _read_manifest(files, entry, folder)
    if not isinstance(read, Manifest):
        return read
    sources: list[Checked] = []
    problems: list[Problem] = []
    for part in read.parts:
        opened = _open_part(files, folder, part, read.chunk, copied)
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


def wrong_digests(parts: Parts, halted: Callable[[], bool] = bool) -> list[Problem]:
    """Parts with bytes that are not those that were written; reads all that was not verified, unless it is halted.

    Raises StoreFailure if there is no telling now.
    """
    problems = []
    for source in parts.sources:
        try:
            source.check(halted=halted)
        except DamagedPartError as error:
            problems.append(problem_of(error))
    return problems


def problem_of(error: StoreFailure) -> Problem:
    """What is wrong with a result, from what went wrong when it was read."""
    if isinstance(error, DamagedPartError):
        return Problem(error.what, error.part, error.reason)
    return Problem("checksum" if isinstance(error, DamagedError) else "unreadable", "table", str(error))


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
    if isinstance(manifest, str):
        return [Problem("manifest", MANIFEST, manifest)]
    misfit = _misfit_of_row(manifest, entry)
    return manifest if misfit is None else [Problem("manifest", MANIFEST, misfit)]


def _misfit_of_row(manifest: Manifest, entry: Entry) -> str | None:
    """How the row of a result does not fit it; None if it does."""
    if manifest.kind != entry.kind:
        return "it is a result of another kind than the catalog says"
    if manifest.subject and manifest.subject != subject_of(entry.key, entry.program, entry.spans):
        return "it is the result of something else than the catalog says"
    return None


def _open_part(files: Files, folder: str, part: Part, chunk: int, copied: bool) -> Checked | Problem:
    try:
        source = files.source(f"{folder}/{part.name}", copied=copied)
    except StoreFailure as error:
        return _unreadable(part.name, error)
    if source is None:
        return Problem("missing", part.name, "the part is missing")
    problem = _misfit(source, part)
    if problem is not None:
        source.close()
        return problem
    return Checked(source, part, chunk)


def _unreadable(part: str, error: StoreFailure) -> Problem:
    if not is_loss(error):
        raise error
    return Problem("unreadable", part, str(error))


def _misfit(source: Source, part: Part) -> Problem | None:
    if source.size != part.size:
        return Problem("length", part.name, f"it has {source.size} bytes and not {part.size} as it should")
    if part.name.startswith("table-"):
        from nectar.store.formats import arrow, parquet

        check = parquet.broken_ends if part.name.endswith(".parquet") else arrow.broken_ends
        try:
            broken = check(*source.ends(arrow.ENDS), source.size)
        except StoreFailure as error:
            return _unreadable(part.name, error)
        return None if broken is None else Problem("ends", part.name, broken)
    return None


def _inline_parts(entry: Entry, inline: bytes) -> Parts | list[Problem]:
    if inline[:1] == _LISTS:
        return _parts_of_lists(entry, inline)
    if digest(inline) != entry.manifest:
        return [Problem("checksum", "inline", "its bytes are not those that were written")]
    content = unpacked(inline)
    if isinstance(content, str):
        return [Problem("manifest", "inline", content)]
    manifest, sources = content
    misfit = _misfit_of_row(manifest, entry)
    return Parts(manifest, sources) if misfit is None else [Problem("manifest", "inline", misfit)]


def _parts_of_lists(entry: Entry, inline: bytes) -> Parts | list[Problem]:
    """The parts of an inline result of format 3 or before: a manifest, and the parts by name."""
    try:
        content = _lists(inline)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return [Problem("manifest", MANIFEST, "the inline result cannot be taken apart")]
    manifest = _checked_manifest(content[0], entry, "the index")
    if not isinstance(manifest, Manifest):
        return manifest
    absent = [part.name for part in manifest.parts if part.name not in content[1]]
    if absent:
        return [Problem("missing", name, "the part is missing") for name in absent]
    sources = [MemorySource(content[1][part.name]) for part in manifest.parts]
    misfits = [problem for problem in map(_misfit, sources, manifest.parts) if problem is not None]
    checked = [Checked(source, part, manifest.chunk) for source, part in zip(sources, manifest.parts, strict=True)]
    parts = Parts(manifest, tuple(checked))
    # A few kilobytes: hashing them costs less than remembering that they were hashed.
    return misfits or wrong_digests(parts) or parts


class Result:
    """A result, whole, that stays readable until it is closed, whatever is deleted meanwhile.

    What was not verified when it was opened is verified when it is read. Whatever cannot be read raises StoreFailure;
    what is lost is reported besides.
    """

    def __init__(self, parts: Parts, paths: tuple[str, ...], where: str, report: Callable[[Problem], None]) -> None:
        self._parts, self._where, self._report = parts, where, report
        self.paths = paths  # where the parts lie, or lay when it was opened; none of them if others could change them

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
        """Where the files of the table lie, or lay when it was opened; empty if what was opened is in memory."""
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
        from nectar.store.formats import arrow, parquet

        if self.kind == "parquet":
            return self._reported(lambda: self._named_columns(parquet.read_arrow(self._views(), self.rows)))
        return self._reported(lambda: arrow.read_arrow(self.tables(), self._parts.manifest.writer, self.rows))

    def to_polars(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The frame, or some of its columns; not copied where mapped. Raises StoreFailure if it cannot be read."""
        if self.kind == "parquet":
            frame: pl.DataFrame = import_module("polars").from_arrow(self.to_arrow())
            return frame if columns is None else frame.select(columns)
        from nectar.store.formats import arrow

        manifest, parts = self._parts.manifest, self._tables()
        return self._reported(lambda: arrow.read_polars(parts, manifest.writer, self.rows, manifest.schema, columns))

    def schema_ahead(self) -> pl.Schema | None:
        """The types of the frame, if it is better read when it is known which columns are needed; otherwise None."""
        if self.kind == "parquet":
            return None
        from nectar.store.formats import arrow

        return self._reported(lambda: arrow.schema_ahead(self._tables(), self._parts.manifest.writer, self.schema))

    def _named_columns(self, table: pa.Table) -> pa.Table:
        """The table with the names of its columns, if its files have others."""
        names = self._named().get(f"raw-{COLUMNS}")
        return table if names is None else table.rename_columns(msgspec.json.decode(bytes(names.view())))

    def to_object(self, *, writable: bool = False) -> Any:
        """The object. Its arrays are read-only, or private copies made page by page when written to."""
        if self._parts.manifest.writer != "pickle":
            raise UserError(f"the result at {self._where} is no object: use to_arrow() or to_polars()")
        named = self._named()
        pickled, beside = named["object.pickle"], named.get("object.buffers")
        view = self._reported(pickled.view)
        content = b"" if beside is None else self._reported(beside.private if writable else beside.view)
        return objects.load(view, content, self._parts.manifest.buffers, self._where)

    def part(self, name: str) -> memoryview:
        """The bytes that were written under this name with `write_bytes`."""
        source = self._named().get(f"raw-{name}")
        if source is None:
            raise UserError(f"the result at {self._where} has no part {name!r}")
        return memoryview(self._reported(source.view))

    def contents(self) -> Iterator[Any]:
        """The bytes of all parts, as they lie; those of a table may be compressed."""
        yield from (self._reported(source.view) for source in self._parts.sources)

    def close(self) -> None:
        """Files are closed; tables and arrays that were handed out stay valid."""
        self._parts.close()

    def _named(self) -> dict[str, Checked]:
        return {part.name: source for part, source in zip(self._parts.manifest.parts, self._parts.sources, strict=True)}

    def tables(self) -> list[Any]:
        """The bytes of the Arrow files that the table consists of, in order; not copied where they are mapped."""
        self._tables()
        return self._reported(self._views)

    def _views(self) -> list[Any]:
        return [source.view() for source in self._table_sources()]

    def _tables(self) -> list[Checked]:
        if self.kind != "arrow":
            instead = "no table: use to_object()" if self.kind == "object" else "in Parquet files: use to_arrow()"
            raise UserError(f"the result at {self._where} is {instead}")
        return self._table_sources()

    def _table_sources(self) -> list[Checked]:
        return [source for name, source in self._named().items() if name.startswith("table-")]

    def _reported(self, read: Callable[[], _Table]) -> _Table:
        try:
            return read()
        except StoreFailure as error:
            if is_loss(error):
                self._report(problem_of(error))
            else:
                _log.warning("a result is not used this time, and is kept: %s", error)
            raise
