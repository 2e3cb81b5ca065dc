"""Expander of zones of the time zone database, loaded with the module that has them."""

from __future__ import annotations

import functools
import importlib.resources
import os
import pickle
import zoneinfo

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.scheme import digest_of


def expand_zone(value: zoneinfo.ZoneInfo, walk: WalkContext) -> Expansion:
    """A zone of the time zone database: its key, and the rules this machine has for it.

    A zone keeps its identity: arithmetic between two datetimes asks whether they share the very same zone object.
    """
    try:
        value.__reduce__()
    except pickle.PicklingError:
        raise UnencodableError("a ZoneInfo", walk.path(), "it was read from a file, not from the database") from None
    return Expansion("zoneinfo", joined(value.key, _rules(value.key)), still=always)


@functools.cache
def _rules(key: str) -> bytes:
    """Digest of the zone's rules as zoneinfo finds them: first on the search path, then in the tzdata package."""
    for folder in zoneinfo.TZPATH:
        path = os.path.join(folder, key)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return digest_of(file.read())
    *folders, name = key.split("/")
    package = ".".join(["tzdata.zoneinfo", *folders])
    return digest_of(importlib.resources.files(package).joinpath(name).read_bytes())


EXPANDERS: dict[type, Expander] = {zoneinfo.ZoneInfo: expand_zone}
