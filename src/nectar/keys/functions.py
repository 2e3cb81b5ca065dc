"""Expanders of Python functions: by body, with all the objects the body reaches.

In: a function object. Out: what it does (the skeleton its template renders to), how it is called, and as children the
objects it works with: constants, globals, captured values, defaults, attributes. Functions of libraries are expanded
in library.py.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from nectar.keys import annotated, declared
from nectar.keys.bytecode.decode import parameter_names
from nectar.keys.expansion import Expansion, WalkContext, joined, sized
from nectar.keys.exposed import Exposed
from nectar.keys.features import Features
from nectar.keys.folding import MISSING
from nectar.keys.library import expand_library_function, touch_module
from nectar.keys.origin import module_of_globals, origin_of_function
from nectar.keys.purity.analysis import examine
from nectar.keys.purity.report import Report
from nectar.keys.purity.widths import widths_in
from nectar.keys.resolve import Resolution, contents
from nectar.keys.special_methods import SpecialMethod, without_salt
from nectar.model.origin import APPLICATION

_IDENTITY: Final = ("names", "qualnames", "docs", "annotations", "modules", "code")
_SHOWN: Final = frozenset({*_IDENTITY, "errors", "signatures", "locals"})  # features that show more than what it does


def expand_special_method(method: SpecialMethod, walk: WalkContext) -> Expansion:
    """What such a method does."""
    return expand_function(without_salt(method.function), walk, method)


def expand_function(function: types.FunctionType, walk: WalkContext, special: SpecialMethod | None = None) -> Expansion:
    """A Python function: what it does and what it does it with."""
    origin = origin_of_function(function)
    if origin is not APPLICATION:
        return expand_library_function(function, origin, walk)
    hashing = special is not None and special.role == "hash"
    _, resolution, skeleton, report = examine(function, walk.observed, walk.examined, hashing=hashing)
    _tell(walk, report, special or function)
    for namespace in {id(space): space for space, _, _ in resolution.reads}.values():
        touch_module(module_of_globals(namespace), walk)
    for part in resolution.parts:
        template = part.template
        inner = template.code
        walk.note_call_names(inner.co_varnames[: inner.co_argcount], template.keywords, template.spreads)
    parts = _Parts(list(resolution.operands), list(resolution.labels))
    if "__class__" in resolution.cells:  # read by super() without being named
        parts.add("class", resolution.cells["__class__"])
    for name, value in _defaults(function):
        parts.add(f"default of {name}", value)
    own = _own_attributes(function)
    own_names = list(own) if "order" in walk.observed else sorted(own)
    for name in own_names:
        parts.add(f"attribute {name}", own[name])
    for value in report.exposed.values():
        parts.add("as seen by what it is given to", Exposed(value))
    for codec in report.codecs:
        parts.add(f"codec {codec.encoding} {codec.errors}", codec)
    for name, value in report.named.items():
        parts.add(f"{name} in a text", value)
    for value in declared.dependencies_of(function):
        parts.add("declared dependency", value)
    shown = walk.observed.any_of(_SHOWN)
    identity = tuple(_identity(function, walk.observed, parts)) if shown else ()
    keywords = tuple(sorted(function.__kwdefaults__)) if function.__kwdefaults__ else ()
    payload = sized(skeleton) + _way_of_calling(tuple(own_names), keywords, identity, len(function.__defaults__ or ()))
    recheck: Callable[[], bool] = _Recheck(function, resolution, own, shown)
    widths = _widths_in(function, resolution, parts)
    if widths:
        recheck = _WhileWidths(recheck, function, resolution, widths)
    return Expansion("function", payload, parts.values, parts.labels, still=recheck, widths=widths)


def _widths_in(function: types.FunctionType, resolution: Resolution, parts: _Parts) -> frozenset[str]:
    """The texts that are widths in the code of a function, and are nothing else that the function holds."""
    found = widths_in(function, resolution)
    return found.difference(filter(_is_text, parts.values[len(resolution.operands) :])) if found else found


def _is_text(value: object) -> bool:
    return type(value) is str


def _tell(walk: WalkContext, report: Report, user: object) -> None:
    """Tells the walk what was found out about a function."""
    for refusal in report.refusals:
        if refusal.excuse is None or walk.at_root():
            walk.refuse(refusal)
        elif not walk.is_settled(user):  # those who call it have not said what they hand it
            walk.refuse(replace(refusal, excuse=None))
    excused = [refusal for refusal in report.refusals if refusal.excuse is not None]
    if excused:
        walk.note_excused(user, excused)
    for feature in report.features:
        walk.observe(feature)
    for value in report.settled:
        walk.settle(user, value)
    for setting in report.settings:
        walk.touch(setting)


class _Parts:
    __slots__ = ("labels", "values")

    def __init__(self, values: list[object], labels: list[str]) -> None:
        self.values = values
        self.labels = labels

    def add(self, label: str, value: object) -> None:
        self.labels.append(label)
        self.values.append(value)


def _own_attributes(function: types.FunctionType) -> dict[str, object]:
    attributes = function.__dict__
    return {name: value for name, value in attributes.items() if name not in declared.MARKS} if attributes else {}


def _defaults(function: types.FunctionType) -> list[tuple[str, object]]:
    values, by_keyword = function.__defaults__ or (), function.__kwdefaults__ or {}
    if not values and not by_keyword:
        return []
    code = function.__code__
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return [*zip(names, values, strict=True), *((name, by_keyword[name]) for name in sorted(by_keyword))]


@lru_cache(maxsize=256)
def _way_of_calling(
    own_names: tuple[str, ...], keywords: tuple[str, ...], identity: tuple[bytes | str, ...], defaults: int
) -> bytes:
    """What surrounds the body of a function. Most have nothing there, so that the bytes are the same."""
    return joined(*own_names, b"", joined(",".join(keywords), *identity), defaults.to_bytes(4, "little"))


def _identity(function: types.FunctionType, observed: Features, parts: _Parts) -> list[bytes | str]:
    """Name, docstring and the like, as far as reached code looks at them."""
    found: list[bytes | str] = []
    code = function.__code__
    if "errors" in observed:  # messages name the function and its parameters
        found.append(joined(function.__qualname__, *parameter_names(code)))
    for feature in _IDENTITY:
        if feature not in observed:
            continue
        if feature == "names":
            found.append(function.__name__)
        elif feature == "qualnames":
            found.append(function.__qualname__)
        elif feature == "modules":
            found.append(str(function.__module__))
        elif feature == "docs":
            parts.add("docstring", function.__doc__)
        elif feature == "annotations":
            parts.add("annotations", annotated.of_function(function))
        else:
            parts.add("code", code)
    if "signatures" in observed or "locals" in observed:
        found.append(joined(*(code.co_varnames if "locals" in observed else parameter_names(code))))
    return found


def _shown(function: types.FunctionType) -> dict[str, object]:
    """What code that looks at a function can see beside what it does."""
    names = {"": function.__name__, ".": function.__qualname__, "..": function.__module__, "...": function.__doc__}
    return {**names, **function.__annotations__}


class _Recheck:
    """Whether a function and everything its names refer to are the very same objects as before."""

    __slots__ = ("captures", "cells", "code", "defaults", "function", "keyword_defaults", "own", "reads", "shown")

    def __init__(
        self,
        function: types.FunctionType,
        resolution: Resolution,
        own: dict[str, object],
        shown: bool,
    ) -> None:
        self.function = function
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.keyword_defaults = dict(function.__kwdefaults__) if function.__kwdefaults__ else {}
        self.captures = bool(function.__closure__)  # which stays as it is; what lies in it may change
        self.cells = resolution.cells
        self.own = own
        self.reads = resolution.reads
        self.shown = _shown(function) if shown else None

    def __call__(self) -> bool:
        function = self.function
        if function.__code__ is not self.code or function.__defaults__ is not self.defaults:
            return False
        if self.shown is not None and not _same(_shown(function), self.shown):
            return False
        for namespace, name, then in self.reads:
            if namespace.get(name, MISSING) is not then:
                return False
        if self.captures and not _same(contents(function), self.cells):
            return False
        if (function.__kwdefaults__ or self.keyword_defaults) and not _same(
            function.__kwdefaults__ or {}, self.keyword_defaults
        ):
            return False
        return not (function.__dict__ or self.own) or _same(_own_attributes(function), self.own)


class _WhileWidths:
    """Whether a function is as before, and its texts are still nothing but widths."""

    __slots__ = ("function", "is_same", "resolution", "widths")

    def __init__(
        self, is_same: Callable[[], bool], function: types.FunctionType, resolution: Resolution, widths: frozenset[str]
    ) -> None:
        self.is_same, self.function, self.resolution, self.widths = is_same, function, resolution, widths

    def __call__(self) -> bool:
        return self.is_same() and self.widths <= widths_in(self.function, self.resolution)


def _same(now: dict[str, object], then: dict[str, object]) -> bool:
    return len(now) == len(then) and all(now.get(name, MISSING) is value for name, value in then.items())
