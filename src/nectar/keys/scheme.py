"""The fingerprint scheme: its version, its hash function, and the frame every fingerprint starts with.

A change of any byte that goes into fingerprints is a new SCHEME: old and new fingerprints then never meet. The
feature version of Python belongs to the frame because bytecode, and so the normal form of a function, differs between
feature versions.
"""

from __future__ import annotations

import sys
from typing import Final

import blake3

SCHEME: Final = 1
PYTHON: Final = sys.version_info[:2]
FRAME: Final = b"nectar\x00" + SCHEME.to_bytes(4, "little") + bytes(PYTHON)


def new_hasher() -> blake3.blake3:
    """A BLAKE3 hasher that has taken in the frame of this scheme."""
    hasher = blake3.blake3()
    hasher.update(FRAME)
    return hasher


def digest_of(data: bytes) -> bytes:
    """The 32 bytes that stand for data inside a larger encoding."""
    return blake3.blake3(data).digest()
