"""Bulk content: large runs of bytes represented by their length and BLAKE3 digest.

In: anything contiguous that exports a buffer. Out: 40 bytes for a payload. Law: no copy is made, and the digest is a
plain BLAKE3-256, so that hashing runs at that function's own speed. A digest in the payload (rather than the bytes)
lets a recheck compare 40 bytes with a fresh hash.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import blake3

from nectar.keys.atoms import pack
from nectar.keys.expansion import Buffer, Expansion, sized
from nectar.keys.hashing import threads_for
from nectar.keys.patience import stop_if_over
from nectar.overhead.spent import helped
from nectar.quantities import show_size

PARALLEL_FROM: Final = 1 << 20  # below, starting threads costs more than it saves
_NAN: Final = float("nan")
_BITS: Final = struct.Struct("<d").pack


def content(buffer: Buffer) -> bytes:
    """Length and digest of one contiguous buffer of single bytes."""
    size = len(buffer)
    if size >= PARALLEL_FROM:
        stop_if_over(lambda: f"a value of {show_size(size)}", size)
        with helped():
            return _hashed(buffer, size)
    return _hashed(buffer, size)


def _hashed(buffer: Buffer, size: int) -> bytes:
    hasher = blake3.blake3(max_threads=threads_for(size, PARALLEL_FROM))
    hasher.update(buffer)
    return size.to_bytes(8, "little") + hasher.digest()


def content_of_chunks(chunks: Iterable[Buffer]) -> bytes:
    """The same bytes as content() gives for the concatenation of the chunks."""
    hasher = blake3.blake3()
    size = 0
    for chunk in chunks:
        size += len(chunk)
        hasher.update(chunk)
    return size.to_bytes(8, "little") + hasher.digest()


def _by_value(value: object) -> object:
    """The value, or a NaN of our own for one with the same bits: which NaN it is does not matter in columns of data."""
    return _NAN if type(value) is float and value != value and _BITS(value) == _BITS(_NAN) else value


OWN_ATTRIBUTES: Final[dict[type, frozenset[str]]] = {}  # which a library keeps in objects that anybody can add some to


def added_attributes(value: object) -> list[str]:
    """Names of attributes that others have put onto an object of a library, or that a subclass has."""
    own = next((own for base in type(value).__mro__ if (own := OWN_ATTRIBUTES.get(base)) is not None), None)
    return [] if own is None or vars(value).keys() <= own else sorted(vars(value).keys() - own)


class Parts:
    """Collects what one library value is made of: bytes for the payload, and objects for the walk to visit.

    Every addition carries its kind and its length, so that no two sequences of additions give the same payload and
    the same children.
    """

    __slots__ = ("_attributes", "_children", "_hashed", "_labels", "_payload", "_texts")

    def __init__(self, *children: object) -> None:
        self._payload: list[bytes] = []
        self._children: list[object] = list(children)
        self._labels: list[str] = ["type"] * len(children)
        self._hashed = 0
        self._attributes = False
        self._texts: list[Callable[[], Iterable[object]]] = []

    def text(self, *texts: str) -> None:
        """Adds names, kinds, formats."""
        for text in texts:
            self._payload.append(b"t" + sized(text.encode("utf-8", "surrogatepass")))

    def number(self, *numbers: int) -> None:
        """Adds counts, flags, positions."""
        for number in numbers:
            self._payload.append(b"n" + sized(str(int(number)).encode()))

    def raw(self, data: bytes) -> None:
        """Adds a few bytes as they are."""
        self._payload.append(b"r" + sized(data))

    def bulk(self, buffer: Buffer) -> None:
        """Adds a contiguous buffer of single bytes by its digest."""
        self._payload.append(b"b" + content(buffer))
        self._hashed += len(buffer)

    def chunks(self, chunks: Iterable[Buffer]) -> None:
        """Adds a sequence of buffers as if they were one."""
        found = content_of_chunks(chunks)
        self._payload.append(b"b" + found)
        self._hashed += int.from_bytes(found[:8], "little")

    def child(self, value: object, label: str) -> None:
        """Adds an object for the walk to visit."""
        self._payload.append(b"c")
        self._children.append(value)
        self._labels.append(label)

    def objects(self, values: Sequence[object], label: str) -> None:
        """Adds Python objects in order; in one block where they are atoms of one type."""
        block = pack(values)
        self.number(len(values))
        if block is not None:
            self._payload.append(b"p" + content(block))
            self._hashed += len(block)
            if type(values[0]) is str:
                self.holds_texts(lambda: values)
            return
        self._payload.append(b"o")
        self._children.extend(map(_by_value, values))
        self._labels.extend([label] * len(values))  # one text for all: there may be millions

    def holds_texts(self, texts: Callable[[], Iterable[object]]) -> None:
        """Says that texts were added as bulk, and how to get at them; adds nothing."""
        self._texts.append(texts)

    def attributes(self, value: object) -> None:
        """Adds what others have put onto an object, beside the attributes that its library keeps; to be added last."""
        self._attributes = True
        for name in added_attributes(value):
            self.text(name)
            self.child(vars(value)[name], f".{name}")

    def expansion(self, tag: str) -> Expansion:
        """Everything added so far, as an expansion whose recheck expands again and compares."""
        return Expansion(
            tag, b"".join(self._payload), self._children, self._labels, hashed=self._hashed,
            attributes=self._attributes, texts=tuple(self._texts),
        )  # fmt: skip
