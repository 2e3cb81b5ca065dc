"""From a template and the names around a function to its skeleton and operands.

In: a template, the function's globals, builtins and cells. Out: bytes that say what is done (the skeleton), and the
objects it is done with (the operands), in the order of first use. A chain of attributes of modules is one operand:
`math.floor`, `from math import floor` and an alias are the same. Names vanish: a global, a captured variable and a
constant of equal value are the same. Nested code is rendered in place.

What was read on the way is kept, so that a later recheck needs identity comparisons only.
"""

from __future__ import annotations

import inspect
import types
from functools import lru_cache
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.ambient import EnvironmentVariable
from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.decode import parameter_names
from nectar.keys.bytecode.operation import (
    CAUGHT,
    CELL,
    CELLS,
    CONST,
    FREE,
    GLOBAL,
    NULL,
    PARAM,
    UNBOUND,
    Operation,
    UnknownInstruction,
)
from nectar.keys.bytecode.template import RETURN, Block, Template, template_of
from nectar.keys.expansion import joined, sized
from nectar.keys.features import Features
from nectar.keys.folding import FOLDS, MISSING, GlobalsView
from nectar.keys.inspection import is_a

SIGNATURE_FLAGS: Final = (
    inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
)  # fmt: skip
_REMEMBERED: Final = 4096  # small pieces of bytes that come again and again
_OF_NAMESPACES: Final = frozenset({"LOAD_NAME", "STORE_NAME"})
# Names a class body sets by itself; they tell where the class stands, not what it does.
_OF_CLASS_BODIES: Final = {
    "__module__": "modules", "__qualname__": "qualnames", "__doc__": "docs",
    "__firstlineno__": "lines", "__static_attributes__": "lines",
}  # fmt: skip


class Part:
    """One template as rendered: which values turned out to be which objects."""

    __slots__ = ("captured", "inlined", "known", "nested", "outer", "template")

    def __init__(self, template: Template, outer: Part | None = None, captured: dict[str, int] | None = None) -> None:
        self.template = template
        self.outer = outer  # the part that makes this function, or evaluates this text
        self.nested = outer is not None
        self.captured = captured or {}  # names of variables shared with the outer part: values there
        self.known: dict[int, object] = {}
        self.inlined: dict[
            int, Template | EnvironmentVariable
        ] = {}  # calls that were looked into, by id of the operation


def resolve_function(function: types.FunctionType, observed: Features) -> tuple[Resolution, bytes]:
    """The objects a function works with, and what it does with them."""
    try:
        template = template_of(function.__code__)
    except UnknownInstruction as unknown:
        raise UnencodableError(describe(function), "its bytecode", str(unknown)) from unknown
    resolution = Resolution(function.__globals__, builtins_of(function), contents(function), observed)
    return resolution, resolution.render(template)


def builtins_of(function: types.FunctionType) -> dict[str, object]:
    """The namespace a function takes builtins from."""
    found: Any = getattr(function, "__builtins__")  # noqa: B009 - type checkers disagree about its type
    return found if is_a(found, dict) else vars(found)


def contents(function: types.FunctionType) -> dict[str, object]:
    """What the captured variables of a function hold now; empty cells are left out."""
    found: dict[str, object] = {}
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


