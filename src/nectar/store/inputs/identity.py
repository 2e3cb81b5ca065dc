"""What is known of an input: its identity, and the contents that are remembered from earlier runs.

An identity has up to two names: the content (BLAKE3 of the bytes), and the origin (a hash of where the file is and what
its system says of its last change; no byte read). Law: a name belongs to one content for ever. So an origin is a name
only once its file has been quiet for so long that a change from now on would show. Contents and origins are hashed in
different modes of BLAKE3: no file's bytes can be made to look like the origin of another. What others can write to may
be something else when it is read than when it was hashed: a result of it is never one of the user's own files.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import blake3
from msgspec import Struct
from msgspec.structs import force_setattr

from nectar.keys.expansion import joined
from nectar.model.entry import Content, Length

_STAMP_KEY: Final = blake3.blake3(derive_key_context="nectar: origin of an input, scheme 1").digest()


class Trust(enum.Enum):
    """What a stamp is worth.

    NOW: a change from now on would show in it. LATER: it may be changed once more without showing it, until it has been
    quiet for a while. NEVER: its system does not say reliably when it was changed.
    """

    NOW = enum.auto()
    LATER = enum.auto()
    NEVER = enum.auto()


class Remembered(Protocol):
    """Contents by the stamps of the files they were read from. Where two calls disagree, either may win.

    A content that is not certain has to be read once more before it is believed.
    """

    def known(self, origins: Sequence[bytes]) -> Mapping[bytes, Content]:
        """What is remembered of these; those of which nothing is are left out."""

    def remember(self, contents: Mapping[bytes, Content]) -> None:
        """These are known from now on."""

    def lengths(self, places: Sequence[bytes]) -> Mapping[bytes, Sequence[Length]]:
        """How long the inputs at these places were, the latest first; those that were never seen are left out."""

    def remember_lengths(self, lengths: Sequence[Length]) -> None:
        """These are known from now on."""


class RememberedHere:
    """Contents remembered by this process only."""

    def __init__(self) -> None:
        self._contents: dict[bytes, Content] = {}
        self._lengths: dict[bytes, dict[bytes, Length]] = {}

    def known(self, origins: Sequence[bytes]) -> dict[bytes, Content]:
        """What is remembered of these."""
        contents = self._contents
        return {origin: contents[origin] for origin in origins if origin in contents}

    def remember(self, contents: Mapping[bytes, Content]) -> None:
        """These are known from now on."""
        self._contents.update(contents)

    def lengths(self, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
        """How long the inputs at these places were, the latest first."""
        return {place: list(self._lengths[place].values())[::-1] for place in places if place in self._lengths}

    def remember_lengths(self, lengths: Sequence[Length]) -> None:
        """These are known from now on."""
        for length in lengths:
            self._lengths.setdefault(length.place, {})[length.stamp] = length


class Identity(Struct, frozen=True):
    """Which bytes a file or a URL stands for.

    url: an absolute path, or a URL without credentials. size: in bytes, None where the source does not tell. origin:
    32 bytes, None if it cannot be trusted. content: 32 bytes, None if it was not read. stamp: hash of what the system
    said of the file; serves to notice a change, and is no name: it may be the same for two contents. names: computed,
    those under which results may be looked up and kept, the best first; at least one. exposed: others can change what
    is read between two looks, and change it back; then its content, too, is a name of what lies at this place only.
    """

    url: str
    size: int | None
    origin: bytes | None
    content: bytes | None
    stamp: bytes
    names: tuple[bytes, ...] = ()
    exposed: bool = False

    def __post_init__(self) -> None:
        # Not a property: of each of thousands of files it is asked for many times.
        content = self.content
        if self.exposed and content is not None:
            content = stamp_of(b"exposed" + joined(self.url, content))
        force_setattr(self, "names", tuple(name for name in (content, self.origin) if name is not None))


class Seen(Struct, frozen=True):
    """What a system says of a file without reading it."""

    url: str
    size: int | None
    stamp: bytes
    trust: Trust

    def identified(self, content: bytes | None, *, exposed: bool = False) -> Identity:
        """The identity that follows from this."""
        origin = self.stamp if self.trust is Trust.NOW else None
        return Identity(self.url, self.size, origin, content, self.stamp, exposed=exposed)


class Reading(Struct, frozen=True):
    """A file that was read whole, and did not visibly change meanwhile."""

    seen: Seen
    digest: bytes

    @property
    def content(self) -> Content:
        """As it may be remembered."""
        return Content(self.digest, certain=self.seen.trust is Trust.NOW)


def stamp_of(encoded: bytes) -> bytes:
    """The 32 bytes that stand for what a system said of a file; encoded is tagged and carries its lengths."""
    return blake3.blake3(encoded, key=_STAMP_KEY).digest()
