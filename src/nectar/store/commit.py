"""Commit: write aside, make durable, publish in one step.

On a file system: parts into staging/, each fsynced; the manifest last; the folder fsynced and renamed into data/. On an
object store: parts first, manifest last. Law: after a crash at any point the result is there whole, or not there;
what is left of it is shown by `locations` and can be deleted.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

import msgspec

from nectar.errors import InternalError, StoreFailure
from nectar.model.entry import Kind
from nectar.store.chunks import digests_of
from nectar.store.files import Files
from nectar.store.formats import arrow, objects, parquet
from nectar.store.inline import packed
from nectar.store.layout import MANIFEST, WRITTEN, data_folder, is_part, staging_folder
from nectar.store.manifest import CHUNK, FORMAT, Column, Manifest, Part, Writer, digest, encode
from nectar.store.remove import clear, empty, remove
from nectar.store.sinks import HashingSink, MemorySink
from nectar.store.sources import Source


class Published(msgspec.Struct, frozen=True):
    """A result that is there. manifest: digest of its manifest. inline: its bytes, if it lies in no folder."""

    location: str
    kind: Kind
    manifest: bytes
    size: int
    files: int
    rows: int
    inline: bytes | None = None


class Sealed(msgspec.Struct, frozen=True):
    """What was published: the digest that leads to it, its bytes and files; the bytes themselves if it lies inline."""

    digest: bytes
    size: int
    files: int
    inline: bytes | None = None


class Adopted(msgspec.Struct, frozen=True):
    """A part that an engine wrote, opened."""

    name: str
    source: Source


class Place(Protocol):
    """Where a result is written."""

    location: str

    def begin(self) -> None:
        """Parts can be created."""

    def create(self, name: str) -> HashingSink:
        """A new part."""

    def for_engine(self) -> str | None:
        """The path of a folder for an engine to make and to write to; None if none could."""

    def adopt(self, suffix: str) -> list[Adopted]:
        """What the engine has written, files of this suffix, are parts now."""

    def publish(self, manifest: Manifest) -> Sealed:
        """The result is there."""

    def discard(self) -> None:
        """Nothing of it is left."""


class Aside:
    """On a file system: written in staging/, renamed into data/."""

    def __init__(self, files: Files, location: str) -> None:
        self._files, self.location = files, location
        self._folder = staging_folder(location)
        self._begun = self._renamed = False

    def begin(self) -> None:
        """The staging folder exists, and it is ours alone."""
        _refuse_taken(self._files, self.location, (self._folder, data_folder(self.location)))
        self._begun = True
        self._files.make_folder(self._folder)

    def create(self, name: str) -> HashingSink:
        """A new part in the staging folder."""
        return _hashing(self._files.create(f"{self._folder}/{name}", "part"))

    def for_engine(self) -> str | None:
        """A folder within the staging folder."""
        return self._files.show(f"{self._folder}/{WRITTEN}")

    def adopt(self, suffix: str) -> list[Adopted]:
        """Files with this suffix are parts, and durable; everything else that the engine wrote is gone."""
        written = f"{self._folder}/{WRITTEN}"
        items = [item for item in self._files.list(written) if not item.folder and item.plain]
        names = [item.name for item in items if item.name.endswith(suffix) and not item.name.startswith(("_", "."))]
        adopted = [self._adopted(f"{written}/{name}", f"table-{at:05d}{suffix}") for at, name in enumerate(names)]
        clear(self._files, written)
        return adopted

    def _adopted(self, written: str, name: str) -> Adopted:
        path = f"{self._folder}/{name}"
        self._files.rename(written, path, "adopt part")
        self._files.sync_file(path)
        source = self._files.source(path)
        if source is None:
            raise StoreFailure(f"{self._files.show(path)} was deleted while it was adopted: try again")
        return Adopted(name, source)

    def publish(self, manifest: Manifest) -> Sealed:
        """The folder is in data/, whole and durable."""
        sealed = _put_manifest(self._files, self._folder, manifest)
        self._files.sync_folder(self._folder)
        target = data_folder(self.location)
        parent = target.rpartition("/")[0]
        self._files.make_folder(parent)
        if not self._files.rename(self._folder, target, "rename into place"):
            raise StoreFailure(f"what was written for {self.location} was deleted before it was published: try again")
        self._renamed = True
        self._files.sync_folder(parent)
        return sealed

    def discard(self) -> None:
        """Staging folder and, if publishing failed after the rename, published folder are gone; never another's."""
        if self._renamed:
            remove(self._files, self.location)
        elif self._begun:
            empty(self._files, self._folder)


