"""How a result differs from what it was, told from checksums alone.

Law: tables with the same exact checksum are the same, row for row and bit for bit. The others only help to say what a
difference may come from.
"""

from __future__ import annotations

from typing import Final

from nectar.recipes.recipe import Checksum

_CLOSE: Final = 1e-9  # relative; sums of floats in another order differ by less


def difference(then: Checksum, now: Checksum, *, ordered: bool, comparable: bool, engine: str = "Polars") -> str:
    """How a table differs from what it was, in words; empty if it does not, apart from an order nobody promised.

    comparable: both checksums were made by the same version of what hashes rows, which is called engine here.
    """
    if then.exact == now.exact:
        return ""
    if then.rows != now.rows:
        return f"it has {now.rows:,} rows where it had {then.rows:,}"
    if not comparable:
        return f"it may differ: checksums of different versions of {engine} tell only whether every bit is the same"
    if then.unordered == now.unordered:
        return "" if not ordered else "its rows are the same, in another order or with other signs of zeros"
    if then.others == now.others and then.sums and _close(then, now):
        return "it differs in the last bits of floats"
    return "its values differ"


def _close(then: Checksum, now: Checksum) -> bool:
    if [name for name, *_ in then.sums] != [name for name, *_ in now.sums]:
        return False
    return all(
        abs(before[1] - after[1]) <= _CLOSE * before[2] and abs(before[2] - after[2]) <= _CLOSE * before[2]
        for before, after in zip(then.sums, now.sums, strict=True)
    )
