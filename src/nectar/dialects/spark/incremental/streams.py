"""The files that reads read, in the order in which they came; runs of them, and reads that see no other file.

Reads that are cut together make one stream: a part of it is what each of them gives over the files of the part. No read
promises an order of rows, so files stand by the time of their last change: what is new comes last, whatever its name.
Law: a read over a run of files has the rows that the whole read has of these files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from nectar.dialects.spark.incremental.messages import Relation
from nectar.dialects.spark.keyed import Keyed, key_of_read
from nectar.dialects.spark.reads import Listing, Source
from nectar.model.entry import Span
from nectar.store.inputs.identify import Identity


@dataclass(frozen=True, slots=True)
class Extent:
    """A file of a read. node: of the read. listing, at: which of its paths, and which file below it. changed: when."""

    node: int
    listing: int
    at: int
    path: str
    identity: Identity
    changed: int


@dataclass(frozen=True)
class Cut:
    """Reads cut together, a part for each file. reads: the steps, each with its node."""

    keyed: Keyed
    reads: Mapping[int, int]
    extents: tuple[Extent, ...]
    seams: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.extents)

    @property
    def first_names(self) -> tuple[bytes, ...]:
        """The names of the first file."""
        return self.extents[0].identity.names

    def size_of(self, start: int, end: int) -> int:
        """Bytes of a run of files."""
        return self._sizes[end] - self._sizes[start]

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of files is found again: by the first, the last, and how many there are."""
        first, last, count = self.ends_of(start, end)
        return (Span(first[0], last[0], count),)

    def runs_of(self, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
        """The runs of files that may have been found with these spans."""
        if len(spans) != 1:
            return
        (span,) = spans
        for start in self._places.get(span.first, ()):
            end = start + span.count
            if start < end <= self.count and span.last in self.extents[end - 1].identity.names:
                yield start, end

    def ends_of(self, start: int, end: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...], int]:
        """The names of the first and of the last file of a run, and how many there are."""
        return self.extents[start].identity.names, self.extents[end - 1].identity.names, end - start

    def identities_of(self, start: int, end: int) -> list[Identity]:
        """Of a run of files."""
        return [extent.identity for extent in self.extents[start:end]]

    def keys_of(self, start: int, end: int, which: int) -> dict[int, bytes]:
        """The keys that the reads would have over a run of files alone."""
        by_node = {node: self._key(node, start, end, which) for node in set(self.reads.values())}
        return {read: by_node[node] for read, node in self.reads.items()}

    def _key(self, node: int, start: int, end: int, which: int) -> bytes:
        source, names = self._source(node), []
        listings: list[Listing] = []
        chosen = self._chosen(node, start, end)
        for at, listing in enumerate(source.listings):
            extents = sorted((each for each in chosen if each.listing == at), key=lambda each: each.at)
            names += [each.identity.names[which] for each in extents]
            listings.append(replace(listing, files=tuple(each.path for each in extents)))
        return key_of_read(self.keyed.frame, replace(source, listings=tuple(listings)), names)

    def _chosen(self, node: int, start: int, end: int) -> list[Extent]:
        return [extent for extent in self.extents[start:end] if extent.node == node]

    def _source(self, node: int) -> Source:
        return next(self.keyed.reads[read][0] for read, its in self.reads.items() if its == node)

    def paths_of(self, node: int, start: int, end: int, folder: Path) -> list[str]:
        """Paths under which a read sees a run of files alone. folder: where they are linked, under the same names."""
        return linked(self._source(node).listings, self._chosen(node, start, end), folder)

    def read_of(self, node: int, paths: Sequence[str], schema: str | None) -> Any:
        """A relation that reads these paths as a read does, with a schema that is found out or prescribed."""
        read = next(read for read, its in self.reads.items() if its == node)
        return _read_of(self.keyed.steps[read].read, paths, schema)

    @cached_property
    def _sizes(self) -> list[int]:
        return list(accumulate((extent.identity.size or 0 for extent in self.extents), initial=0))

    @cached_property
    def _places(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for at, extent in enumerate(self.extents):
            for name in extent.identity.names:
                found.setdefault(name, []).append(at)
        return found


def cut_of(keyed: Keyed, reads: frozenset[int]) -> Cut:
    """Reads, cut into their files. Raises OSError if a file is gone."""
    nodes = {read: keyed.node_of[read] for read in sorted(reads)}
    extents: list[Extent] = []
    for node in dict.fromkeys(nodes.values()):
        source, identities = next(keyed.reads[read] for read in nodes if nodes[read] == node)
        left = iter(identities)
        for number, listing in enumerate(source.listings):
            extents += [
                Extent(node, number, at, path, next(left), os.stat(path).st_mtime_ns)
                for at, path in enumerate(listing.files)
            ]
    return Cut(keyed, nodes, tuple(sorted(extents, key=lambda extent: (extent.changed, extent.path, extent.node))))


class Folders:
    """Folders of links, until they are no longer needed."""

    def __init__(self) -> None:
        self._made: list[Path] = []

    def new(self) -> Path:
        """An empty folder."""
        self._made.append(Path(tempfile.mkdtemp(prefix="nectar-")))
        return self._made[-1]

    def close(self) -> None:
        """All of them are gone."""
        for folder in self._made:
            shutil.rmtree(folder, ignore_errors=True)
        self._made.clear()


def linked(listings: Sequence[Listing], chosen: Sequence[Extent], folder: Path) -> list[str]:
    """Paths under which an engine finds these files, and no others, as it found them under the paths of the read."""
    paths: list[str] = []
    for number, listing in enumerate(listings):
        extents = [extent for extent in chosen if extent.listing == number]
        for extent in extents:
            _link(extent.path, Path(link_of(listings, extent, folder)))
        if not extents:
            continue
        root = folder / str(number)
        _, _, pattern = listing.shown.partition("\0")
        if listing.files == (listing.root,):
            paths.append(link_of(listings, extents[0], folder))
        else:
            paths.append(f"{root}/{pattern.lstrip('/')}" if pattern else str(root))
    if not paths:
        (folder / "empty").mkdir(parents=True)
        paths.append(str(folder / "empty"))
    return paths


def link_of(listings: Sequence[Listing], extent: Extent, folder: Path) -> str:
    """Where a file is linked, under the name that it has below the path of the read."""
    listing = listings[extent.listing]
    is_file = listing.files == (listing.root,)
    name = os.path.basename(listing.root) if is_file else os.path.relpath(extent.path, listing.root)
    return str(folder / str(extent.listing) / name)


def _link(file: str, at: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(os.path.realpath(file), at)


def _read_of(read: Any, paths: Sequence[str], schema: str | None) -> Any:
    made = Relation()
    made.read.CopyFrom(read)
    source = made.read.data_source
    del source.paths[:]
    source.paths.extend(paths)
    for name in [name for name in source.options if name.lower() == "path"]:
        del source.options[name]
    if schema is not None:
        source.schema = schema
    return made
