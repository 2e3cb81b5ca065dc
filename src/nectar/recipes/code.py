"""Which code a program needs to run again: modules of the application by their text, packages by name and version.

In: Python objects as a plan holds them, and their pickled forms. Out: a Code. What functions reach is found by the same
walk that fingerprints them; a module that is needed is needed with everything it imports, because it is run as a whole.

Law: whatever the application would load from files of its own is captured, or named as a reason why it cannot be run;
but of its modules only what can be reached (`reduction.py`), and nothing that may be a credential.
"""

from __future__ import annotations

import ast
import pickletools
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from nectar.keys.credentials import Suspicion, secret_constants
from nectar.keys.expansion import Expansion
from nectar.keys.origin import (
    OWN_NAME,
    is_native,
    origin_of_builtin,
    origin_of_class,
    origin_of_function,
    origin_of_module,
)
from nectar.keys.outcome import explore
from nectar.keys.trace import place_of
from nectar.model.origin import Origin
from nectar.recipes.recipe import SECRET, Code, Module, Package, digest_of_text
from nectar.recipes.reduction import Given, Reached, reduced
from nectar.recipes.statements import absolute
from nectar.trust.literals import code_holds_secret
from nectar.trust.secrets import is_secret_name

_SHORTEST: Final = 3  # characters of what may be a credential
_MARKS: Final = frozenset(
    {"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "FRAME"}
)  # between the name of a value and itself
_BY_VALUE: Final = "cloudpickle"  # what functions without a module of their own are pickled with


def code_of(functions: Sequence[object], pickled: Sequence[bytes], but: frozenset[str] = frozenset()) -> Code:
    """The code that functions need. pickled: their forms in the plan. but: packages that are looked after otherwise."""
    reached = _Reached()
    for function in functions:
        explore(function, observer=reached.begun)
    names = {name for form in pickled for name in _names_in(form)}
    ours = frozenset({*but, OWN_NAME})
    code = _captured(reached, names, ours, _reduced(_captured(reached, names, ours, {}), reached, names))
    if any(_BY_VALUE.encode() in form for form in pickled):
        code.packages[_BY_VALUE] = Package(_BY_VALUE, "", _BY_VALUE, "functions of the script itself")
    code.refusals += _credentials(code, pickled, reached)
    return code


def _captured(reached: _Reached, names: Iterable[str], but: frozenset[str], texts: Mapping[str, str]) -> Code:
    """Modules with those they import, and packages. texts: of modules of which not everything is needed."""
    capture = _Capture(but, reached.codes, texts)
    for origin, user in reached.packages.items():
        capture.package(origin, user)
    for name in sorted({*names, *reached.modules}):
        capture.module(name, "the program")
    return capture.finished()


def _reduced(code: Code, reached: _Reached, names: Collection[str]) -> dict[str, str]:
    """The texts of modules, of each as much as can be reached."""
    modules = {
        each.name: Given(
            code.texts[each.name], each.name if each.package else each.name.rpartition(".")[0],
            reached.codes.get(each.path, ()),
        )
        for each in code.modules
    }  # fmt: skip
    spoken = {part for name in names for part in name.split(".") if not part.startswith("__")}
    return reduced(modules, Reached(names, reached.modules, reached.named, spoken))


def _credentials(code: Code, pickled: Sequence[bytes], reached: _Reached) -> list[str]:
    """Why a recipe of this code would hold a credential."""
    found = [f"the module {name} holds {SECRET}" for name, text in code.texts.items() if code_holds_secret(text)]
    known = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in reached.secrets]
    if any(each in form for each in known for form in pickled) or any(map(_is_given_by_name, pickled)):
        found.append(f"a function, or a value that it captured, holds {SECRET}")
    return found


def _is_given_by_name(pickled: bytes) -> bool:
    """Whether there is, in a pickle, a text under the name of a credential."""
    name = ""
    for operation, argument in _operations(pickled):
        if isinstance(argument, str | bytes):
            if name and len(argument) >= _SHORTEST:
                return True
            is_name = isinstance(argument, str) and argument.isidentifier() and is_secret_name(argument)
            name = str(argument) if is_name else ""
        elif operation not in _MARKS:
            name = ""
    return False


def suspects_in(functions: Iterable[object]) -> list[str]:
    """What functions do that would keep them from being cached, had nobody vouched for them: a sentence for each."""
    found: dict[str, None] = {}
    for function in functions:
        walk, _, refusals = explore(function)
        found.update({str(refusal): None for refusal in walk.refusals if refusal not in refusals})
    return list(found)


