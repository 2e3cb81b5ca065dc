"""Expanders of Python functions: by body, with all the objects the body reaches.

In: a function object. Out: what it does (the skeleton its template renders to), how it is called, and as children the
objects it works with: constants, globals, captured values, defaults, attributes. Functions of libraries are expanded
in library.py.
"""

from __future__ import annotations

import types
from typing import Final

from nectar.errors import UnencodableError
from nectar.keys import declared
from nectar.keys.bytecode.decode import parameter_names
from nectar.keys.bytecode.operation import UnknownInstruction
from nectar.keys.bytecode.template import Template, template_of
from nectar.keys.expansion import Expansion, WalkContext, joined
from nectar.keys.folding import MISSING
from nectar.keys.library import expand_library_function
from nectar.keys.origin import origin_of_function
from nectar.keys.purity.analysis import examine
from nectar.keys.resolve import Resolution
from nectar.model.origin import APPLICATION

_IDENTITY: Final = ("names", "qualnames", "docs", "annotations", "modules", "code")


def expand_function(function: types.FunctionType, walk: WalkContext) -> Expansion:
    """A Python function: what it does and what it does it with."""
    origin = origin_of_function(function)
    if origin is not APPLICATION:
        return expand_library_function(function, origin, walk)
    code = function.__code__
    resolution, skeleton = resolve(function, walk.observed)
    cells = resolution.cells
    walk.note_call_names(
        code.co_varnames[: code.co_argcount],
        frozenset().union(*(part.template.keywords for part in resolution.parts)),
        any(part.template.spreads for part in resolution.parts),
    )
    exposed = examine(function, resolution, walk)
    parts = _Parts()
    for value, label in zip(resolution.operands, resolution.labels, strict=True):
        parts.add(label, value)
    if "__class__" in cells:  # read by super() without being named
        parts.add("class", cells["__class__"])
    for name, value in _defaults(function):
        parts.add(f"default of {name}", value)
    own = {name: value for name, value in vars(function).items() if name not in declared.MARKS}
    for name in sorted(own):
        parts.add(f"attribute {name}", own[name])
    for value in exposed:
        parts.add("as seen by what it is given to", value)
    for value in declared.dependencies_of(function):
        parts.add("declared dependency", value)
    identity = _identity(function, walk, parts)
    payload = joined(skeleton, *sorted(own), b"", identity, len(function.__defaults__ or ()).to_bytes(4, "little"))
    return Expansion(
        "function",
        payload,
        parts.values,
        parts.labels,
        still=None if walk.observed else _Recheck(function, resolution, cells, own),
    )


def resolve(function: types.FunctionType, observed: frozenset[str]) -> tuple[Resolution, bytes]:
    """The objects a function works with, and what it does with them."""
    template = _template(function)
    resolution = Resolution(function.__globals__, builtins_of(function), contents(function), observed)
    return resolution, resolution.render(template)


class _Parts:
    __slots__ = ("labels", "values")

    def __init__(self) -> None:
        self.values: list[object] = []
        self.labels: list[str] = []

    def add(self, label: str, value: object) -> None:
        self.labels.append(label)
        self.values.append(value)


def _template(function: types.FunctionType) -> Template:
    try:
        return template_of(function.__code__)
    except UnknownInstruction as unknown:
        raise UnencodableError(
            describe(function), "its bytecode", f"instruction {unknown} is not known to this version of Nectar"
        ) from unknown


def builtins_of(function: types.FunctionType) -> dict[str, object]:
    """The namespace a function takes builtins from."""
    found = function.__builtins__  # type: ignore[attr-defined]
    return found if isinstance(found, dict) else vars(found)


def contents(function: types.FunctionType) -> dict[str, object]:
    """What the captured variables of a function hold now; empty cells are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def describe(function: types.FunctionType) -> str:
    """A function for people: name, file and line."""
    code = function.__code__
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{code.co_qualname} ({file}:{code.co_firstlineno})"


def _defaults(function: types.FunctionType) -> list[tuple[str, object]]:
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    by_keyword = function.__kwdefaults__ or {}
    return [*zip(names, values, strict=True), *((name, by_keyword[name]) for name in sorted(by_keyword))]


def _identity(function: types.FunctionType, walk: WalkContext, parts: _Parts) -> bytes:
    """Name, docstring and the like, as far as reached code looks at them."""
    found: list[bytes | str] = [",".join(sorted(function.__kwdefaults__ or {}))]
    if not walk.observed:
        return joined(*found)
    code = function.__code__
    for feature in _IDENTITY:
        if feature not in walk.observed:
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
            parts.add("annotations", dict(function.__annotations__))
        else:
            parts.add("code", code)
    if "signatures" in walk.observed or "locals" in walk.observed:
        found.append(joined(*(code.co_varnames if "locals" in walk.observed else parameter_names(code))))
    return joined(*found)


class _Recheck:
    """Whether a function and everything its names refer to are the very same objects as before."""

    __slots__ = ("attributes", "cells", "code", "defaults", "function", "keyword_defaults", "own", "reads")

    def __init__(
        self, function: types.FunctionType, resolution: Resolution, cells: dict[str, object], own: dict[str, object]
    ) -> None:
        self.function = function
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.keyword_defaults = dict(function.__kwdefaults__ or {})
        self.cells = cells
        self.own = own
        self.reads = resolution.reads

    def __call__(self) -> bool:
        function = self.function
        if function.__code__ is not self.code or function.__defaults__ is not self.defaults:
            return False
        for namespace, name, then in self.reads:
            if namespace.get(name, MISSING) is not then:
                return False
        if function.__closure__ and not _same(contents(function), self.cells):
            return False
        if (function.__kwdefaults__ or self.keyword_defaults) and not _same(
            function.__kwdefaults__ or {}, self.keyword_defaults
        ):
            return False
        attributes = function.__dict__
        return not (attributes or self.own) or _same(
            {name: value for name, value in attributes.items() if name not in declared.MARKS}, self.own
        )


def _same(now: dict[str, object], then: dict[str, object]) -> bool:
    return len(now) == len(then) and all(now.get(name, MISSING) is value for name, value in then.items())
