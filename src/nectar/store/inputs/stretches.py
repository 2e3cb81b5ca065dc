"""A file of lines, cut where it ended before: one pass over its bytes, which proves what it began with.

In: an open file, and the ends it may have had, with digests of the bytes up to there. Out: stretches that follow each
other. Law: a stretch ends at a known end only if the bytes up to there have a digest that is known of it, and a line
ends there. Read and not mapped: a mapped file that is truncated meanwhile ends the process.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import Final

import blake3
from msgspec import Struct

from nectar.keys.hashing import threads_for

_BLOCK: Final = 8 << 20
_SEVERAL_THREADS_FROM: Final = 64 << 20  # below, starting the threads costs what they save
_LINE_ENDS: Final = (b"\n", b"\r")


class Stretch(Struct, frozen=True):
    """Bytes of a file. alone: the digest of these. upto: the digest of all bytes of the file up to their end."""

    start: int
    end: int
    alone: bytes
    upto: bytes


def stretches(fd: int, size: int, known: Mapping[int, Collection[bytes]], quoted: bool) -> list[Stretch]:
    """The file cut at known ends; a list of one at most if it begins with nothing that is known."""
    ends = sorted(end for end in known if 0 < end < size)
    threads = threads_for(size, _SEVERAL_THREADS_FROM)
    whole = blake3.blake3(max_threads=threads)
    alone = None  # the first stretch begins with the file: both digests are the same
    found: list[Stretch] = []
    start, at, quotes = 0, 0, 0
    block = bytearray(min(_BLOCK, size))
    buffer = memoryview(block)
    with io.FileIO(fd, closefd=False) as file:
        while at < size:
            if ends and at == ends[0]:
                del ends[0]
                if whole.digest() in known[at] and quotes % 2 == 0 and _is_between_lines(file, at):
                    found.append(_stretch(start, at, whole, alone))
                    start, alone = at, blake3.blake3(max_threads=threads)
                if not ends and not found:
                    return []
            got = file.readinto(buffer[: (ends[0] if ends else size) - at])
            if not got:
                return []  # it became shorter
            whole.update(buffer[:got])
            if alone is not None:
                alone.update(buffer[:got])
            if quoted and ends and block.find(b'"', 0, got) >= 0:  # far faster than counting where there are none
                quotes += block.count(b'"', 0, got)
            at += got
    return [*found, _stretch(start, size, whole, alone)]


def _stretch(start: int, end: int, whole: blake3.blake3, alone: blake3.blake3 | None) -> Stretch:
    upto = whole.digest()
    return Stretch(start, end, upto if alone is None else alone.digest(), upto)


def _is_between_lines(file: io.FileIO, at: int) -> bool:
    """Whether a line ends here, and one that is not empty begins: readers skip empty lines where a file begins."""
    file.seek(at - 1)
    last, first = file.read(1), file.read(1)
    file.seek(at)
    return last == b"\n" and first not in _LINE_ENDS
