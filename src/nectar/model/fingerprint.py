"""Fingerprint: 32 bytes that stand for a function or a value, with the version of the scheme that made them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a computation is. Equal fingerprints: the same computation. `str()` is hex."""

    digest: bytes
    scheme: int

    def __str__(self) -> str:
        return self.digest.hex()
