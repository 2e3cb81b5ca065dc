"""Names in a store: what a location is called, where its folder lies, which files in it are ours.

    data/ab/abcd...-5f0c...   published results, spread over 256 folders by the first byte of the key
    staging/abcd...-5f0c...   being written
    trash/abcd...-5f0c...     being deleted

A location is `ab/abcd...-5f0c...`: the key, and 64 random bits so that no two attempts share a folder. What does not
have such a name was put there by someone else and is never deleted.
"""

from __future__ import annotations

import os
import re
from typing import Final

from nectar.errors import InternalError

DATA: Final = "data"
STAGING: Final = "staging"
TRASH: Final = "trash"
MANIFEST: Final = "manifest.json"
COLUMNS: Final = "columns"  # the part of a result in Parquet files that says what its columns are called, as JSON
WRITTEN: Final = "written"  # in staging/: a folder that an engine fills by itself

_NAME: Final = r"[0-9a-f]{2,128}-[0-9a-f]{16}"
_FAN: Final = r"[0-9a-f]{2}"
_PART: Final = r"table-[0-9]{5}\.(?:arrow|parquet)|object\.pickle|object\.buffers|raw-[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"


def new_location(key: bytes) -> str:
    """A location for a key that was never used before."""
    if not key:
        raise InternalError("a location needs a key of at least one byte")
    name = f"{key.hex()}-{os.urandom(8).hex()}"
    return f"{name[:2]}/{name}"


def is_name(name: str) -> bool:
    """Whether a folder of this name may be one of ours."""
    return re.fullmatch(_NAME, name) is not None


def is_fan(name: str) -> bool:
    """Whether a folder of this name may be one of the 256 below data/."""
    return re.fullmatch(_FAN, name) is not None


def is_location(text: str) -> bool:
    """Whether a text is a location."""
    fan, slash, name = text.partition("/")
    return bool(slash) and is_name(name) and fan == name[:2]


def location_of(name: str) -> str:
    """The location whose folder has this name."""
    return f"{name[:2]}/{name}"


def key_of(location: str) -> bytes:
    """The key for which a location was made."""
    return bytes.fromhex(_checked(location)[3:].partition("-")[0])


def is_part(name: str) -> bool:
    """Whether a file of this name in a result's folder is a part of ours; no such name leads out of the folder."""
    return re.fullmatch(_PART, name) is not None


def is_ours(name: str) -> bool:
    """Whether a file of this name in a result's folder is one that Nectar writes."""
    return name == MANIFEST or is_part(name)


def data_folder(location: str) -> str:
    """Where a published result lies."""
    return f"{DATA}/{_checked(location)}"


def staging_folder(location: str) -> str:
    """Where a result is written before it is published."""
    return f"{STAGING}/{_checked(location).partition('/')[2]}"


def trash_folder(location: str) -> str:
    """Where a result goes to be deleted."""
    return f"{TRASH}/{_checked(location).partition('/')[2]}"


def _checked(location: str) -> str:
    # A location comes from the index, and a damaged or forged one must not name a file elsewhere.
    if not is_location(location):
        raise InternalError(f"{location!r} is no location in a store")
    return location
