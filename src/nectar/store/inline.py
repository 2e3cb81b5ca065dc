"""Inline results: everything of a small result in one piece, for a row of the index.

In: what a manifest says of a result, and the bytes of its parts. Out: one piece, whose digest stands in the row; and
back. Law: one digest covers every byte of it, so that nothing is taken out of a piece before all of it was verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from nectar.errors import StoreFailure
from nectar.model.entry import Kind
from nectar.store.chunks import Checked, Range
from nectar.store.manifest import Column, Manifest, Part, Writer
from nectar.store.sources import MemorySource

FORMAT: Final = 4  # the first byte; pieces of format 3 and before begin with that of a list of two
LISTS: Final = 0x92


class _Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What lies behind the first byte."""

    kind: Kind
    writer: Writer
    rows: int
    subject: str
    parts: tuple[tuple[str, bytes], ...]
    buffers: tuple[tuple[int, int], ...] = ()
    schema: tuple[Column, ...] = ()
    made_by: str = ""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Piece).decode


class Whole(Checked):
    """A part of a piece that was verified as a whole."""

    def __init__(self, content: bytes) -> None:
        self._source = MemorySource(content)
        self.size = len(content)
        self.sound = bytearray(b"\1")

    def check(self, ranges: Iterable[Range] | None = None, halted: Callable[[], bool] = bool) -> None:
        """It was verified."""


def packed(manifest: Manifest, contents: Iterable[bytes]) -> bytes:
    """The piece that holds these parts, in the order of the manifest."""
    parts = tuple((part.name, content) for part, content in zip(manifest.parts, contents, strict=True))
    piece = _Piece(
        manifest.kind, manifest.writer, manifest.rows, manifest.subject, parts, manifest.buffers, manifest.schema,
        manifest.made_by,
    )  # fmt: skip
    return bytes((FORMAT,)) + _encode(piece)


def unpacked(data: bytes) -> tuple[Manifest, tuple[Whole, ...]] | str:
    """What a piece holds, once its digest was found to be right; or why it holds nothing. Raises StoreFailure."""
    if data[0] != FORMAT:
        raise StoreFailure(
            f"a result in the index was written by a newer version of Nectar (format {data[0]}, this one knows "
            f"{FORMAT}): update nectar-data, or use another catalog"
        )
    try:
        piece = _decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"the inline result cannot be read: {error}"
    parts = tuple([Part(name, len(content), "") for name, content in piece.parts])
    manifest = Manifest(
        piece.kind, piece.writer, piece.rows, parts, piece.schema, piece.buffers, piece.made_by, 0, piece.subject,
        FORMAT,
    )  # fmt: skip
    return manifest, tuple([Whole(content) for _, content in piece.parts])
