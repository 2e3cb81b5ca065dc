"""Expanders of dates and times. Naive dates and durations are atoms; zones are in `zoneinfo_values.py`."""

from __future__ import annotations

import datetime
import struct

from nectar.keys.expansion import Expander, Expansion, WalkContext, always

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


EXPANDERS: dict[type, Expander] = {
    datetime.datetime: expand_datetime,
    datetime.time: expand_time,
    datetime.timezone: expand_timezone,
}