class Resolution:
    """Renders the template of one function, nested code included."""

    def __init__(
        self,
        namespace: dict[str, object],
        builtin: dict[str, object],
        cells: dict[str, object],
        observed: Features,
    ) -> None:
        self.namespace = namespace
        self.builtin = builtin
        self.cells = cells
        self.observed = observed
        self.rebound = observed.rebound
        self.operands: list[object] = []
        self.labels: list[str] = []
        self.reads: list[tuple[dict[str, object], str, object]] = []
        self.parts: list[Part] = []
        self.unimportable: list[tuple[Template, Operation, str]] = []
        self._numbers: dict[object, bytes] = {}

    # names

    def read(self, namespace: dict[str, object], name: str) -> object:
        """What name refers to in a namespace (MISSING if nothing), noted for rechecks."""
        found = namespace.get(name, MISSING)
        self.reads.append((namespace, name, found))
        return found

    def read_global(self, name: str) -> object:
        """What a global name refers to."""
        found = self.read(self.namespace, name)
        return self.read(self.builtin, name) if found is MISSING else found

    def read_attribute(self, module: types.ModuleType, name: str) -> object:
        """What an attribute of a module refers to; MISSING where only running code could tell."""
        return self.read(vars(module), name)

    # operands

    def operand(self, value: object, label: str) -> bytes:
        """The token of an object, which becomes an operand."""
        kind = type(value)
        plain = kind in ATOMS and value == value  # a NaN has identity
        key: object = (kind, ATOMS[kind](value)) if plain else id(value)
        token = self._numbers.get(key)
        if token is None:
            token = _token(b"o", len(self.operands))
            self.operands.append(value)
            self.labels.append(label)
            if kind is not tuple and kind is not frozenset:  # whether those are shared is up to the compiler
                self._numbers[key] = token
        return token

    def render(self, template: Template) -> bytes:
        """The skeleton of the template of the function itself."""
        part = Part(template)
        self.parts.append(part)
        return Renderer(self, part, self.cells).render()


