"""Expanders of dates, times and time zones (naive dates and durations are atoms)."""

from __future__ import annotations

import datetime
import functools
import importlib.resources
import os
import pickle
import struct
import zoneinfo

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.scheme import digest_of

_STAMP = struct.Struct("<HBBBBBIB").pack
_CLOCK = struct.Struct("<BBBIB").pack


def expand_datetime(value: datetime.datetime, walk: WalkContext) -> Expansion:
    """A point in time: its fields, which of two equal wall times it is, and its zone."""
    payload = _STAMP(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.fold
    )
    return Expansion("datetime", payload, (value.tzinfo,), ("tzinfo",), by_value=True, still=always)


def expand_time(value: datetime.time, walk: WalkContext) -> Expansion:
    """A time of day: its fields, which of two equal wall times it is, and its zone."""
    payload = _CLOCK(value.hour, value.minute, value.second, value.microsecond, value.fold)
    return Expansion("time", payload, (value.tzinfo,), ("tzinfo",), by_value=True, still=always)


def expand_timezone(value: datetime.timezone, walk: WalkContext) -> Expansion:
    """A fixed offset from UTC, and its name."""
    return Expansion(
        "timezone", b"", (value.utcoffset(None), value.tzname(None)), ("offset", "name"), by_value=True, still=always
    )


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


EXPANDERS: dict[type, Expander] = {
    datetime.datetime: expand_datetime,
    datetime.time: expand_time,
    datetime.timezone: expand_timezone,
    zoneinfo.ZoneInfo: expand_zone,
}
