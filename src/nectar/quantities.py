"""Sizes and durations as people write them: "20GB", "1d"; and back, for people to read."""

from __future__ import annotations

import re
from typing import Final

from nectar.errors import SettingError

_SIZES: Final = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_DURATIONS: Final = {"ms": 0.001, "": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORM: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")


def parse_size(text: str | int) -> int:
    """Bytes meant by a text such as "20GB" (powers of ten) or "512MiB" (powers of two)."""
    return text if isinstance(text, int) else round(_parse(text, _SIZES, "size", "20GB"))


def parse_duration(text: str | float) -> float:
    """Seconds meant by a text such as "90s", "15min", "1d"."""
    return float(text) if isinstance(text, (int, float)) else _parse(text, _DURATIONS, "duration", "1d")


def _parse(text: str, units: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    found = _FORM.fullmatch(text)
    unit = units.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise SettingError(f"{text!r} is no {what}: write it like {example} (units: {', '.join(filter(None, units))})")
    return float(found[1]) * unit


def show_size(size: float) -> str:
    """A size for people: three digits and a unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def show_duration(seconds: float) -> str:
    """A duration for people: "412 ms", "4 min 12 s", "3 h 5 min", "2 d 4 h"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    for large, small, size, unit in (("min", "s", 60, 1), ("h", "min", 3600, 60), ("d", "h", 86400, 3600)):
        if seconds < size * (60 if size < 3600 else 24 if size == 3600 else 10**9):
            whole, rest = divmod(seconds, size)
            return f"{whole:.0f} {large} {rest // unit:.0f} {small}" if rest >= unit else f"{whole:.0f} {large}"
    return f"{seconds:.0f} s"
