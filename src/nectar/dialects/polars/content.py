"""What a step of a plan is, without its inputs: canonical bytes, with its Python functions; and why not to cache it.

In: a step. Out: a Content. Law: nothing that could change the result is left out, and nothing else is in it that
differs between two processes; kinds of steps and expressions that are not known are refused, because they could hide
an input.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

import msgspec

from nectar.dialects.polars.categories import looked_at
from nectar.dialects.polars.plan import Step
from nectar.errors import NectarError
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES
from nectar.keys.scheme import digest_of
from nectar.keys.values.polars_functions import callback_in, tokens_work
from nectar.keys.values.polars_plans import (
    MAP_FUNCTIONS,
    PLANS,
    REFUSED_PLANS,
    is_python,
    looks_pickled,
    refusal_of_kind,
    said_and_pickle,
    unknown_kinds,
)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode
_DEEPEST: Final = 500
_KEYS: Final = 4  # of the way to a piece, so many of the last keys tell what it is
_ONLY_READ: Final = frozenset({"clock", "file", "network", "random"})  # refusals of what a copy does as well
_INSPECT: Final = frozenset({"LazyFrame.inspect.<locals>.inspect", "Expr.inspect.<locals>.inspect"})
_NUMBER: Final = ("Cache", "id")  # random; steps with the same one are the same step
_PLAIN_BYTES: Final = frozenset({"Literal", "Int", "on_columns"})  # keys below which bytes are data
_remembered: dict[bytes, Content] = {}
_MOST: Final = 4096


class Content(msgspec.Struct, frozen=True):
    """What a step is.

    canonical: what it does. refusals: why its result must not be cached. live: it holds Python functions. acts: they
    may change objects of this process; a plan that was written down holds copies of them, which would not. looked_at:
    expressions of which it must not be cached if they are categories. holds_caches: its functions reach objects of
    libraries that remember something to save time.
    """

    canonical: bytes
    refusals: tuple[str, ...] = ()
    live: bool = False
    acts: bool = False
    looked_at: tuple[bytes, ...] = ()
    holds_caches: bool = False


def rest_of(step: Step) -> bytes:
    """What a step does, without what objects of libraries remember to save time; empty if nobody knows."""
    try:
        found = _Reader(step, without=frozenset({WITHOUT_CACHES})).read()
    except RecursionError:
        return b""
    return b"" if found.refusals else found.canonical


def content_of(step: Step) -> Content:
    """The content of a step that is no source."""
    try:
        raw = _encode([step.kind, step.body])
        known = _remembered.get(raw)
        if known is not None:
            return known
        found = _Reader(step).read()
    except RecursionError:
        return Content(b"", ("it is nested too deeply",))
    if not found.live:  # functions may change without their names changing
        if len(_remembered) >= _MOST:
            _remembered.clear()
        _remembered[raw] = found
    return found


class _Reader(msgspec.Struct):
    step: Step
    refusals: list[str] = msgspec.field(default_factory=list)
    functions: list[bytes] = msgspec.field(default_factory=list)
    live: bool = False
    acts: bool = False
    holds_caches: bool = False
    without: frozenset[str] = frozenset()
    unknown: frozenset[str] = msgspec.field(default_factory=unknown_kinds)

    def read(self) -> Content:
        kind = self.step.kind
        if kind not in PLANS:
            reason = REFUSED_PLANS.get(kind, f"it has a step of the kind {kind}, which is not known")
            return Content(b"", (reason,), acts="File" not in self.step.body.get("payload", ()))
        if kind == "MapFunction":
            self._check_function(self.step.body.get("function"))
        body = self._rewritten(
            {name: value for name, value in self.step.body.items() if (kind, name) != _NUMBER}, (kind,)
        )
        canonical = digest_of(_encode([kind, body]) + b"".join(self.functions))
        refusals = tuple(dict.fromkeys(self.refusals))
        asked = looked_at(kind, self.step.body)
        return Content(canonical, refusals, self.live, self.acts, asked, self.holds_caches)

    def _check_function(self, function: Any) -> None:
        name = next(iter(function)) if isinstance(function, dict) else str(function)
        if name not in MAP_FUNCTIONS:
            self.refusals.append(f"it has a step of the kind {name}, which is not known")

    def _rewritten(self, value: Any, keys: tuple[str, ...]) -> Any:
        """The value with Python functions replaced by their numbers; they are fingerprinted on their own."""
        if isinstance(value, dict):
            if value.get("Object") == "object":  # a type, as Polars writes it; it does not know it again
                self.acts = True
                self.refusals.append("it gives Python objects (pl.Object), which cannot be kept")
            return {name: self._entry(str(name), inner, keys) for name, inner in value.items()}
        if isinstance(value, list):
            if is_python(keys) and value and all(type(each) is int for each in value):
                return self._function(bytes(value), keys)
            return [self._rewritten(inner, keys) for inner in value]
        if isinstance(value, bytes):
            if is_python(keys):
                return self._function(value, keys)
            # Numbers, texts and columns that people give may look like anything, and are never unpickled.
            if looks_pickled(value) and not _PLAIN_BYTES & set(keys):
                self.refusals.append(f"it holds a Python object under {'.'.join(keys[-3:])}, which is not known")
        if isinstance(value, str) and value in self.unknown and keys[-2:] == ("Function", "function"):
            self.refusals.append(refusal_of_kind(value))
        return value

    def _entry(self, name: str, value: Any, keys: tuple[str, ...]) -> Any:
        if name in self.unknown:
            self.refusals.append(refusal_of_kind(name))
        elif name == "seed" and value is None and not self._is_plain_rank(keys):
            self.refusals.append("it draws random numbers without a seed")
        return self._rewritten(value, (*keys[-_KEYS:], name))

    def _is_plain_rank(self, keys: tuple[str, ...]) -> bool:
        return keys[-1:] == ("Rank",) and b"Random" not in _encode(self.step.body)

    def _function(self, pickled: bytes, keys: tuple[str, ...]) -> Any:
        from nectar.keys.outcome import outcome_of  # takes long to load, and most plans hold no function

        self.live = True
        if not tokens_work():
            self.acts = True
            self.refusals.append("how this version of Polars writes down Python functions is not known")
            return None
        try:
            said, _ = said_and_pickle(pickled, "a Polars plan")
            callback = callback_in(pickled, "a Polars plan")
            outcome = outcome_of(callback, self.without, memory=callback.outcomes)
        except NectarError as error:
            self.acts = True
            self.refusals.append(str(error))
            return None
        except Exception as error:  # pickles of others may raise anything
            self.acts = True
            self.refusals.append(f"its Python function cannot be read: {type(error).__name__}: {error}")
            return None
        if _inspects(callback.function):
            self.refusals.append("it prints what passes through it (inspect), which a known result would not")
        self.refusals += [str(refusal) for refusal in outcome.refusals]
        self.acts |= any(refusal.kind not in _ONLY_READ for refusal in outcome.refusals)
        self.functions.append(outcome.digest)
        self.holds_caches |= HOLDS_CACHES in outcome.walk.noticed
        number = len(self.functions)
        rest = self._rewritten(_decode(said), keys) if said else None
        if len(self.functions) > number:
            self.refusals.append("the type that its Python function returns is computed by another one")
        return {"python": number, "said": rest}


def _inspects(function: Any) -> bool:
    """Whether a function is one of Polars that prints what passes through it, also as Polars wraps it."""
    if type(function).__module__.startswith("polars."):
        function = getattr(function, "function", function)
    if type(function) is not FunctionType or not str(function.__module__).startswith("polars."):
        return False
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    inner = [each for each in held if type(each) is FunctionType and str(each.__module__).startswith("polars.")]
    return any(each.__qualname__ in _INSPECT for each in (function, *inner))
