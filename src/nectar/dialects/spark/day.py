"""The day on which a query runs, for keys of what depends on it.

Law: two moments have the same day only if all zones that the engine may count in have the same date. Where a zone is
not understood, the quarter of an hour takes the place of its date, since zones differ by no less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

_ZONE: Final = "spark.sql.session.timezone"
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_QUARTER: Final = 15 * 60
_SLACK: Final = 300.0  # seconds by which the clock of another machine may be wrong


@dataclass(frozen=True, slots=True)
class Day:
    """A day, in the zone of a session, that of this machine and that of the world.

    clock: tells what time it is. zone: of the session; empty if nobody has set one. slack: how wrong the engine's clock
    may be, in seconds.
    """

    clock: Callable[[], float]
    zone: str
    slack: float
    text: str

    @property
    def is_over(self) -> bool:
        """Whether it is another day by now."""
        return _text_at(self.clock(), self.zone, self.slack) != self.text

    @property
    def doubt(self) -> str:
        """Why nobody knows which day it is to the engine; empty if it is known."""
        return "" if self.text else "its rows depend on the date, and the server's clock may show another one"


def day_of(clock: Callable[[], float], settings: Mapping[str, str], *, is_remote: bool) -> Day:
    """The day that it is in a session with these settings. is_remote: the engine may run on another machine."""
    zone = next((value for name, value in settings.items() if name.lower() == _ZONE), "")
    slack = _SLACK if is_remote else 0.0
    return Day(clock, zone, slack, _text_at(clock(), zone, slack))


def _text_at(now: float, zone: str, slack: float) -> str:
    """The dates at a moment; empty if they are about to change, or just did."""
    texts = {_dates_at(moment, zone) for moment in {now - slack, now, now + slack}}
    return texts.pop() if len(texts) == 1 else ""


def _dates_at(now: float, zone: str) -> str:
    here, world = datetime.fromtimestamp(now), datetime.fromtimestamp(now, UTC)
    found = _zone_of(zone) if zone else UTC
    there = str(int(now // _QUARTER)) if found is None else datetime.fromtimestamp(now, found).date().isoformat()
    return " ".join((here.date().isoformat(), world.date().isoformat(), there))


def _zone_of(name: str) -> tzinfo | None:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
