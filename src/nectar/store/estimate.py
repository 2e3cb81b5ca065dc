"""How many bytes a value will take, before it is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from nectar.store.formats.objects import Pickled

_SAMPLE: Final = 100  # items of a container that are looked at; the others are taken to be like them
_DEEPEST: Final = 4
_NUMBERS: Final = frozenset({int, float, bool, complex, type(None)})
_BUILT_IN: Final = frozenset({str, bytes, bytearray, list, tuple, dict, set, frozenset})  # known without being asked


def estimate(value: Any, depth: int = 0) -> int:
    """Bytes the value will take in the store, roughly, without copying or pickling it."""
    kind = type(value)
    if kind is Pickled:
        return value.size  # type: ignore[no-any-return]
    if kind in _NUMBERS:
        return sys.getsizeof(value)
    if kind not in _BUILT_IN:
        size = _table_size(value)
        if size is not None:
            return size
    if isinstance(value, (bytes, bytearray, str)):
        return len(value)
    if depth < _DEEPEST and isinstance(value, (list, tuple, set, frozenset, Mapping)):
        items = value.items() if isinstance(value, Mapping) else value
        sample = [estimate(item, depth + 1) for item in islice(items, _SAMPLE)]
        return 8 * len(value) + (sum(sample) * len(value) // len(sample) if sample else 0)
    inside = getattr(value, "__dict__", None)
    if depth < _DEEPEST and isinstance(inside, dict) and not isinstance(value, type):
        return sys.getsizeof(value) + estimate(inside, depth + 1)
    return sys.getsizeof(value)


def _table_size(value: Any) -> int | None:
    """Bytes of frames, tables and arrays; they are known by what they offer, so that no library is imported."""
    if isinstance(value, type):
        return None
    try:
        if callable(ask := getattr(value, "estimated_size", None)):  # polars
            return int(ask())
        if callable(ask := getattr(value, "memory_usage", None)):  # pandas
            used = ask(index=True, deep=True)
            return int(used.sum() if hasattr(used, "sum") else used)
        size = getattr(value, "nbytes", None)  # numpy, pyarrow, memoryview
        return None if size is None else int(size)
    except Exception:  # an object that only looks like one of these
        return None
