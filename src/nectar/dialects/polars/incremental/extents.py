"""What streams consist of: whole files, or the stretches that a file of lines grew by.

In: the files of a scan. Out: extents, in order. Law: reading the extents one after the other gives what reading the
files gives. A stretch is read from a copy: the line that names the columns, if there is one, and its bytes, which are
proven to be those its name stands for.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import blake3
from msgspec import Struct

from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.scans import Lines, lines_of
from nectar.errors import InputFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.store.inputs.growth import Grown
from nectar.store.inputs.identity import Identity

Growth = Callable[[Sequence[Identity], bool], Sequence[tuple[Grown, ...]]]

_LONGEST_HEADER: Final = 1 << 20
_BLOCK: Final = 8 << 20
# Beginnings by which files are taken for compressed ones (gzip, zlib, Zstandard), or for a mark of their encoding.
_SIGNS: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf")


class Extent(Struct, frozen=True):
    """A file, or some of its lines.

    end: None for the last of a file. head: what stands before its bytes where they are read alone. alone: their digest;
    None for a whole file. identity: of the extent; upto: of the file as it ended with it.
    """

    path: str
    start: int
    end: int | None
    head: bytes
    alone: bytes | None
    identity: Identity
    upto: Identity

    def follows(self, before: Extent | None) -> bool:
        """Whether its bytes come right after those of another."""
        return before is not None and self.start > 0 and (before.path, before.end) == (self.path, self.start)


def extents_of(
    plan: Plan, number: int, files: Sequence[str], identities: Sequence[Identity], growth: Growth | None
) -> tuple[Extent, ...]:
    """What a scan reads, cut as far as it can be."""
    lines = None if growth is None else lines_of(plan, number)
    if growth is None or lines is None:
        return tuple(map(_whole, files, identities))
    found: list[Extent] = []
    for file, identity, grown in zip(files, identities, growth(identities, lines.quoted), strict=True):
        found += _cut(file, grown, lines) or [_whole(file, identity)]
    return tuple(found)


def files_of_lines(keyed: Keyed) -> list[Identity]:
    """The files of a query that may grow."""
    found = [each for number, _, each in keyed.sources if lines_of(keyed.plan, number) is not None]
    return list(dict.fromkeys(identity for identities in found for identity in identities))


def names_of(extents: Sequence[Extent], which: int) -> list[bytes]:
    """The names of extents that follow each other: a file from its beginning has one, as it had when it ended there."""
    return [identity.names[which] for identity in _identities(extents)]


def _identities(extents: Sequence[Extent]) -> list[Identity]:
    found: list[Identity] = []
    before, from_start = None, False
    for extent in extents:
        if extent.follows(before) and from_start:
            found[-1] = extent.upto
        else:
            from_start = extent.start == 0
            found.append(extent.identity)
        before = extent
    return found


def _whole(file: str, identity: Identity) -> Extent:
    return Extent(file, 0, None, b"", None, identity, identity)


def _cut(file: str, grown: tuple[Grown, ...], lines: Lines) -> list[Extent]:
    """A file that has grown, in stretches; none if it cannot be read in stretches."""
    # The names of folders may become columns, and a copy lies in another folder.
    head = None if len(grown) < 2 or "=" in file else _head(file, [each.end for each in grown[:-1]], lines)
    if head is None:
        return []
    found: list[Extent] = []
    for at, each in enumerate(grown):
        if at == 0:
            identity = each.upto
        else:
            name = digest_of(joined("extent", head, each.alone))
            identity = Identity(
                each.upto.url, each.end - each.start, None, name, each.upto.stamp, exposed=each.upto.exposed
            )
        end = None if at == len(grown) - 1 else each.end
        found.append(Extent(file, each.start, end, head if at else b"", each.alone, identity, each.upto))
    return found


def _head(file: str, ends: Sequence[int], lines: Lines) -> bytes | None:
    """What makes the lines after each of these ends readable alone; None if nothing does."""
    with open(file, "rb") as opened:
        first = opened.readline(_LONGEST_HEADER)
        following = [_at(opened, end) for end in ends]
    if first.startswith(_SIGNS[:-1]):
        return None
    if not lines.header:
        return None if any(each.startswith(_SIGNS) for each in following) else b""
    blank = not first.strip() or (lines.comment and first.startswith(lines.comment))
    open_quotes = lines.quoted and first.count(b'"') % 2
    return None if blank or open_quotes or not first.endswith(b"\n") or len(first) > ends[0] else first


def _at(file: BinaryIO, place: int) -> bytes:
    """The first bytes from a place on."""
    file.seek(place)
    return file.read(4)


class Copies:
    """Stretches as files of their own, until they are no longer needed."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._made: dict[tuple[str, int, int | None], str] = {}

    def files(self, extents: Sequence[Extent]) -> list[str]:
        """Files that give what the extents give, one after the other.

        Raises:
            InputFailure: if a file is not what it was.
        """
        return [self._file(run) for run in _runs(extents)]

    def close(self) -> None:
        """All copies are gone."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._made.clear()

    def _file(self, run: Sequence[Extent]) -> str:
        if run[0].start == 0 and run[-1].end is None:
            return run[0].path
        which = (run[0].path, run[0].start, run[-1].end)
        if which not in self._made:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="nectar-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            copy = self._folder / str(len(self._made))
            _refuse_to_fill(self._folder, sum((each.upto.size or 0) - each.start for each in run))
            _copy(run, copy)
            self._made[which] = str(copy)
        return self._made[which]


def _runs(extents: Sequence[Extent]) -> Iterator[list[Extent]]:
    """The extents, those together that follow each other within one file."""
    run: list[Extent] = []
    for extent in extents:
        if run and not extent.follows(run[-1]):
            yield run
            run = []
        run.append(extent)
    if run:
        yield run


def _refuse_to_fill(folder: Path, size: int) -> None:
    """Raises InputFailure if a copy would take more than half of what is free."""
    if size > shutil.disk_usage(folder).free // 2:
        raise InputFailure(f"{folder} has no room for a copy of the {size:,} bytes that were added to a file")


def _copy(run: Sequence[Extent], to: Path) -> None:
    with open(run[0].path, "rb", buffering=0) as source, open(to, "wb", buffering=0) as target:
        source.seek(run[0].start)
        target.write(run[0].head)
        for extent in run:
            hasher = blake3.blake3()
            left = (extent.upto.size or 0) - extent.start
            while left > 0 and (block := source.read(min(left, _BLOCK))):
                hasher.update(block)
                target.write(block)
                left -= len(block)
            if hasher.digest() != extent.alone:
                os.unlink(to)
                raise InputFailure(f"{extent.path} was rewritten while it was read")
