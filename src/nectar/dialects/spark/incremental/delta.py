"""Delta tables, file by file: which files a version has, and tables that have some of them and no others.

In: a read of a table. Out: a Version, or why its files cannot be told. Law: a table that is made of some files of
another one has the rows that the other has of these files: it has the same schema, features and settings, and says the
same of the rows of each file. Of a log only what is known here is believed; with anything else in it, the table is read
as a whole.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet

from nectar.dialects.spark.incremental.files import Extent, link
from nectar.dialects.spark.reads import Listing, Source, may_hold_tables
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.store.inputs.identify import Identity

_LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT: Final = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
# Checksums, and where to begin: what they say the others say, too.
_BESIDE: Final = re.compile(r"([0-9]{20})\.crc|_last_checkpoint|\..*\.crc")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_FIRST: Final = f"{0:020}.json"
_OF_NO_ROWS: Final = frozenset({"commitInfo", "txn", "domainMetadata", "cdc", "checkpointMetadata"})
_FEATURES: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
_NEWEST_READER: Final = 3  # from which on features are named
# Without statistics, from which engines answer where they can: what is known of a part is what its files hold.
_OF_FILES: Final = ("path", "partitionValues", "size", "modificationTime", "dataChange")
_OF_ROWS: Final = ("partitionValues", "size")  # what is said of a file and may change what is read of it
_OF_CHECKPOINTS: Final = [
    *(f"add.{name}" for name in (*_OF_FILES, "deletionVector")), "remove.path", "metaData", "protocol", "sidecar",
]  # fmt: skip
_MAPS: Final = frozenset({"partitionValues", "configuration", "options"})

Action = dict[str, Any]


class Unfamiliar(EnvironmentFailure):
    """A table, or a log, of which it is not known what it says."""


# What reading a log gives that says something else than it should, or is no log.
_NOT_UNDERSTOOD: Final = (
    Unfamiliar, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, pa.ArrowException,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a table. head: protocol and metadata, as its log has them. added: what it says of each file.

    content, contents: what of it counts, for the table and for each file. identities: of the files, which are all told
    by their paths.
    """

    is_table: ClassVar[bool] = True
    source: Source
    head: tuple[Action, Action]
    added: Mapping[str, Action]
    identities: Mapping[str, Identity]
    content: bytes
    contents: Mapping[str, bytes]

    def extents(self, node: int) -> list[Extent]:
        """The files of the version."""
        return [
            Extent(node, 0, at, path, self.identities[path], os.stat(path).st_mtime_ns)
            for at, path in enumerate(sorted(self.added))
        ]

    def narrowed(self, chosen: Sequence[Extent]) -> Source:
        """A source that is told by the schema and settings of the table, and by what is said of these files."""
        (listing,) = self.source.listings
        paths = tuple(sorted(extent.path for extent in chosen))
        content = joined("files of a table", self.content, *(self.contents[path] for path in paths))
        return replace(self.source, content=content, listings=(Listing(listing.root, "", paths),), version=None)

    def placed(self, chosen: Sequence[Extent], folder: Path) -> list[str]:
        """A table of its own, whose files are links."""
        (listing,) = self.source.listings
        protocol, metadata = self.head
        actions = [{"protocol": protocol}, {"metaData": metadata}]
        actions += ({"add": self.added[extent.path]} for extent in chosen)
        (folder / _LOG).mkdir(parents=True)
        (folder / _LOG / _FIRST).write_bytes(b"\n".join(map(msgspec.json.encode, actions)))
        for extent in chosen:
            link(extent.path, folder / os.path.relpath(extent.path, listing.root))
        return [str(folder)]


def version_of(read: Any, source: Source, identities: Sequence[Identity]) -> Version | str:
    """The version of a table that a read reads, file by file; or why it is read as a whole."""
    try:
        return _version_of(read.data_source, source, identities)
    except _NOT_UNDERSTOOD as error:
        return f"which files of a table are read is not known: {error}"


def _version_of(read: Any, source: Source, identities: Sequence[Identity]) -> Version:
    if len(source.listings) != 1 or source.listings[0].shown or read.schema:
        raise Unfamiliar("it is not read by its path alone")
    (listing,) = source.listings
    if source.version is not None and not _NUMBER.fullmatch(source.version):  # Python takes more for a number
        raise Unfamiliar(f"{source.version} is no number of a version")
    if not may_hold_tables(tempfile.gettempdir()):
        raise Unfamiliar("a table in the folder for temporary files would not be found")
    log = _Log(listing.root, None if source.version is None else int(source.version))
    head = log.head()
    here = dict(zip(source.files, identities, strict=True))
    added = {os.path.join(listing.root, name): action for name, action in log.added.items()}
    for path, action in added.items():
        if path not in here or here[path].size != action["size"]:
            raise Unfamiliar(f"{path} is not there, or is not what the log says")
    contents = {path: _canonical({name: said.get(name) for name in _OF_ROWS}) for path, said in added.items()}
    identified = {path: here[path] for path in added}
    return Version(source, head, added, identified, joined(*map(_canonical, head)), contents)


