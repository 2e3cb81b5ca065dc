"""Functions and calls in a few words, for listings and reports."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

from nectar.errors import NectarError
from nectar.keys.expansion import Expansion
from nectar.keys.outcome import explore
from nectar.keys.patience import patience
from nectar.keys.walk import Walk, describe_type
from nectar.trust.secrets import HIDDEN, is_secret_name, redacted

_LONGEST: Final = 200
_SHOWN: Final = 40
_LOOKED_AT: Final = 1 << 14  # characters of a text that are searched for what may be secret, before it is cut
_UNKNOWN: Final = "one of its arguments, or what it captured,"
_SEARCHING: Final = 0.2  # seconds for finding out where something lies
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
    """A call as one would write it, shortened; what may be a credential is left out."""
    parts = [f"{name}={_shown(name, value)}" for name, value in arguments.items()]
    text = f"{label}({', '.join(parts)})"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...)"


def _shown(name: str, value: object) -> str:
    if is_secret_name(name):
        return HIDDEN
    kind = type(value)
    if kind in _PLAIN:
        if kind is int and abs(value) > 10**30:  # type: ignore[arg-type]
            return "a large int"
        text = _quoted(value) if isinstance(value, str | bytes) else repr(value)
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


def _quoted(value: str | bytes) -> str:
    """The beginning of a text. It is searched before it is cut: what is cut off shows less of what it was."""
    if isinstance(value, bytes):
        clean = redacted(value[:_LOOKED_AT].decode("latin-1"))
        return repr(clean[: _SHOWN + 1].encode("latin-1"))
    return repr(redacted(value[:_LOOKED_AT])[: _SHOWN + 1])


def _shape(value: object) -> object:
    """The shape of an array or frame; objects may answer such a question in odd ways."""
    try:
        return None if isinstance(value, type) else getattr(value, "shape", None)
    except Exception:
        return None


def what_changed(walk: Walk, function: object = None, arguments: Mapping[str, object] | None = None) -> str:
    """What a call was given, captured or found in libraries that is not what it was when the walk met it.

    Of a function and its arguments by name it is told where in them it lies.
    """
    within: Walk | None = walk
    while within is not None:
        for recheck in within.rechecks:
            if not _still_holds(recheck):
                held = _about(recheck)
                return _UNKNOWN if held is None else _named(held, function, arguments or {})
        within = within.before
    return _UNKNOWN


def _named(held: object, function: object, arguments: Mapping[str, object]) -> str:
    """An object by what it is and where it lies, for people."""
    kind = f"class {held.__module__}.{held.__qualname__}" if isinstance(held, type) else describe_type(held)
    ways = [way for way in map(_way_to(held), (function, *arguments.values())) if way is not None]
    if not ways:
        return f"{kind} that it was given or reaches"
    return f"{kind} ({ways[0]})" if ways[0] else f"{kind} that it was given"


class _Way:
    """Watches a walk, and notes the way by which it comes to an object first."""

    def __init__(self, held: object) -> None:
        self._held, self._labels = held, list[str]()
        self.found: list[str] | None = None

    def enter(self, value: object, label: str, expansion: Expansion) -> None:
        """An object with parts."""
        self._labels.append(label)
        if value is self._held and self.found is None:
            self.found = self._labels[1:]

    def leave(self) -> None:
        """All parts of the object entered last have been met."""
        self._labels.pop()

    def leaf(self, value: object, label: str, repeated: bool) -> None:
        """An atom, or an object met before."""


def _way_to(held: object) -> Callable[[object], str | None]:
    def way(root: object) -> str | None:
        seen: list[_Way] = []

        def observer() -> _Way:
            seen.append(_Way(held))
            return seen[-1]

        with suppress(NectarError), patience(_SEARCHING):
            explore(root, observer)
        found = next((each.found for each in reversed(seen) if each.found is not None), None)
        return None if found is None else "".join(_step(each) for each in found).removeprefix(", ")

    return way


def _step(label: str) -> str:
    return label if label.startswith((".", "[")) else f", {label}"


def _still_holds(recheck: Callable[[], bool]) -> bool:
    try:
        return recheck()
    except Exception:  # it cannot be asked any more, which is a change too
        return False


def _about(recheck: Any) -> object:
    """The object that a recheck is about; None if it does not say."""
    held = getattr(recheck, "value", getattr(recheck, "cls", None))
    if held is None and isinstance(recheck, types.FunctionType):
        cells = dict(zip(recheck.__code__.co_freevars, recheck.__closure__ or (), strict=True))
        found = (cells[name].cell_contents for name in ("value", "cls", "registry") if name in cells)
        held = next(found, None)
    return held