class InPlace:
    """On an object store: written in data/, and there once the manifest is."""

    def __init__(self, files: Files, location: str) -> None:
        self._files, self.location = files, location
        self._folder = data_folder(location)
        self._begun = False

    def begin(self) -> None:
        """The folder exists, where there is such a thing, and it is ours alone."""
        _refuse_taken(self._files, self.location, (self._folder,))
        self._begun = True
        self._files.make_folder(self._folder)

    def create(self, name: str) -> HashingSink:
        """A new part; without a manifest it does not count."""
        return _hashing(self._files.create(f"{self._folder}/{name}", "part"))

    def for_engine(self) -> str | None:
        """No engine could."""
        return None

    def adopt(self, suffix: str) -> list[Adopted]:
        """Nothing."""
        return []

    def publish(self, manifest: Manifest) -> Sealed:
        """The manifest is there, and with it the result."""
        return _put_manifest(self._files, self._folder, manifest)

    def discard(self) -> None:
        """Manifest and parts are gone; never another's."""
        if self._begun:
            empty(self._files, self._folder)


class Inline:
    """In memory, to be kept in a row of the index."""

    location = ""

    def __init__(self) -> None:
        self._parts: dict[str, MemorySink] = {}

    def begin(self) -> None:
        """Nothing is needed."""

    def create(self, name: str) -> HashingSink:
        """A new part, without a digest of its own: there is one of the whole piece."""
        return self._parts.setdefault(name, MemorySink())

    def for_engine(self) -> str | None:
        """No engine could."""
        return None

    def adopt(self, suffix: str) -> list[Adopted]:
        """Nothing."""
        return []

    def publish(self, manifest: Manifest) -> Sealed:
        """Everything is in one piece."""
        piece = packed(manifest, [sink.content for sink in self._parts.values()])
        return Sealed(digest(piece), len(piece), 0, piece)

    def discard(self) -> None:
        """Nothing is left."""
        self._parts.clear()


def _put_manifest(files: Files, folder: str, manifest: Manifest) -> Sealed:
    data = encode(manifest)
    files.put(f"{folder}/{MANIFEST}", data, "manifest")
    return Sealed(digest(data), manifest.part_bytes + len(data), len(manifest.parts) + 1)


def _refuse_taken(files: Files, location: str, folders: tuple[str, ...]) -> None:
    if any(map(files.list, folders)):
        raise InternalError(f"{location} is taken: every attempt needs a location of its own")


def _hashing(sink: Any) -> HashingSink:
    assert isinstance(sink, HashingSink)
    return sink


def _abandon(sink: Any) -> None:
    with suppress(OSError):  # the failure that led here says more
        sink.abandon()