class _Log:
    """What a log says up to a version; None: up to its last one. added: what it says of each file, by its name."""

    def __init__(self, root: str, version: int | None) -> None:
        self.added: dict[str, Action] = {}
        self._folder = os.path.join(root, _LOG)
        self._protocol: Action = {}
        self._metadata: Action = {}
        commits, checkpoints = self._listed()
        last = max(commits) if version is None else version
        start = max((each for each in checkpoints if each <= last), default=-1)
        if last not in commits:
            raise Unfamiliar(f"its log has no version {last}")
        if start >= 0:
            self._take(self._checkpoint(start), sums_up=True)
        for commit in range(start + 1, last + 1):
            self._take(self._commit(commit))

    def _listed(self) -> tuple[set[int], set[int]]:
        """The versions of commits and of checkpoints. An engine may know more kinds of files, and go by them."""
        commits, checkpoints, others = set[int](), set[int](), set[int]()
        for name in os.listdir(self._folder):
            for pattern, versions in ((_COMMIT, commits), (_CHECKPOINT, checkpoints), (_BESIDE, others)):
                found = pattern.fullmatch(name)
                if found is not None:
                    versions.update(map(int, filter(None, found.groups())))
                    break
            else:
                raise Unfamiliar(f"{name} is in its log")
        if max(checkpoints | others, default=0) > max(commits):
            raise Unfamiliar("its log goes further than its commits")
        return commits, checkpoints

    def head(self) -> tuple[Action, Action]:
        """Protocol and metadata. Raises Unfamiliar if the table has features that are not known here."""
        version = self._protocol["minReaderVersion"]
        features = self._protocol.get("readerFeatures") or []
        if version > _NEWEST_READER or not _FEATURES.issuperset(features) or not self._metadata["schemaString"]:
            raise Unfamiliar(f"it has features that are not known here: {version} {' '.join(features)}")
        return self._protocol, self._metadata

    def _commit(self, version: int) -> list[Action]:
        with open(os.path.join(self._folder, f"{version:020}.json"), "rb") as file:
            return [msgspec.json.decode(line) for line in file if line.strip()]

    def _checkpoint(self, version: int) -> Iterator[Action]:
        path = os.path.join(self._folder, f"{version:020}.checkpoint.parquet")
        with pyarrow.parquet.ParquetFile(path) as file:
            rows = file.read(columns=_OF_CHECKPOINTS).to_pylist()
        for row in rows:
            said = {kind: _with_maps(body) for kind, body in row.items() if body is not None}
            if said:  # what it tells of other things was not read
                yield said

    def _take(self, actions: Iterable[Action], *, sums_up: bool = False) -> None:
        """Goes on with the actions of a version. sums_up: of all up to it, with files that were removed by others."""
        seen: set[str] = set()
        for action in actions:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                name = _name_of(body["path"])
                if name in seen:
                    raise Unfamiliar(f"{name} is named twice in a version")
                seen.add(name)
                if kind == "add":
                    self._add(name, body)
                elif not sums_up:
                    self._remove(name, body)
            elif kind == "metaData":
                self._metadata = {name: value for name, value in body.items() if value is not None}
            elif kind == "protocol":
                self._protocol = {name: value for name, value in body.items() if value is not None}
            elif kind not in _OF_NO_ROWS:
                raise Unfamiliar(f"its log says {kind}")

    def _add(self, name: str, body: Action) -> None:
        if body.get("deletionVector") is not None:
            raise Unfamiliar("rows of its files are marked as deleted")
        if name in self.added and self.added[name]["path"] != body["path"]:
            raise Unfamiliar(f"{name} is spelled in two ways")
        self.added[name] = {word: body[word] for word in _OF_FILES if body.get(word) is not None}

    def _remove(self, name: str, body: Action) -> None:
        if body.get("deletionVector") is not None:
            raise Unfamiliar("rows of its files were marked as deleted")
        if self.added.pop(name, None) is None:  # or it is there in a spelling that the engine takes for the same
            raise Unfamiliar(f"{name} is removed, and was not there")


def _name_of(path: str) -> str:
    """What a file is called below the table: paths in a log are parts of URLs, which may be spelled in several ways."""
    name = unquote(path, errors="strict")
    if name != os.path.normpath(name) or name.startswith(("/", "..")) or name.split("/")[0] == _LOG or ":" in name:
        raise Unfamiliar(f"{path} is no plain path below it")
    return name


def _with_maps(said: Action) -> Action:
    """What a row says, as a line of JSON would say it: Arrow has lists of pairs for maps."""
    made = {name: _with_maps(value) if isinstance(value, dict) else value for name, value in said.items()}
    return {name: dict(value) if name in _MAPS and value is not None else value for name, value in made.items()}


def _canonical(said: Action) -> bytes:
    """What is said, whatever the order it is said in."""
    return msgspec.json.encode(said, order="deterministic")
