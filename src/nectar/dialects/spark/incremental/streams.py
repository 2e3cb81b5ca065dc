"""Reads that are cut together: one stream of files, in the order in which they came, and runs of it.

A part of the stream is what each of the reads gives over the files of the part. No read promises an order of rows, so
files stand by the time of their last change: what is new comes last, whatever its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from nectar.dialects.spark.incremental.files import Extent, Holding, in_order
from nectar.dialects.spark.incremental.messages import Relation
from nectar.dialects.spark.keyed import Keyed, key_of_read
from nectar.dialects.spark.reads import VERSION
from nectar.model.entry import Span
from nectar.store.inputs.identify import Identity

_OF_THE_WHOLE: Final = frozenset({"path", VERSION})  # options that say which files a read has


@dataclass(frozen=True)
class Cut:
    """Reads cut together, a part for each file. reads: the steps, each with its node. holdings: what nodes read."""

    keyed: Keyed
    reads: Mapping[int, int]
    holdings: Mapping[int, Holding]
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

    @property
    def has_tables(self) -> bool:
        """Whether more than files is read: then no result over some of them is a part of one over more."""
        return any(holding.is_table for holding in self.holdings.values())

    @property
    def seen(self) -> list[Identity]:
        """All that the reads have looked at."""
        return [identity for read in self.reads for identity in self.keyed.reads[read][1]]

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
        chosen = self._chosen(node, start, end)
        names = [extent.identity.names[which] for extent in in_order(chosen)]
        return key_of_read(self.keyed.frame, self.holdings[node].narrowed(chosen), names)

    def _chosen(self, node: int, start: int, end: int) -> list[Extent]:
        return [extent for extent in self.extents[start:end] if extent.node == node]

    def paths_of(self, node: int, start: int, end: int, folder: Path) -> list[str]:
        """Paths under which a read sees a run of files alone. folder: where they are linked, under the same names."""
        return self.holdings[node].placed(self._chosen(node, start, end), folder)

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


def cut_of(keyed: Keyed, holdings: Mapping[int, Holding]) -> Cut:
    """Reads, cut into their files. holdings: what each of them reads, by its step. Raises OSError if a file is gone."""
    nodes = {read: keyed.node_of[read] for read in sorted(holdings)}
    by_node = {node: holdings[read] for read, node in nodes.items()}
    extents = [extent for node, holding in by_node.items() for extent in holding.extents(node)]
    ordered = sorted(extents, key=lambda extent: (extent.changed, extent.path, extent.node))
    return Cut(keyed, nodes, by_node, tuple(ordered))


def _read_of(read: Any, paths: Sequence[str], schema: str | None) -> Any:
    made = Relation()
    made.read.CopyFrom(read)
    source = made.read.data_source
    del source.paths[:]
    source.paths.extend(paths)
    for name in [name for name in source.options if name.lower() in _OF_THE_WHOLE]:
        del source.options[name]
    if schema is not None:
        source.schema = schema
    return made
