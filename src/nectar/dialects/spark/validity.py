"""Sources that say nothing of their last change, and that a person has declared to be good enough for a while.

`nectar.valid_for(df, "1h")` marks a frame: what it reads from a database, or any other source that is not made of files
Nectar can look at, counts as the same until the hour is over. Hours are counted from a fixed moment, as for memoised
functions, so that everybody agrees on them. Law: the hour is part of the key of the source, and so of everything above
it; a result of another hour is not found, whatever is left of it in the store.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nectar.dialects.spark.day import Day
from nectar.errors import UserError
from nectar.keys.expansion import joined
from nectar.quantities import parse_duration

_periods: Final[dict[int, float]] = {}  # seconds, by the plan ids that the client gives to frames of this process
_SECRET: Final = re.compile(
    r"passw|secret|token|api.?key|access.?key|account.?key|private.?key|credential", re.IGNORECASE
)
_IN_ADDRESS: Final = re.compile(r"://[^/\s\"'@]+@")


def declared(frame: Any, period: str | float) -> Any:
    """A frame that gives the same, whose sources are good for a period such as "1h"."""
    seconds = parse_duration(period)
    if not seconds > 0:
        raise UserError(f"a frame cannot be valid for {period!r}: name a time such as '1d' or '15 min'")
    if not hasattr(frame, "_plan"):
        raise UserError(f"only frames of Spark Connect can be valid for a while, and this is a {type(frame).__name__}")
    marked = frame.select("*")  # a frame of its own: the one that was given is as it was
    _periods[marked._plan._plan_id] = seconds
    return marked


def period_of(relation: Any) -> float | None:
    """For how many seconds the sources of a relation are good; None if nobody said so."""
    common = relation.common
    return _periods.get(common.plan_id) if _periods and common.HasField("plan_id") else None


def shorter(one: float | None, other: float | None) -> float | None:
    """The shorter of two periods; None if there is neither."""
    return other if one is None else one if other is None else min(one, other)


def may_be_secret(name: str, value: str = "") -> bool:
    """Whether an option or a setting may hold a credential, by what it is called, or by an address in it."""
    return bool(_SECRET.search(name) or _IN_ADDRESS.search(value))


@dataclass(frozen=True, slots=True)
class Validity:
    """When a plan is keyed, and where its sources are looked for.

    now: seconds since 1970. endpoint: of a server elsewhere, whose networks and names are its own. table: tells which
    table of which catalog a name means; None where nobody but the session has tables. day: the day that it is to the
    engine.
    """

    now: float
    endpoint: str = ""
    table: Callable[[Sequence[str]], str] | None = None
    day: Day | None = None

    def of_source(self, read: Any, reader: bytes) -> bytes:
        """What a source is: everything that is said about how it is reached, but for credentials.

        reader: what reads it, if that is no part of the engine.
        """
        source = read.data_source
        options = [text for name in sorted(source.options) if not may_be_secret(name)
                   for text in (name.lower(), source.options[name])]  # fmt: skip
        schema = ("schema", source.schema) if source.HasField("schema") else ("inferred",)
        return joined(
            "source", source.format, joined(*schema), joined(*options), joined(*source.paths),
            joined(*source.predicates), source.source_name, os.getcwd(), reader,
        )  # fmt: skip

    def of_table(self, name: Sequence[str]) -> bytes:
        """What a table of a catalog is. Raises UserError where only the session knows it."""
        if self.table is None:
            raise UserError(f"the table {'.'.join(name)} is one of the session, and cannot be valid for a while")
        return joined("table", self.table(name))

    def at(self, period: float) -> bytes:
        """The period that it is now, and by whom and from where sources are reached."""
        # The same address may lead elsewhere from another machine, and show something else to another user.
        where = (socket.gethostname(), getpass.getuser(), self.endpoint)
        return joined("valid for", repr(period), str(int(self.now // period)), *where)


def text_of(read: Any) -> str:
    """What a source is called, for people; addresses are left out, because some hold credentials."""
    source = read.data_source
    table = next((value for name, value in source.options.items() if name.lower() == "dbtable"), "")
    return " ".join(filter(None, [source.format, table, *source.paths]))
