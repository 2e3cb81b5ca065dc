"""Lazy frames that call Python when they are resolved: whoever looks at their sources would call it once more.

In: a lazy frame. Out: why it cannot be looked at, told without resolving it. Tables of Delta and Iceberg are read
through Python objects, which Polars asks in threads of its own: whoever goes through such a plan waits for ever. Plans
are written down only if some lazy frame of the process may hold such a call: frames in memory would be written too.
"""

from __future__ import annotations

import inspect
import io
import sys
from types import CodeType
from typing import Any, Final

import polars as pl

from nectar.keys.values.polars_functions import Functions
from nectar.keys.values.polars_plans import REFUSED_PLANS

_MOST: Final = (
    1 << 20
)  # bytes of a plan that are looked at; of a frame in memory that is larger nothing is reused anyway
_CALLED: Final = b"PipeWith"  # PipeWithSchema, PipeWithDtype
_ASKED: Final = b"PythonDataset"
_READERS: Final = frozenset({"deltalake", "pyiceberg"})  # without one of these there are no such tables


def refusal_of_calls(frame: pl.LazyFrame) -> str:
    """Why a lazy frame may call Python when it is resolved; empty if it does not.

    It calls functions handed to `pipe_with_schema` and `pipe_with_dtype`, and asks tables for their files.
    """
    reads_tables = not _READERS.isdisjoint(sys.modules)
    if not reads_tables and _most_references(_WRAPPERS) <= _most_references(_UNUSED):
        return ""
    target = _Beginning()
    try:
        Functions().serialised(frame.clone()._ldf.serialize_binary, target)
    except Exception:  # too much, or nothing that can be written down
        return "it may call Python code when it is resolved, and is too large to look for that"
    plan = target.getvalue()
    if _ASKED in plan:
        return "it reads a Delta or Iceberg table, whose files only Python code can tell"
    return REFUSED_PLANS["PipeWithSchema"] if _CALLED in plan else ""


def _codes_in(function: Any) -> list[CodeType]:
    """The functions that a function makes each time it is called."""
    code: CodeType = inspect.unwrap(function).__code__
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _never_called() -> Any:
    def inner() -> None: ...

    return inner


# What Polars makes of functions that it calls when plans are resolved. Each function holds its code, so that the number
# of references tells whether there is one, also in frames that are held by Polars alone.
_WRAPPERS: Final = [*_codes_in(pl.LazyFrame.pipe_with_schema), *_codes_in(pl.pipe_with_dtype)]
_UNUSED: Final = _codes_in(_never_called)


def _most_references(codes: list[CodeType]) -> int:
    return max([sys.getrefcount(code) for code in codes])


class _Beginning(io.BytesIO):
    def write(self, data: Any, /) -> int:
        if self.tell() > _MOST:
            raise OverflowError("more than is looked at")
        return super().write(data)
