"""Whether a result is worth keeping at all: reading it back must be faster than computing it.

Generous while there is room: small results are kept whatever they took, because nobody who asks for a function to be
remembered wants to be told that it was too quick. Strict when the store fills up.
"""

from __future__ import annotations

from typing import Final

from nectar.model.entry import Usage
from nectar.overhead.steering import reading
from nectar.quantities import show_duration, show_size

SMALL: Final = 1 << 20  # bytes
_ROOMY: Final = 0.5  # share of the budget up to which there is room
_OPENING: Final = 1e-3  # seconds to find and open a result that lies in files


def is_roomy(usage: Usage, budget: int | None) -> bool:
    """Whether the store has so much room that small results need not show what they are worth."""
    return budget is None or usage.total <= budget * _ROOMY


def reason_not_to_keep(seconds: float, size: int, small: int) -> str:
    """Why a result of this size, computed in this time, is not worth its bytes; empty if it is.

    small: results up to so many bytes are always worth it.
    """
    again = _OPENING + reading(size)
    if size <= small or seconds >= again:
        return ""
    return (
        f"not kept: computing it took {_short(seconds)}, reading its {show_size(size)} back would take about "
        f"{_short(again)}"
    )


def _short(seconds: float) -> str:
    return show_duration(seconds) if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
