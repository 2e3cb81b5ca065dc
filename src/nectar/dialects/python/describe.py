"""Functions and calls in a few words, for listings and reports."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

_LONGEST: Final = 200
_SHOWN: Final = 40
_SECRET: Final = ("password", "passwd", "secret", "token", "credential", "api_key", "apikey", "private")
_PLAIN: Final = (int, float, complex, bool, str, bytes, type(None))


def label_of(function: Any) -> str:
    """The name people know a function by: module and qualified name; for a script, that of its file."""
    module = str(getattr(function, "__module__", "") or "")
    if module in ("__main__", "__mp_main__"):
        file = getattr(sys.modules.get(module), "__file__", None)
        module = PurePath(file).stem if file else module
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    return f"{module}.{name}" if module else name


def call_text(label: str, arguments: Mapping[str, object]) -> str:
    """A call as one would write it, shortened; what sounds like a secret is left out."""
    parts = [f"{name}={_shown(name, value)}" for name, value in arguments.items()]
    text = f"{label}({', '.join(parts)})"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...)"


def _shown(name: str, value: object) -> str:
    if any(word in name.lower() for word in _SECRET):
        return "..."
    kind = type(value)
    if kind in _PLAIN:
        if kind is int and abs(value) > 10**30:  # type: ignore[arg-type]
            return "a large int"
        text = repr(value[: _SHOWN + 1] if isinstance(value, str | bytes) else value)
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    if kind in (list, tuple, set, frozenset, dict):
        return f"{kind.__name__} of {len(value)}"  # type: ignore[arg-type]
    if isinstance(value, types.FunctionType):
        return value.__qualname__
    shape = _shape(value)
    if type(shape) is tuple and all(type(each) is int for each in shape):
        return f"{kind.__name__}{shape}"
    if kind.__module__ == "nectar.dialects.python.declared_inputs":
        return repr(value)
    return kind.__name__


def _shape(value: object) -> object:
    """The shape of an array or frame; objects may answer such a question in odd ways."""
    try:
        return None if isinstance(value, type) else getattr(value, "shape", None)
    except Exception:
        return None
