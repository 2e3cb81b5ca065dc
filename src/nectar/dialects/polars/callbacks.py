"""Lazy frames that call Python when they are resolved: whoever looks at their sources would call it once more.

In: a lazy frame. Out: whether it may hold such a call, told without resolving it. Plans are written down only if there
is such a call in any lazy frame of the process: frames in memory would be written down with them.
"""

from __future__ import annotations

import inspect
import io
import sys
from types import CodeType
from typing import Any, Final

import polars as pl

from nectar.keys.values.polars_functions import Functions

_MOST: Final = (
    1 << 20
)  # bytes of a plan that are looked at; of a frame in memory that is larger nothing is reused anyway
_CALLED: Final = b"PipeWith"  # PipeWithSchema, PipeWithDtype


def may_call_python(frame: pl.LazyFrame) -> bool:
    """Whether resolving a lazy frame may call a function that was handed to `pipe_with_schema` or `pipe_with_dtype`."""
    if _most_references(_WRAPPERS) <= _most_references(_UNUSED):
        return False
    target = _Beginning()
    try:
        Functions().serialised(frame.clone()._ldf.serialize_binary, target)
    except Exception:  # too much, or nothing that can be written down
        return True
    return _CALLED in target.getvalue()


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
