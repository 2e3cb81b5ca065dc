"""The manifest: what a result consists of, written last, read first.

In: bytes of a manifest. Out: a `Manifest` whose names stay inside its folder, or the reason why it is none. Its
digest stands in the catalog, so a manifest that differs by one bit is found at every opening.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from blake3 import blake3

from nectar.errors import StoreFailure
from nectar.model.entry import Kind, Span
from nectar.store.layout import is_part

FORMAT: Final = 3  # of the manifest and of everything it describes; a reader refuses what is newer
CHUNK: Final = 1 << 20  # bytes that are verified at once: a column is read without the others, and hardly more of it
DIGEST: Final = 32  # bytes of a BLAKE3 digest

Writer = Literal["pyarrow", "polars", "pickle", "raw", "engine"]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its name in the folder, its length, its BLAKE3 digest in hexadecimal digits.

    chunks: the digests of its chunks, one after the other; then `blake3` is the digest of these. Empty if it has one
    chunk only, or was written in a format before 3.
    """

    name: str
    size: int
    blake3: str
    chunks: bytes = b""


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of a table, for people: the files themselves carry the types that count."""

    name: str
    type: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a result consists of.

    writer: which library wrote the parts, since not every reader knows every type. buffers: offset and length of the
    buffers of an object in the file beside its pickle. made_by: the library whose table was given. chunk: bytes of a
    chunk. subject: digest of what it is the result of, as `subject_of` gives it; empty if it says nothing of that.
    """

    kind: Kind
    writer: Writer
    rows: int
    parts: tuple[Part, ...]
    schema: tuple[Column, ...] = ()
    buffers: tuple[tuple[int, int], ...] = ()
    made_by: str = ""
    chunk: int = 0
    subject: str = ""
    format: int = 1  # who writes one says which; the first formats may be left out

    @property
    def part_bytes(self) -> int:
        """Bytes of all parts together."""
        return sum(part.size for part in self.parts)


class _Version(msgspec.Struct):
    format: int


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode_version: Final = msgspec.json.Decoder(_Version).decode
_decode_manifest: Final = msgspec.json.Decoder(Manifest).decode


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest; equal manifests have equal bytes."""
    return msgspec.json.encode(manifest)


def subject_of(key: bytes, program: bytes, spans: tuple[Span, ...]) -> str:
    """A digest of what a result is of, so that no row of the catalog can lead to the result of another."""
    return blake3(msgspec.msgpack.encode((key, program, spans))).hexdigest(16)


def digest(data: bytes) -> bytes:
    """The digest under which the catalog knows a manifest."""
    return blake3(data).digest()


def decode(data: bytes, where: str) -> Manifest | str:
    """The manifest in these bytes, or the reason why there is none. Raises StoreFailure for a newer format."""
    try:
        version = _decode_version(data).format
        if version > FORMAT:
            raise StoreFailure(
                f"the result at {where} was written by a newer version of Nectar (format {version}, this one knows "
                f"{FORMAT}): update nectar-data, or use another store"
            )
        manifest = _decode_manifest(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"the manifest cannot be read: {error}"
    return _inconsistency(manifest) or manifest


def _inconsistency(manifest: Manifest) -> str | None:
    names = [part.name for part in manifest.parts]
    if len(set(names)) != len(names) or not all(map(is_part, names)):
        return f"the manifest names parts that cannot be: {names[:5]}"
    if not all(_can_be(part, manifest.chunk) for part in manifest.parts) or manifest.rows < 0:
        return "the manifest has sizes or digests that cannot be"
    return None


def _can_be(part: Part, chunk: int) -> bool:
    if part.size < 0 or len(part.blake3) != 2 * DIGEST:
        return False
    return not part.chunks or (chunk > 0 and len(part.chunks) == -(-part.size // chunk) * DIGEST)
