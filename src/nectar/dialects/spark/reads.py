"""Reads of files: what a read does, and which files it may see.

In: the message of a read. Out: a Source: canonical bytes of format, schema and options, and the files below each path.
Law: the files are all that any engine could read for these paths, hidden ones and those in folders below included; one
that an engine leaves out costs a miss when it changes, one that we left out would cost the truth. For a pattern these
are all files below the folder that it begins with. For a Delta table they are its log and its data: files of data
elsewhere, which the log of a clone names, are written once and never changed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from pyspark.sql.connect.proto import relations_pb2

from nectar.errors import InputFailure, UserError
from nectar.keys.expansion import joined
from nectar.store.inputs import failures

_DELTA: Final = "delta"
FILES: Final = frozenset({"parquet", "orc", "csv", "json", "text"})
FORMATS: Final = FILES | {_DELTA}  # whose files are looked at
# Not timestampAsOf, which is compared with the times of files; those are in no key.
VERSION: Final = "versionasof"
_OPTIONS_OF_DELTA: Final = frozenset({"path", VERSION})
_OPTIONS: Final = frozenset({
    "path", "header", "sep", "delimiter", "quote", "escape", "inferschema", "nullvalue", "emptyvalue", "nanvalue",
    "positiveinf", "negativeinf", "dateformat", "timestampformat", "timestampntzformat", "encoding", "charset",
    "multiline", "mode", "linesep", "comment", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "mergeschema",
    "wholetext", "locale", "compression", "enforceschema", "primitivesasstring", "prefersdecimal", "allowcomments",
    "allowunquotedfieldnames", "allowsinglequotes", "maxcolumns", "maxcharspercolumn", "chartoescapequoteescaping",
    "columnnameofcorruptrecord", "dropfieldifallnull", "recursivefilelookup", "pathglobfilter",
})  # fmt: skip
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./=,+@:()-]+")  # what Sail leaves as it is in the path of a table
_MAGIC: Final = re.compile(r"[*?\[{\\]")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files below a path. root: where it was looked. shown: what of the path the engine may show or use. files: all.

    folders: those in which files may come and go.
    """

    root: str
    shown: str
    files: tuple[str, ...]
    folders: tuple[str, ...] = field(default=(), compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What the files are called below the root: partitions are made of it, and the order of files."""
        below = self.root if self.root.endswith("/") else f"{self.root}/"
        return tuple("." if file == self.root else file.removeprefix(below) for file in self.files)


@dataclass(frozen=True)
class Source:
    """What a read reads. content: format, schema, options. paths: as the program has them. listings: one for each.

    is_table: which of its files it reads is written in others. version: which of them, if it is not the last one.
    """

    content: bytes
    text: str
    paths: tuple[str, ...]
    listings: tuple[Listing, ...]
    is_table: bool = False
    version: str | None = None

    @property
    def files(self) -> list[str]:
        """All files, in the order of paths."""
        return [file for listing in self.listings for file in listing.files]

    @cached_property
    def layout(self) -> bytes:
        """How files are called and which path each belongs to; what is in them is added by whoever makes keys."""
        parts = [joined("path", listing.shown, *listing.names) for listing in self.listings]
        return joined("layout", *parts, *([joined("version", self.version)] if self.version is not None else []))

    def is_same_now(self) -> bool:
        """Whether no file came or went since this was made."""
        try:
            return all(_listing_of(each.root, each.shown) == each for each in self.listings)
        except InputFailure:
            return False


def read_of(form: str, path: str, options: Mapping[str, str] | None = None) -> Any:
    """The message that reads the files at a path."""
    source = relations_pb2.Read.DataSource(format=form, paths=[path], options=options)
    return relations_pb2.Read(data_source=source)


def source_of(read: Any) -> Source:
    """What a read reads now. Raises UserError if that cannot be told, InputFailure if files cannot be listed."""
    if read.is_streaming:
        raise UserError("it is a stream")
    if read.WhichOneof("read_type") != "data_source":
        raise UserError("it reads no files")
    source = read.data_source
    options = {name.lower(): value for name, value in source.options.items()}
    _expect_understood(source, options)
    paths = [*source.paths, *([options["path"]] if "path" in options else [])]
    if not paths:
        raise UserError("it reads no files")
    listings = tuple(_listed(path) for path in paths)
    version = options.get(VERSION)
    others = [text for name in sorted(options.keys() - {"path", VERSION}) for text in (name, options[name])]
    schema = ("schema", source.schema) if source.HasField("schema") else ("inferred",)
    content = joined("files", source.format.lower(), *schema, *others)
    is_table = source.format.lower() == _DELTA
    odd = next((listing.root for listing in listings if is_table and not may_hold_tables(listing.root)), None)
    if odd is not None:
        raise UserError(f"{odd}: where a table lies whose path has such characters is not known")
    return Source(content, f"{source.format} {', '.join(paths)}", tuple(paths), listings, is_table, version)


def may_hold_tables(path: str) -> bool:
    """Whether Sail looks for a Delta table where its path says: other characters it encodes, some of them twice."""
    return _PLAIN.fullmatch(path) is not None


def _expect_understood(source: Any, options: dict[str, str]) -> None:
    if source.format.lower() not in FORMATS:
        raise UserError(f"it reads from {source.format or 'whatever the server reads by default'}, and not from files")
    if len(options) != len(source.options):
        raise UserError("options of a read differ by capital letters only")
    unknown = sorted(options.keys() - (_OPTIONS_OF_DELTA if source.format.lower() == _DELTA else _OPTIONS))
    if unknown:
        raise UserError(f"the option {unknown[0]} of a read is not known")
    if source.predicates or source.HasField("source_name"):
        raise UserError("it reads more than files")


def _listed(path: str) -> Listing:
    plain = path
    for prefix in ("file://", "file:"):
        if path.startswith(prefix):
            plain = path[len(prefix) :]
            if not plain.startswith("/"):
                raise UserError(f"{path} names another machine, or no file")
            break
    if _SCHEME.match(plain) or "%" in plain or plain.startswith("~"):
        raise UserError(f"{path} is no plain path of this machine")
    magic = _MAGIC.search(plain)
    if magic is None:
        root = _absolute(plain)
        return _listing_of(root, _shown(root))
    folder, _, _ = plain[: magic.start()].rpartition("/")
    root = _absolute(folder or ("/" if plain.startswith("/") else "."))
    return _listing_of(root, f"{_shown(root)}\0{plain[len(folder) :]}")


def _absolute(path: str) -> str:
    with failures.telling(path):  # the working folder may be gone
        return os.path.abspath(path)


def _shown(path: str) -> str:
    """What of a path may be part of the result: partitions are written in it as name=value."""
    return path if "=" in path else ""


def _listing_of(root: str, shown: str) -> Listing:
    try:
        mode = os.stat(root).st_mode
    except (OSError, ValueError) as error:
        raise failures.missing(root) from error
    if stat.S_ISDIR(mode):
        files, folders = _below(root)
        return Listing(root, shown, tuple(sorted(files)), tuple(sorted(folders)))
    if stat.S_ISREG(mode):
        return Listing(root, shown, (root,))
    raise failures.missing(root)


def _below(root: str) -> tuple[list[str], list[str]]:
    """All files below a folder, and all folders, itself included; links are followed.

    A folder within itself is a failure, as it is for engines.
    """
    files: list[str] = []
    seen: list[str] = []
    folders = [(root, frozenset({os.path.realpath(root)}))]
    while folders:
        folder, above = folders.pop()
        seen.append(folder)
        with failures.telling(folder), os.scandir(folder) as entries:
            for entry in list(entries):
                if entry.is_dir():
                    place = os.path.realpath(entry.path)
                    if place in above:
                        raise InputFailure(f"{entry.path} leads back to a folder it lies in: remove the link")
                    folders.append((entry.path, above | {place}))
                else:
                    files.append(entry.path)
    return files, seen
