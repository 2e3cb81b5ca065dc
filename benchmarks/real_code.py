"""Every public function and class of installed packages, fingerprinted as if the packages were application code.

In: names of packages. Out: for each of their functions and classes whether it was accepted, refused (with the reasons)
or crashed, and how long it took the first and the second time. Used by benchmarks/fingerprint.py for the figures and by
tests/keys/test_real_packages.py for the counts.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from types import BuiltinFunctionType, FunctionType, ModuleType

import nectar
from nectar.errors import NectarError, UncacheableError
from nectar.keys import outcome
from nectar.keys.bytecode import template
from nectar.keys.origin import treat_as_application

FUNCTION, METHOD, OBJECT, CLASS = "functions", "methods", "callable objects", "classes"
KINDS = (FUNCTION, METHOD, OBJECT, CLASS)
ACCEPTED, REFUSED, UNENCODABLE, CRASHED = "accepted", "refused", "unencodable", "crashed"

# The roots of what people call one package, and the modules that are not for its users.
PACKAGES: dict[str, tuple[str, ...]] = {
    "more_itertools": ("more_itertools",),
    "attrs": ("attr", "attrs"),
    "toolz": ("toolz",),
    "boltons": ("boltons",),
    "requests": ("requests",),
}
_PRIVATE_PARTS = ("tests", "test", "sandbox")


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one public name."""

    name: str
    kind: str
    result: str
    reasons: tuple[str, ...]
    cold: float
    warm: float


def is_installed(package: str) -> bool:
    return all(importlib.util.find_spec(root) is not None for root in PACKAGES[package])


def modules_of(package: str) -> Iterator[ModuleType]:
    """The public modules of a package; those that cannot be imported here are left out."""
    for root in PACKAGES[package]:
        for module in _all_modules(root):
            parts = module.__name__.split(".")
            if not any(part.startswith("_") or part in _PRIVATE_PARTS for part in parts):
                yield module


def public_names(package: str) -> Iterator[tuple[str, object]]:
    """Public functions, other callables and classes that a package defines itself, each once."""
    seen: set[int] = set()
    for module in modules_of(package):
        listed = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in listed:
            value = vars(module).get(name)
            if id(value) in seen or not _is_own(value, package):
                continue
            seen.add(id(value))
            yield f"{module.__name__}.{name}", value


def every_function(root: str) -> list[FunctionType]:
    """Public functions in any module of a package, and public methods of its public classes, each once."""
    found: dict[int, FunctionType] = {}
    for module in _all_modules(root):
        for name, value in list(vars(module).items()):
            if name.startswith("_") or not str(getattr(value, "__module__", "")).startswith(root):
                continue
            members = vars(value).items() if isinstance(value, type) else [(name, value)]
            for member, each in members:
                if isinstance(each, FunctionType) and not member.startswith("_"):
                    found[id(each)] = each
    return list(found.values())


def _all_modules(root: str) -> Iterator[ModuleType]:
    top = importlib.import_module(root)
    yield top
    for found in pkgutil.walk_packages(getattr(top, "__path__", ()), root + "."):
        if "test" in found.name or "__main__" in found.name:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield importlib.import_module(found.name)
        except Exception:
            continue


def refused_of(root: str) -> tuple[int, dict[str, str]]:
    """How many functions and methods a package has, and why some of them are refused."""
    functions = every_function(root)
    refused = {}
    with treat_as_application(root, *PACKAGES.get(root, ())):
        for function in functions:
            result, reasons, _ = _once(function)
            if result != ACCEPTED:
                refused[function.__qualname__] = reasons[0]
    return len(functions), refused


def public_methods(package: str) -> Iterator[tuple[str, object]]:
    """Functions that public classes define under public names: each by itself, as a function of self."""
    for name, value in public_names(package):
        if isinstance(value, type):
            for member, found in vars(value).items():
                if not member.startswith("_") and inspect.isfunction(found) and found.__module__ == value.__module__:
                    yield f"{name}.{member}", found


def _is_own(value: object, package: str) -> bool:
    if not callable(value):
        return False
    home = getattr(value, "__module__", None)
    own = isinstance(home, str) and home.partition(".")[0] in PACKAGES[package]
    return own and (inspect.isroutine(value) or isinstance(value, type) or type(value).__module__.startswith(package))


def examine(package: str, *, forgetting: bool = True) -> list[Finding]:
    """What becomes of every public name of a package. forgetting: each as if it were the first, for its time."""
    named = [(name, _kind(value), value) for name, value in public_names(package)]
    named += [(name, METHOD, value) for name, value in public_methods(package)]
    with treat_as_application(*PACKAGES[package]):
        return [_examine(name, kind, value, forgetting) for name, kind, value in named]


def _kind(value: object) -> str:
    if isinstance(value, type):
        return CLASS
    return FUNCTION if isinstance(value, FunctionType | BuiltinFunctionType) else OBJECT


def _examine(name: str, kind: str, value: object, forgetting: bool) -> Finding:
    if forgetting:
        outcome.forget()
        template._templates.clear()
    result, reasons, cold = _once(value)
    _, _, warm = _once(value)
    return Finding(name, kind, result, reasons, cold, warm)


def _once(value: object) -> tuple[str, tuple[str, ...], float]:
    start = perf_counter()
    try:
        nectar.fingerprint(value)
    except UncacheableError as error:
        return REFUSED, tuple(f"{refusal.kind}: {refusal}" for refusal in error.refusals), perf_counter() - start
    except NectarError as error:
        return UNENCODABLE, (str(error),), perf_counter() - start
    except Exception as error:
        return CRASHED, (f"{type(error).__name__}: {error}",), perf_counter() - start
    return ACCEPTED, (), perf_counter() - start


def share_refused(findings: list[Finding]) -> float:
    """Of all, the part that got no fingerprint."""
    return sum(finding.result != ACCEPTED for finding in findings) / max(len(findings), 1)


def grouped(findings: list[Finding]) -> Counter[str]:
    """How many names each kind of reason keeps from being cached."""
    kinds: Counter[str] = Counter()
    for finding in findings:
        if finding.result == REFUSED:
            kinds.update({reason.partition(":")[0] for reason in finding.reasons})
        elif finding.result != ACCEPTED:
            kinds[finding.result] += 1
    return kinds