class Staging:
    """A result being written. A context manager: leaving it without `publish` removes everything."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._parts: list[Part] = []
        self._name = ""
        self._open: HashingSink | None = None
        self._described: Manifest | None = None
        self._published = False

    def __enter__(self) -> Staging:
        try:
            self._place.begin()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._published:
            self._clean_up()

    def write_table(self, table: Any, *, part_rows: int | None = None, compression: arrow.Compression = "auto") -> None:
        """The table is written: from pyarrow, polars, pandas, or anything with `__arrow_c_stream__`."""
        self._only_once()
        writer, rows, columns = arrow.write(
            table, self._begin_table_part, self._end, part_rows=part_rows, compression=compression
        )
        self._describe("arrow", writer, rows, schema=columns, made_by=type(table).__module__.partition(".")[0])

    def for_engine(self) -> str:
        """The path of a folder that is not there, for an engine to make and to write Parquet files to."""
        path = self._place.for_engine()
        if path is None:
            raise StoreFailure("an engine cannot write to this store: only a store in a folder takes its files")
        return path

    def adopt_tables(self) -> None:
        """The Parquet files that the engine has written are the table."""
        self._only_once()
        adopted = self._place.adopt(".parquet")
        try:
            rows, columns = parquet.described([each.source.view() for each in adopted])
            for each in adopted:
                digest_of_all, chunks = digests_of(each.source)
                self._parts.append(Part(each.name, each.source.size, digest_of_all.hex(), chunks))
        finally:
            for each in adopted:
                each.source.close()
        self._described = Manifest("parquet", "engine", rows, (), columns)

    def write_object(self, value: object) -> None:
        """The value, or what it was taken apart to, is written as pickle, its buffers beside it."""
        self._only_once()
        data, buffers = value if isinstance(value, objects.Pickled) else objects.dump(value)
        places, pieces = objects.laid_out(buffers)
        self._write("object.pickle", [data])
        if places:
            self._write("object.buffers", pieces)
        self._describe("object", "pickle", 0, buffers=places)

    def write_bytes(self, name: str, data: Any) -> None:
        """A part with these bytes; `Result.part(name)` gives them back."""
        if not is_part(f"raw-{name}") or any(part.name == f"raw-{name}" for part in self._parts):
            raise InternalError(f"{name!r} is no name for a part, or taken: use letters, digits, dots and dashes")
        self._write(f"raw-{name}", [data])

    def publish(self, subject: str = "") -> Published:
        """The result is there, whole and durable. subject: what it is the result of (`manifest.subject_of`)."""
        if self._published or not self._parts:
            raise InternalError(f"nothing to publish at {self._place.location or 'an inline result'}")
        described = self._described or Manifest("object", "raw", 0, ())
        manifest = msgspec.structs.replace(
            described, parts=tuple(self._parts), chunk=CHUNK, subject=subject, format=FORMAT
        )
        sealed = self._place.publish(manifest)
        self._published = True
        return Published(
            self._place.location, manifest.kind, sealed.digest, sealed.size, sealed.files, manifest.rows, sealed.inline
        )

    def _only_once(self) -> None:
        if self._described is not None or self._published:
            raise InternalError(f"{self._place.location} has its value already: stage another location")

    def _describe(
        self,
        kind: Kind,
        writer: Writer,
        rows: int,
        schema: tuple[Column, ...] = (),
        buffers: tuple[tuple[int, int], ...] = (),
        made_by: str = "",
    ) -> None:
        self._described = Manifest(kind, writer, rows, (), schema, buffers, made_by)

    def _begin_table_part(self) -> HashingSink:
        number = sum(part.name.startswith("table-") for part in self._parts)
        return self._begin(f"table-{number:05d}.arrow")

    def _begin(self, name: str) -> HashingSink:
        self._name = name
        self._open = self._place.create(name)
        return self._open

    def _end(self, sink: HashingSink) -> None:
        written = sink.finish()
        self._parts.append(Part(self._name, written.size, written.digest.hex(), written.chunks))
        self._open = None

    def _write(self, name: str, pieces: list[Any]) -> None:
        sink = self._begin(name)
        for piece in pieces:
            sink.write(piece)
        self._end(sink)

    def _clean_up(self) -> None:
        if self._open is not None:
            _abandon(self._open)
        with suppress(OSError):  # StoreFailure is one: what cannot be removed now is shown by `locations`
            self._place.discard()
