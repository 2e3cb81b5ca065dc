"""The files of a read: which there are, and how an engine sees some of them and no others.

Law: a read over some files, linked under the names they have, has the rows that the whole read has of these files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

from nectar.dialects.spark.reads import Listing, Source
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


class Holding(Protocol):
    """What a read reads, file by file."""

    @property
    def is_table(self) -> bool:
        """Whether it is written somewhere which files there are, and what schema they have."""

    def extents(self, node: int) -> list[Extent]:
        """The files. node: of the read. Raises OSError if one is gone."""

    def narrowed(self, chosen: Sequence[Extent]) -> Source:
        """What a read of these files alone would read."""

    def placed(self, chosen: Sequence[Extent], folder: Path) -> list[str]:
        """Paths under which a read sees these files alone. folder: an empty one, for links to them."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files that are read because of where they are."""

    is_table: ClassVar[bool] = False
    source: Source
    identities: Sequence[Identity]

    def extents(self, node: int) -> list[Extent]:
        """All files below the paths of the read."""
        left = iter(self.identities)
        return [
            Extent(node, number, at, path, next(left), os.stat(path).st_mtime_ns)
            for number, listing in enumerate(self.source.listings)
            for at, path in enumerate(listing.files)
        ]

    def narrowed(self, chosen: Sequence[Extent]) -> Source:
        """The same paths with fewer files below them."""
        listings = []
        for number, listing in enumerate(self.source.listings):
            files = tuple(extent.path for extent in in_order(chosen) if extent.listing == number)
            listings.append(replace(listing, files=files))
        return replace(self.source, listings=tuple(listings))

    def placed(self, chosen: Sequence[Extent], folder: Path) -> list[str]:
        """Links under the same names."""
        return linked(self.source.listings, chosen, folder)


def in_order(extents: Sequence[Extent]) -> list[Extent]:
    """Files as the read lists them."""
    return sorted(extents, key=lambda extent: (extent.listing, extent.at))


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
            link(extent.path, Path(link_of(listings, extent, folder)))
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


def link(file: str, at: Path) -> None:
    """A link to a file, and the folders above it."""
    at.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(os.path.realpath(file), at)
