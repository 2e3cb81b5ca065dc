"""Files that grow: what they held before is remembered, and proven to stand in them still.

In: identities of files. Out: the stretches they grew by, each with names of its own. Law: nothing is taken to be
unchanged; the bytes up to where a file ended before are hashed, and have the digest that was remembered, or the file is
a new one. A file is read for this only if it is longer than it once was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from nectar.errors import InputFailure
from nectar.model.entry import Content, Length
from nectar.store.inputs.identity import Identity, Reading, Remembered, Trust
from nectar.store.inputs.stretches import Stretch


class Grown(Struct, frozen=True):
    """Bytes that a file grew by. alone: the digest of these. upto: the identity of the file as it ended with them."""

    start: int
    end: int
    alone: bytes
    upto: Identity


class Files(Protocol):
    """Files that can grow."""

    def place(self, path: str) -> bytes:
        """32 bytes that stand for where a file lies."""

    def is_exposed(self, path: str) -> bool:
        """Whether others can change what lies there."""

    def read(self, path: str) -> Reading:
        """The content of the file."""

    def read_stretches(
        self, path: str, known: dict[int, set[bytes]], quoted: bool
    ) -> tuple[Reading, list[Stretch]] | None:
        """A file cut at the ends that are known; None if it begins with nothing that is known, or changes."""


class Growth:
    """What is remembered of how files grew."""

    def __init__(self, remembered: Remembered, files: Files) -> None:
        self._remembered = remembered
        self._files = files
        self._proven: dict[tuple[str, bool], tuple[bytes, tuple[Grown, ...]]] = {}

    def watch(self, identities: Sequence[Identity]) -> None:
        """These files are known again when they have grown."""
        lengths = self._lengths(identities)
        contents = self._remembered.known([identity.stamp for identity in identities])
        new = [
            length
            for identity, (place, before) in zip(identities, lengths, strict=True)
            if (length := self._length(identity, place, before, contents.get(identity.stamp))) is not None
        ]
        if new:
            self._remembered.remember_lengths(new)

    def grown(self, identities: Sequence[Identity], quoted: bool) -> list[tuple[Grown, ...]]:
        """For each file the stretches it grew by; none if it is not known to have grown."""
        local = [identity for identity in identities if "://" not in identity.url]
        before = dict(zip(local, self._lengths(local), strict=True))
        return [self._grown(one, before[one][1], quoted) if one in before else () for one in identities]

    def _lengths(self, identities: Sequence[Identity]) -> list[tuple[bytes, Sequence[Length]]]:
        places = [self._files.place(identity.url) for identity in identities]
        found = self._remembered.lengths(list(dict.fromkeys(places)))
        return [(place, found.get(place, ())) for place in places]

    def _length(
        self, identity: Identity, place: bytes, before: Sequence[Length], known: Content | None
    ) -> Length | None:
        """What is to be remembered of a file; None if it is already."""
        size = identity.size or 0
        digest = identity.content
        if digest is None and known is not None and known.certain:
            digest = known.digest
        if digest is None and any(length.size < size for length in before):
            digest = self._read(identity)
        quiet = identity.origin is not None
        same = [length for length in before if length.stamp == identity.stamp]
        if same and (digest, quiet) in ((same[0].digest, same[0].quiet), (None, quiet)):
            return None
        return Length(place, size, identity.stamp, quiet, digest)

    def _read(self, identity: Identity) -> bytes | None:
        reading = self._files.read(identity.url)
        if reading.seen.stamp != identity.stamp:
            return None
        self._remembered.remember({identity.stamp: reading.content})
        return reading.digest

    def _grown(self, identity: Identity, before: Sequence[Length], quoted: bool) -> tuple[Grown, ...]:
        size = identity.size or 0
        shorter = [length for length in before if length.size < size and length.digest is not None]
        if not shorter:
            return ()
        stamp, proven = self._proven.get((identity.url, quoted), (b"", ()))
        if stamp == identity.stamp and identity.origin is not None:
            return proven
        proven = self._prove(identity, shorter, quoted)
        self._proven[identity.url, quoted] = identity.stamp, proven
        return proven

    def _prove(self, identity: Identity, before: Sequence[Length], quoted: bool) -> tuple[Grown, ...]:
        known: dict[int, set[bytes]] = {}
        for length in before:
            known.setdefault(length.size, set()).add(length.digest or b"")
        try:
            read = self._files.read_stretches(identity.url, known, quoted)
        except InputFailure:
            return ()
        if read is None:
            return ()
        reading, found = read
        if reading.seen.stamp != identity.stamp or identity.content not in (None, reading.digest):
            return ()
        if reading.seen.trust is not Trust.NEVER:
            self._remembered.remember({identity.stamp: reading.content})
        exposed = self._files.is_exposed(identity.url)
        ends = [_identity_then(identity, stretch, before, exposed) for stretch in found[:-1]]
        whole = Identity(identity.url, identity.size, identity.origin, reading.digest, identity.stamp, exposed=exposed)
        ends.append(whole)
        return tuple(
            Grown(stretch.start, stretch.end, stretch.alone, upto) for stretch, upto in zip(found, ends, strict=True)
        )


def _identity_then(identity: Identity, stretch: Stretch, before: Sequence[Length], exposed: bool) -> Identity:
    """The identity of a file as it was when it ended here."""
    same = [length for length in before if (length.size, length.digest) == (stretch.end, stretch.upto)]
    stamp = next((length.stamp for length in same if length.quiet), None)
    return Identity(identity.url, stretch.end, stamp, stretch.upto, stamp or same[0].stamp, exposed=exposed)
