"""Delta tables, file by file: which files a version has, and tables that have some of them and no others.

In: a read of a table. Out: a Table, or why its files cannot be told. Law: a table that is made of some files of another
one has the rows that the other has of these files: it has the same schema, features and settings, and says the same of
each file. Of a log only what is known here is believed; with anything else in it, the table is read as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet

from nectar.dialects.spark.incremental.files import Extent, link
from nectar.dialects.spark.reads import Listing, Source
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.store.inputs.identify import Identity

_LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_FIRST: Final = f"{0:020}.json"
_OF_NO_ROWS: Final = frozenset({"commitInfo", "txn", "domainMetadata", "cdc", "checkpointMetadata"})
_FEATURES: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
_NEWEST_READER: Final = 3  # from which on features are named
_OF_FILES: Final = ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats")
_OF_ROWS: Final = ("partitionValues", "size", "stats")  # what is said of a file and may change what is read of it
_OF_CHECKPOINTS: Final = [
    *(f"add.{name}" for name in _OF_FILES),
    "add.deletionVector",
    "metaData",
    "protocol",
    "sidecar",
]
_MAPS: Final = frozenset({"partitionValues", "configuration", "options"})

Action = dict[str, Any]


class Unfamiliar(EnvironmentFailure):
    """A table, or a log, of which it is not known what it says."""


@dataclass(frozen=True, slots=True)
class Table:
    """A version of a table. head: protocol and metadata, as its log has them. added: what it says of each file.

    identities: of these files, by path.
    """

    source: Source
    head: tuple[Action, Action]
    added: Mapping[str, Action]
    identities: Mapping[str, Identity]
    is_table: bool = True

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
        said = [_canonical({name: self.added[path].get(name) for name in _OF_ROWS}) for path in paths]
        content = joined("files of a table", *map(_canonical, self.head), *said)
        return replace(self.source, content=content, listings=(Listing(listing.root, "", paths),), version=None)

    def placed(self, chosen: Sequence[Extent], folder: Path) -> list[str]:
        """A table of its own, whose files are links."""
        (listing,) = self.source.listings
        (folder / _LOG).mkdir(parents=True)
        protocol, metadata = self.head
        actions = [{"protocol": protocol}, {"metaData": metadata}]
        for extent in chosen:
            link(extent.path, folder / os.path.relpath(extent.path, listing.root))
            actions.append({"add": self.added[extent.path]})
        (folder / _LOG / _FIRST).write_bytes(b"\n".join(map(msgspec.json.encode, actions)))
        return [str(folder)]


def table_of(read: Any, source: Source, identities: Sequence[Identity]) -> Table | str:
    """The version of a table that a read reads, file by file; or why it is read as a whole."""
    try:
        return _table_of(read.data_source, source, identities)
    except (Unfamiliar, OSError, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        return f"which files of a table are read is not known: {error}"


def _table_of(read: Any, source: Source, identities: Sequence[Identity]) -> Table:
    if len(source.listings) != 1 or source.listings[0].shown or read.schema:
        raise Unfamiliar("it is not read by its path alone")
    (listing,) = source.listings
    options = {name.lower(): value for name, value in read.options.items()}
    wanted = options.get("versionasof")
    log = _Log(listing.root, int(wanted) if wanted is not None else None)
    head = log.head()
    here = dict(zip(source.files, identities, strict=True))
    added = {os.path.join(listing.root, unquote(path)): action for path, action in log.added.items()}
    for path, action in added.items():
        if path not in here or here[path].size != action["size"]:
            raise Unfamiliar(f"{path} is not there, or is not what the log says")
    return Table(source, head, added, {path: here[path] for path in added})


class _Log:
    """What a log says up to a version; None: up to its last one."""

    def __init__(self, root: str, version: int | None) -> None:
        self.added: dict[str, Action] = {}
        self._folder = os.path.join(root, _LOG)
        self._protocol: Action = {}
        self._metadata: Action = {}
        names = os.listdir(self._folder)
        commits, checkpoints = (
            {int(found[1]) for found in map(pattern.fullmatch, names) if found} for pattern in (_COMMIT, _CHECKPOINT)
        )
        last = max(commits) if version is None else version
        start = max((each for each in checkpoints if each <= last), default=-1)
        if not commits.issuperset(range(start + 1, last + 1)) or last not in commits:
            raise Unfamiliar(f"its log has no version {last} that could be read")
        if start >= 0:
            self._take(self._checkpoint(start))
        for commit in range(start + 1, last + 1):
            self._take(self._commit(commit))

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

    def _take(self, actions: Sequence[Action] | Iterator[Action]) -> None:
        seen: set[str] = set()
        for action in actions:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                if body.get("deletionVector") is not None:
                    raise Unfamiliar("rows of its files are marked as deleted")
                path = body["path"]
                if path in seen:
                    raise Unfamiliar(f"{path} is named twice in a version")
                seen.add(path)
                self.added.pop(path, None)
                if kind == "add":
                    self.added[path] = {name: body[name] for name in _OF_FILES if body.get(name) is not None}
            elif kind == "metaData":
                self._metadata = {name: value for name, value in body.items() if value is not None}
            elif kind == "protocol":
                self._protocol = {name: value for name, value in body.items() if value is not None}
            elif kind not in _OF_NO_ROWS:
                raise Unfamiliar(f"its log says {kind}")


def _with_maps(said: Action) -> Action:
    """What a row says, as a line of JSON would say it: Arrow has lists of pairs for maps."""
    made = {name: _with_maps(value) if isinstance(value, dict) else value for name, value in said.items()}
    return {name: dict(value) if name in _MAPS and value is not None else value for name, value in made.items()}


def _canonical(said: Action) -> bytes:
    """What is said, whatever the order it is said in; statistics are JSON within JSON."""
    stats = said.get("stats")
    told = {**said, "stats": msgspec.json.decode(stats)} if stats else said
    return msgspec.json.encode(told, order="deterministic")