class Renderer:
    """Writes one template: first which operations fold and how values are numbered, then the bytes."""

    def __init__(self, resolution: Resolution, part: Part, cells: dict[str, object]) -> None:
        self.resolution = resolution
        self.part = part
        self.template = part.template
        self.known = part.known
        self.cells = cells
        self.code = part.template.code
        self.tokens: dict[int, bytes] = {}
        self.labels: dict[int, str] = {}
        self.free: dict[str, int] = {}
        self.local_cells: dict[int, int] = {}
        self.parameters: dict[str, int] = {}  # of the function that evaluates this code, by name
        self.rebound = resolution.rebound
        self.ordered: dict[int, object] = {}  # loads of names that reached code assigns to: when matters, too

    def render(self) -> bytes:
        """The skeleton of the template."""
        count = 0
        tokens = self.tokens
        written: list[list[Operation]] = []
        for block in self.template.blocks:
            for merge in block.merges:
                tokens[merge] = _token(b"v", count)
                count += 1
            kept: list[Operation] = []
            written.append(kept)
            for operation in block.operations:
                if operation.name in FOLDS and self._fold(operation):
                    continue
                kept.append(operation)
                if operation.results == 1:
                    tokens[operation.result] = _token(b"v", count)
                else:
                    for at in range(operation.results):
                        tokens[operation.result + at] = _token(b"v", count + at)
                count += operation.results
        return signature(self.code) + b"".join(map(self._block, self.template.blocks, written))

    def _fold(self, operation: Operation) -> bool:
        found = FOLDS[operation.name](self, operation)
        if found is MISSING:
            return False
        self.known[operation.result] = found
        if self.rebound and self._loaded_name_of(operation) in self.rebound:
            self.ordered[id(operation)] = found
            return False
        return True

    def _loaded_name_of(self, operation: Operation) -> object:
        if operation.name in ("LOAD_GLOBAL", "LOAD_FREE"):
            return self.template.data[operation.operands[0]]
        return operation.arg

    def label(self, operation: Operation, text: str) -> None:
        """Says what people call the result of an operation."""
        self.labels[operation.result] = text

    def constant(self, value: int) -> object:
        """The constant a value is, or MISSING."""
        if self.template.kinds[value] == CONST:
            return self.code.co_consts[self.template.data[value]]  # type: ignore[call-overload]
        known = self.known.get(value, MISSING)
        return known if type(known) is str else MISSING

    # writing

    def _block(self, block: Block, operations: list[Operation]) -> bytes:
        token = self.token
        out = [_token(b"B", len(block.merges))]
        if block.handler is not None:
            out.append(_token(b"h", block.handler) + _token(b"", len(block.handler_stack)))
            out.extend(map(token, block.handler_stack))
        out += [sized(self._operation(operation)) for operation in operations]
        out.append(b"T" + block.test.encode() + b":")
        if block.value >= 0:
            out.append(token(block.value))
        for edge in block.edges:
            out.append(b"R" if edge.target == RETURN else _token(b"G", edge.target))
            out.extend(map(token, edge.values))
        return b"".join(out)

    def _operation(self, operation: Operation) -> bytes:
        name, arg, operands = operation.name, operation.arg, operation.operands
        if name == "MAKE_FUNCTION":
            return self._function(operation)
        head = _heads.get((name, type(arg), arg)) or _head(name, arg)
        if self.ordered and id(operation) in self.ordered:
            return head + self.resolution.operand(self.ordered[id(operation)], self.labels.get(operation.result, ""))
        if self.part.inlined and id(operation) in self.part.inlined:
            return self._inlined(self.part.inlined[id(operation)], operation)
        if name in _OF_NAMESPACES:
            if name == "LOAD_NAME":
                return head + self._loaded_name(operation)
            feature = _OF_CLASS_BODIES.get(arg)  # type: ignore[call-overload]
            if feature is not None and feature not in self.resolution.observed:
                return b""
        known = self.tokens
        tokens = [known.get(value) or self.token(value) for value in operands]
        return b"".join((head, _token(b"", len(operands)), *tokens))

    def _inlined(self, content: Template | EnvironmentVariable, operation: Operation) -> bytes:
        """eval() of constant text by what the text does; a variable of the environment by name, value and default."""
        if is_a(content, EnvironmentVariable):
            variable = self.resolution.operand(content, f"environment variable {content.name}")
            return b"V" + operation.name.encode() + variable + b"".join(map(self.token, operation.operands[2:]))
        part = Part(content, self.part)
        self.resolution.parts.append(part)
        renderer = Renderer(self.resolution, part, {})
        renderer.parameters = {name: at for at, name in enumerate(parameter_names(self.code))}
        return b"E" + sized(renderer.render())

    def _loaded_name(self, operation: Operation) -> bytes:
        """A name in a class body: of the class so far, or global, or built in."""
        name: str = operation.arg  # type: ignore[assignment]
        if name in self.parameters:
            return _token(b"p", self.parameters[name])
        found = self.resolution.read_global(name) if name != "__name__" else MISSING
        others = b"".join(map(self.token, operation.operands[:-1]))
        return others + (b"?" if found is MISSING else self.resolution.operand(found, f"global {name}"))

    def _function(self, operation: Operation) -> bytes:
        """A function made here: its code in place, what it is made with, and the cells it captures, by first use."""
        flags: tuple[int, ...] = operation.arg  # type: ignore[assignment]
        parts = dict(zip(flags, operation.operands[1:], strict=True))
        inner: types.CodeType = self.constant(operation.operands[0])  # type: ignore[assignment]
        captured = self._captured(inner, parts.get(8))
        held = {name: self._held(value) for name, value in captured.items()}
        part = Part(template_of(inner), self.part, captured)
        self.resolution.parts.append(part)
        renderer = Renderer(
            self.resolution, part, {name: value for name, value in held.items() if value is not MISSING}
        )
        body = renderer.render()
        out = [b"F", sized(body)]
        if "names" in self.resolution.observed:
            out.append(joined(inner.co_name))
        if "qualnames" in self.resolution.observed:
            out.append(joined(inner.co_qualname))
        for flag, feature in ((1, None), (2, None), (4, "annotations")):
            if flag in parts and (feature is None or feature in self.resolution.observed):
                out.append(_token(b"+", flag) + self.token(parts[flag]))
        out.extend(self.token(captured[name]) for name in renderer.free)
        if "__class__" in captured and "__class__" not in renderer.free:
            out.append(self.token(captured["__class__"]))
        return b"".join(out)

    def _captured(self, inner: types.CodeType, cells: int | None) -> dict[str, int]:
        if cells is None:
            return {}
        values: tuple[int, ...]
        if self.template.kinds[cells] == CELLS:
            values = self.template.data[cells]  # type: ignore[assignment]
        else:  # seen to be cells only after merges were looked at
            values = next(
                operation.operands
                for block in self.template.blocks
                for operation in block.operations
                if operation.results and operation.result == cells
            )
        return dict(zip(inner.co_freevars, values, strict=True))

    def _held(self, value: int) -> object:
        """What a captured variable holds, where this code got it from outside and nobody here changes it."""
        if self.template.kinds[value] != FREE or self.template.data[value] in self.rebound:
            return MISSING
        return self.cells.get(self.template.data[value], MISSING)  # type: ignore[call-overload]

    def token(self, value: int) -> bytes:
        """What stands for a value in the skeleton."""
        if value in self.tokens:
            return self.tokens[value]
        token = self.tokens[value] = self._new_token(value)
        return token

    def _new_token(self, value: int) -> bytes:
        if value in self.known:
            known = self.known[value]
            source = known.source if is_a(known, GlobalsView) else known
            return self.resolution.operand(source, self.labels.get(value, ""))
        kind, data = self.template.kinds[value], self.template.data[value]
        if kind == PARAM:
            return _token(b"p", data)
        if kind == CONST:
            return self._constant_token(self.code.co_consts[data])  # type: ignore[call-overload]
        if kind == GLOBAL:
            found = self.resolution.read_global(data)  # type: ignore[arg-type]
            now = b"?" if found is MISSING else self.resolution.operand(found, f"global {data}")
            return b"g" + joined(data) + now  # type: ignore[arg-type]
        if kind == FREE:
            return self._free_token(data)  # type: ignore[arg-type]
        if kind == CELL:
            return self._cell_token(data)  # type: ignore[arg-type]
        if kind == CAUGHT:
            return _token(b"e", data[0] + 1) + _token(b"e", data[1] + 1)  # type: ignore[index]
        if kind in (UNBOUND, NULL):
            return b"u" if kind == UNBOUND else b"0"
        raise AssertionError(f"value of kind {kind} in {self.code.co_qualname}")

    def _constant_token(self, constant: object) -> bytes:
        return self.resolution.operand(constant, "constant")

    def _free_token(self, name: str) -> bytes:
        """A captured variable that is read or written as a variable: by first use, and with what it holds now."""
        number = self.free.setdefault(name, len(self.free))
        if self.part.nested:
            return _token(b"f", number)
        held = self.cells.get(name, MISSING)
        return _token(b"f", number) + (b"?" if held is MISSING else self.resolution.operand(held, f"captured {name}"))

    def _cell_token(self, index: int) -> bytes:
        names = self.code.co_varnames + tuple(
            name for name in self.code.co_cellvars if name not in self.code.co_varnames
        )
        if names[index] in parameter_names(self.code):
            return _token(b"P", index)
        return _token(b"c", self.local_cells.setdefault(index, len(self.local_cells)))


def signature(code: types.CodeType) -> bytes:
    """How arguments are passed: numbers, kinds, and the names that only keywords can give."""
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
    counts = _counts(positional, code.co_posonlyargcount, keyword_only, code.co_flags & SIGNATURE_FLAGS)
    return counts + joined(*code.co_varnames[positional : positional + keyword_only]) if keyword_only else counts


@lru_cache(maxsize=_REMEMBERED)
def _counts(*numbers: int) -> bytes:
    return joined(*(number.to_bytes(4, "little") for number in numbers))


@lru_cache(maxsize=_REMEMBERED)
def _token(kind: bytes, number: int) -> bytes:
    return kind + number.to_bytes(4, "little")


_heads: dict[tuple[str, type, object], bytes] = {}


def _head(name: str, arg: object) -> bytes:
    """The fixed part of the bytes of an operation. The same few come again and again."""
    head = sized(f"{name}:{arg!r}".encode("utf-8", "backslashreplace"))
    # (True,) and (1,) are equal, but not here
    if (type(arg) is not tuple or not arg) and len(_heads) < _REMEMBERED:
        _heads[name, type(arg), arg] = head
    return head
