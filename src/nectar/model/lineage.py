"""Lineage: what results came from, kept as long as somebody can ask for it, also of results that are deleted.

A result is known by its key. It was made from other results, from files, and by functions; people give some of them
names. Nothing here holds data, and no address holds a credential.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from nectar.model.entry import Entry, Name

Direction = Literal["upstream", "downstream"]


class FileRead(NamedTuple):
    """A file as it was read. url: an absolute path, or a URL without credentials. identity: which bytes it held."""

    url: str
    identity: bytes
    size: int | None = None


class FunctionUsed(NamedTuple):
    """A function of the application as it was. name: with its module. place: file and line. text: empty if unknown."""

    digest: bytes
    name: str
    place: str
    text: str = ""


class Made(NamedTuple):
    """A result that was made, whether it is still kept or not.

    by, at: who made it, and when. checksum: the digest of its manifest. environment: versions of what computed it.
    site: where in a program.
    """

    key: bytes
    program: bytes
    about: str
    by: str
    at: float
    seconds: float
    rows: int
    size: int
    checksum: bytes
    environment: str = ""
    site: str = ""


class Sources(Struct, frozen=True):
    """What a result came from. made_from: keys of other results. schema: of its columns, as its dialect writes it."""

    files: tuple[FileRead, ...] = ()
    functions: tuple[FunctionUsed, ...] = ()
    made_from: tuple[bytes, ...] = ()
    schema: bytes | None = None
    environment: str = ""
    site: str = ""


class Provenance(Struct, frozen=True):
    """How one result came about."""

    made: Made
    sources: Sources


class Lineage(Struct, frozen=True):
    """A part of the graph of everything that was made.

    results, files, functions: by number. start: the results that were asked for. made_from: pairs of a result and one
    it was made from. streams, kits: files that were read, and functions that were used, together. reads, uses: pairs of
    a result and a stream, or a kit. names: those that point, or pointed, to one of the results, with its number. Texts
    of functions are not part of it.
    """

    direction: Direction
    start: tuple[int, ...] = ()
    results: dict[int, Made] = field(default_factory=dict)
    made_from: tuple[tuple[int, int], ...] = ()
    files: dict[int, FileRead] = field(default_factory=dict)
    streams: dict[int, tuple[int, ...]] = field(default_factory=dict)
    reads: tuple[tuple[int, int], ...] = ()
    functions: dict[int, FunctionUsed] = field(default_factory=dict)
    kits: dict[int, tuple[int, ...]] = field(default_factory=dict)
    uses: tuple[tuple[int, int], ...] = ()
    names: tuple[tuple[Name, int], ...] = ()


def provenance_of(entry: Entry, sources: Sources, made_from: Iterable[bytes]) -> Provenance:
    """How the result of an entry came about. made_from: keys of results that it was made from beside those named."""
    made = Made(
        entry.key, entry.program, entry.about, entry.producer, entry.created, entry.seconds, entry.rows, entry.size,
        entry.manifest, sources.environment, sources.site,
    )  # fmt: skip
    return Provenance(made, replace(sources, made_from=tuple(dict.fromkeys([*sources.made_from, *made_from]))))