class _Reached:
    """Watches walks: which modules of the application and which packages they come to, and through what."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.codes: dict[str, list[CodeType]] = {}  # of functions, by the file they are written in
        self.packages: dict[Origin, str] = {}
        self.named: set[str] = set()  # names of functions and classes, and those of which functions speak
        self.secrets: set[str | bytes] = set()  # texts that may be credentials
        self._suspicion = Suspicion()
        self._open: list[str] = []  # of each object on the way, the function of the application it belongs to

    def begun(self) -> _Reached:
        """The observer of the next walk."""
        self._open, self._suspicion = [], Suspicion()
        return self

    def enter(self, value: object, label: str, expansion: Expansion) -> None:
        """An object with parts."""
        self._suspicion.enter(value, label)
        user = self._open[-1] if self._open else "the program"
        origin = _origin_of(value)
        if origin is not None and origin.kind == "distribution":
            self.packages.setdefault(origin, user)
        elif origin is not None and origin.kind == "application":
            self.modules.add(_module_of(value))
            self.named.update(str(getattr(value, "__qualname__", "")).split("."))
            if isinstance(value, FunctionType):
                self.named |= _names_of(value.__code__)
                self.secrets |= secret_constants(value.__code__)
                self.codes.setdefault(value.__code__.co_filename, []).append(value.__code__)
                user = f"{value.__qualname__} ({place_of(value)})"
        self._open.append(user)

    def leave(self) -> None:
        """All parts of the object entered last have been met."""
        self._open.pop()
        self._suspicion.leave()

    def leaf(self, value: object, label: str, repeated: bool) -> None:
        """An atom, or an object met before."""
        if isinstance(value, str | bytes) and len(value) >= _SHORTEST and self._suspicion.falls_on(value, label):
            self.secrets.add(value)


def _names_of(code: CodeType) -> set[str]:
    """All names that code speaks of, and all texts in it that may be names."""
    found: set[str] = set()
    pending = [code]
    while pending:
        each = pending.pop()
        found.update(each.co_names)
        found.update(text for text in each.co_consts if isinstance(text, str) and text.isidentifier())
        pending.extend(constant for constant in each.co_consts if isinstance(constant, CodeType))
    return found


def _origin_of(value: object) -> Origin | None:
    """Whose an object is; None if that cannot be said of it."""
    if isinstance(value, FunctionType):
        return origin_of_function(value)
    if isinstance(value, type):
        return origin_of_class(value)
    if isinstance(value, ModuleType):
        return origin_of_module(value)
    return origin_of_builtin(value) if isinstance(value, BuiltinFunctionType) else None


def _module_of(value: Any) -> str:
    if isinstance(value, ModuleType):
        return str(value.__name__)
    if isinstance(value, FunctionType):
        return str(value.__globals__.get("__name__") or value.__module__)
    return str(getattr(value, "__module__", ""))


def _names_in(pickled: bytes) -> Iterator[str]:
    """Texts in a pickle that may be names of modules: those it will import are among them."""
    for _, argument in _operations(pickled):
        if isinstance(argument, str) and argument.replace(".", "").isidentifier():
            yield argument


def _operations(pickled: bytes) -> Iterator[tuple[str, object]]:
    """What a pickle does: the name of each operation, and what it is given."""
    start = pickled.find(b"\x80")
    return ((each.name, argument) for each, argument, _ in pickletools.genops(pickled[start:]))


class _Capture:
    """Collects modules, each with those it imports."""

    def __init__(self, but: frozenset[str], codes: Mapping[str, Sequence[CodeType]], texts: Mapping[str, str]) -> None:
        self.code = Code()
        self._texts = texts
        self._but = but
        self._codes = codes
        self._seen = {"__main__", ""}  # what belongs to the script itself travels inside the plan
        self._pending: list[tuple[str, str]] = []

    def module(self, name: str, user: str) -> None:
        """A module is needed, if it is loaded, and the packages it lies in."""
        while name not in self._seen:
            self._seen.add(name)
            self._pending.append((name, user))
            name = name.rpartition(".")[0]

    def package(self, origin: Origin, user: str) -> None:
        """An installed package is needed; the first who needs it is named."""
        if origin.name not in self._but and origin.name not in self.code.packages:
            self.code.packages[origin.name] = Package(origin.name, origin.version, origin.module, user)

    def finished(self) -> Code:
        """Everything, after what was asked for and what that imports."""
        while self._pending:
            name, user = self._pending.pop()
            module = sys.modules.get(name)
            if isinstance(module, ModuleType):
                self._add(name, module, user)
        self.code.modules.sort(key=lambda module: module.name)
        return self.code

    def _add(self, name: str, module: ModuleType, user: str) -> None:
        origin = origin_of_module(module)
        if origin.kind == "distribution":
            self.package(origin, user)
        if origin.kind != "application":
            return
        text = _text_of(name, module)
        if text is None:
            self.code.refusals.append(f"the module {name}, which {user} needs, {_why_no_text(module)}")
            return
        is_package = hasattr(module, "__path__")
        path = getattr(module, "__file__", None) or ""
        codes = self._codes.get(path, ())
        less = self._texts.get(name, text)
        if all(code in _codes_in(less) for code in codes):
            text = less
        elif any(code not in _codes_in(text) for code in codes):
            self.code.refusals.append(
                f"the file {path} was changed after it was imported, and what it was is not known"
            )
        self.code.modules.append(Module(name, is_package, path, digest_of_text(text)))
        self.code.texts[name] = text
        for imported in _imports_in(text, name if is_package else name.rpartition(".")[0]):
            self.module(imported, f"the module {name}")


def _text_of(name: str, module: ModuleType) -> str | None:
    """The text of a module as it is now where it was loaded from; None if there is none."""
    if is_native(module):
        return None
    if hasattr(module, "__path__") and getattr(module, "__file__", None) is None:
        return ""  # a folder without a text of its own
    loader: Any = getattr(getattr(module, "__spec__", None), "loader", None)
    try:
        found = loader.get_source(name)
    except Exception:  # a loader of others may raise anything
        return None
    return found if isinstance(found, str) else None


@lru_cache(maxsize=256)
def _codes_in(text: str) -> frozenset[CodeType]:
    """All code of functions in a text, as Python compiles it."""
    found: set[CodeType] = set()
    try:
        pending = [compile(text, "", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    while pending:
        code = pending.pop()
        found.add(code)
        pending.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(found)


def _why_no_text(module: ModuleType) -> str:
    if is_native(module):
        return "is compiled, and only the text of modules is kept"
    return "has no text that could be kept: it was not loaded from a source file, or the file is gone"


@lru_cache(maxsize=256)
def _imports_in(text: str, package: str) -> tuple[str, ...]:
    """Names of modules that a text imports anywhere; some may be names of what is in a module."""
    return tuple(_imported(text, package))


def _imported(text: str, package: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, package)
            if base is not None:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
