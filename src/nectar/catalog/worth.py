"""Whether a result is worth keeping at all: reading it back must be faster than computing it.

Small results lie in the catalog itself and are always kept: nobody who asks for a function to be remembered wants to
be told that it was too quick.
"""

from __future__ import annotations

from typing import Final

from nectar.quantities import show_duration, show_size

_OPENING: Final = 1e-3  # seconds to find and open a result that lies in files
_READING: Final = 1e9  # bytes a second, from memory or a good disk


def reason_not_to_keep(seconds: float, size: int, inline: int) -> str:
    """Why a result of this size, computed in this time, is not worth its bytes; empty if it is."""
    if size <= inline:
        return ""
    reading = _OPENING + size / _READING
    if seconds >= reading:
        return ""
    return (
        f"not kept: computing it took {_short(seconds)}, reading its {show_size(size)} back would take about "
        f"{_short(reading)}"
    )


def _short(seconds: float) -> str:
    return show_duration(seconds) if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
