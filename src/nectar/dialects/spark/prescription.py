"""What a recipe of a Spark result holds besides what all recipes hold. Nothing of Spark is needed to read it."""

from __future__ import annotations

from typing import Final

import msgspec

DIALECT: Final = "spark"


class Prescription(msgspec.Struct, frozen=True):
    """How a plan is sent again.

    plan: its relations (`flat.py`). commands: what the session has to be told before, in this order, each in the same
    form. settings: of the session. variables: of the environment that the engine was started in. python: the version of
    Python, to the last digit. frame: digest of everything that all keys stand for. is_part: the engine wrote the result
    by itself.
    """

    plan: tuple[bytes, ...] = ()
    commands: tuple[tuple[bytes, ...], ...] = ()
    settings: dict[str, str] = {}
    variables: dict[str, str] = {}
    python: str = ""
    frame: bytes = b""
    is_part: bool = False


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.msgpack.Decoder(Prescription).decode


def encoded(prescription: Prescription) -> bytes:
    """As it lies in a catalog."""
    return msgspec.msgpack.encode(prescription)


def decoded(data: bytes) -> Prescription:
    """What lies in a catalog. Raises msgspec.DecodeError if another version of Nectar wrote it."""
    return _decode(data)
