"""Pointer files: a small JSON that stands for a result, fit for a git repository.

It holds the key, which says everything: a program that scans the file depends on the key and on nothing else in it.
Name, version, columns, rows and checksum are there for people, and for those who want to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from nectar.datasets.reference import checked_name
from nectar.errors import UnknownNameError
from nectar.model.entry import Name
from nectar.model.lineage import Made
from nectar.trust.files import read_known

FORMAT: Final = 1
_LONGEST: Final = 16 << 20  # bytes; a table of a hundred thousand columns


class Column(msgspec.Struct, frozen=True):
    """A column, for people."""

    name: str
    type: str


class Pointer(msgspec.Struct, frozen=True):
    """What stands in the file. nectar: the format. checksum: the digest of the manifest."""

    nectar: int
    key: str
    name: str = ""
    version: int = 0
    rows: int = 0
    checksum: str = ""
    schema: tuple[Column, ...] = ()


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.json.Decoder(Pointer).decode


def pointer_to(made: Made, bound: Name | None, columns: Sequence[tuple[str, str]]) -> bytes:
    """The content of a pointer file: one thing on each line, so that changes can be read."""
    pointer = Pointer(
        FORMAT, made.key.hex(), bound.name if bound else "", bound.version if bound else 0, made.rows,
        made.checksum.hex(), tuple(Column(*column) for column in columns),
    )  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(pointer), indent=1) + b"\n"


def read_pointer(path: Path) -> Pointer:
    """What a pointer file says."""
    try:
        pointer = _decode(read_known(path, _LONGEST)[0])
        is_key = len(bytes.fromhex(pointer.key)) == 32
    except OSError as error:
        raise UnknownNameError(f"the pointer file {path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnknownNameError(f"{path} is no pointer file of Nectar: {error}") from error
    if pointer.nectar > FORMAT:
        raise UnknownNameError(
            f"the pointer file {path} was written by a newer version of Nectar (format {pointer.nectar}): update it"
        )
    if not is_key:
        raise UnknownNameError(f"the pointer file {path} has a key that is none: {pointer.key[:80]!r}")
    if pointer.name:
        checked_name(pointer.name)  # it is shown to people, and a repository may have brought the file
    return pointer
