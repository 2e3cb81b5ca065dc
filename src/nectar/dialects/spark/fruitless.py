"""Parts of plans that were computed by themselves in vain, remembered for all processes.

In: a part that could not be kept, or was not worth it, and why. Out: whether to try it again. A part is remembered by
what it computes and by about how much it reads: the files of tomorrow are no reason to try again, four times as much
is. After a month it is tried once more: the machine may have been busy.
"""

from __future__ import annotations

import math
from typing import Final

from nectar.dialects.spark.query import Query
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
_MONTH: Final = 30 * 86400.0  # seconds


def was_in_vain(query: Query, number: int) -> str:
    """Why a part was not kept when it was tried; empty if nobody has tried."""
    try:
        return query.catalog.observed.told_of(_name(query, number))
    except EnvironmentFailure as failure:
        _log.info("whether a part was tried before is not known: %s", failure)
        return ""


def remember_in_vain(query: Query, number: int, reason: str) -> None:
    """From now on a part is not tried again."""
    query.catalog.observed.add(_name(query, number), f"as a part: {reason}", query.session.clock.now())


def _name(query: Query, number: int) -> bytes:
    size = sum(file.size or 0 for file in query.keyed.files_below(number))
    month = int(query.session.clock.now() // _MONTH)
    node = query.keyed.program.nodes[number]
    return digest_of(joined("part in vain", node.program, str(int(math.log(size + 1, 4))), str(month)))
