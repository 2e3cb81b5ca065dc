"""Questions about library objects that code reaches: what they read, what they change, what they see.

In: an object the analysis has resolved. Out: a Verdict, or None if nothing is known against it. Objects are matched by
identity, so aliases and re-exports are covered; nothing is imported, because an object of a library exists only where
the library is in sys.modules.
"""

from __future__ import annotations

import sys
from enum import Enum
from functools import cache
from types import BuiltinMethodType, MethodType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nectar.keys.held import Held
from nectar.keys.modules import Follower, is_arriving
from nectar.keys.origin import is_installed
from nectar.keys.purity.deny import (
    DENIED,
    HOMES,
    NEARER,
    OWNERS,
    REASONS,
    REFUSED,
    TAKE_NAMES,
    TOLD_THE_DAY_BY,
    UNLESS,
    WORDS_FOR_NOW,
    Condition,
)
from nectar.keys.purity.guesses import guess
from nectar.keys.purity.mutators import (
    ARGUMENT_MUTATORS,
    INPLACE_KEYWORDS,
    MUTATORS,
    OUT_KEYWORDS,
    RECEIVER,
    RECEIVER_IS_PATH,
    RECEIVER_NEEDS_KEYWORD,
    RECEIVER_READS_FILE,
    VIEWS_OF_RECEIVER,
    changed_arguments,
    mutators_of,
)
from nectar.keys.purity.observers import ATTRIBUTE_FEATURES, OBSERVERS, REFUSE, SAFE_CALLEES, observed_by
from nectar.keys.purity.readers import MODE_AT, READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ARGUMENT_MUTATORS",
    "ATTRIBUTE_FEATURES",
    "INPLACE_KEYWORDS",
    "MUTATORS",
    "OBSERVERS",
    "OUT_KEYWORDS",
    "RECEIVER",
    "RECEIVER_IS_PATH",
    "RECEIVER_NEEDS_KEYWORD",
    "RECEIVER_READS_FILE",
    "REFUSE",
    "SAFE_CALLEES",
    "VIEWS_OF_RECEIVER",
    "Condition",
    "Verdict",
    "are_made",
    "attribute_verdict",
    "changed_arguments",
    "module_verdict",
    "mutators_of",
    "needs_argument",
    "observed_by",
    "refresh",
    "takes_words_for_now",
    "told_the_day_by",
    "verdict",
]

_PLAIN: Final = (int, float, complex, str, bytes, tuple, frozenset, type(None), type(...))  # shared between owners


_NO_CODE: Final = (ModuleType, *_PLAIN)
_METHODS: Final = (classmethod, staticmethod)


class Reader(Struct, frozen=True):
    """Something that reads what its first argument names. mode_at: where it is told whether to write instead."""

    mode_at: int | None


class Verdict(Struct, frozen=True):
    """Why an object must not be used by a cached function.

    kind: a key of REASONS. reason: for people, begins with the object's name. unless: how a call has to look to be
    fine all the same; None if no call is. reader: it only reads what it is told to read. guessed: by its name.
    """

    kind: str
    reason: str
    unless: Condition | None = None
    reader: Reader | None = None
    guessed: bool = False

    @property
    def takes_names(self) -> bool:
        """Whether calls of it are judged by the names of variables in the texts that they are given."""
        return self.kind == "names" and self.reason.startswith(TAKE_NAMES)


def verdict(value: object) -> Verdict | None:
    """What is known against a function, method, class or other object of a library; None if nothing is.

    New modules are noticed by the number of modules; call refresh() before a run of questions to notice replaced ones.
    """
    if len(sys.modules) != _modules.seen:
        _modules.follow()
    entries = _state.index.get(id(value))
    found = None if entries is None else _judged(entries)
    if found is not None:
        return found
    kind = type(value)
    if kind is MethodType:
        return _of_method(value)  # type: ignore[arg-type]
    if kind is BuiltinMethodType or kind is MethodWrapperType:
        return _of_builtin_method(value) or _guessed(value)
    if kind is classmethod or kind is staticmethod:
        return verdict(value.__func__)  # type: ignore[attr-defined]
    return _guessed(value)


def _guessed(value: Any) -> Verdict | None:
    found = guess(value)
    return None if found is None else replace(_make(found[0], value.__name__, found[1]), guessed=True)


def against_instances(kind: type, names: frozenset[str]) -> Verdict | None:
    """What is known against using an object of this type in code that asks for attributes of these names."""
    found = verdict(kind)
    if found is not None and found.unless is None:
        return found
    for base in kind.__mro__:
        own = type.__getattribute__(base, "__dict__")
        for name in sorted(names & own.keys()):
            found = verdict(own[name])
            if found is not None and found.unless is None:
                return found
    return None


def needs_argument(value: object) -> bool:
    """Whether the object is fine when called with the right argument only (such as a seed)."""
    found = verdict(value)
    return found is not None and found.unless is not None and found.unless.given


def attribute_verdict(module: ModuleType, name: str) -> Verdict | None:
    """What is known against reading an attribute of a module: also for plain values such as time.timezone."""
    module_name = vars(module).get("__name__")
    if not isinstance(module_name, str) or not is_installed(module):
        return None
    found = _named().get((module_name, name))
    if found is not None:
        return found
    missing = object()
    value = vars(module).get(name, missing)
    return None if value is missing or isinstance(value, _PLAIN) else verdict(value)


def module_verdict(module: ModuleType) -> Verdict | None:
    """What is known against a module that is used as a value, so that nobody sees which of its names are read."""
    name = vars(module).get("__name__")
    if not isinstance(name, str) or not is_installed(module):
        return None
    if name in REFUSED:
        return _make(REFUSED[name][0], name)
    if name in DENIED:
        return _make(next(iter(DENIED[name])), name)
    return None


# the index


class _Entry(NamedTuple):
    """An object that a table names, which stays alive here so that its id stays its own."""

    value: object
    module: ModuleType
    kind: str
    name: str
    unless: Condition | None
    reader: Reader | None = None


class _State:
    """What the tables name among the modules that are there, by id; the public place comes before others.

    Where a module comes from and what to say of an object is left for when an object is asked about: a thousand are
    taken in at the first fingerprint of a process, and hardly one of them is ever reached.
    """

    def __init__(self) -> None:
        self.indexed: dict[str, ModuleType] = {}
        self.index: dict[int, list[_Entry]] = {}
        self.owners: dict[int, list[_Entry]] = {}
        self.there: Held | None = None  # the modules of interest, when all were taken in


_state = _State()
takes_words_for_now: Final[dict[int, object]] = {}  # callables of libraries that are loaded, by id
told_the_day_by: Final[dict[int, Condition]] = {}  # what tells some of them the day, by id


def refresh() -> None:
    """Takes in modules that were imported or replaced since the last time."""
    _modules.look_again()


def are_made() -> bool:
    """Whether modules were taken in before, so that only new ones are left."""
    return _modules.seen >= 0


def _take_in_new() -> bool:
    if _state.there is not None and _state.there.is_still_in(sys.modules):
        return True
    there = Held(sys.modules, _OF_INTEREST)
    complete = True
    for name in _OF_INTEREST:
        module = sys.modules.get(name)
        if module is None or _state.indexed.get(name) is module or not isinstance(module, ModuleType):
            continue
        if is_arriving(module):
            complete = False
            continue
        try:
            _take_in(name, module)
        except Exception:  # a module of the application under such a name may hold anything
            if is_installed(module):
                raise
        _state.indexed[name] = module
    if complete:
        _state.there = there
    return complete


_modules: Final = Follower(_take_in_new)
_OF_INTEREST: Final = tuple(dict.fromkeys((*REFUSED, *DENIED, *OWNERS, *WORDS_FOR_NOW)))
KNOWN_PACKAGES: Final = frozenset(name.partition(".")[0] for name in _OF_INTEREST)


def _take_in(name: str, module: ModuleType) -> None:
    unless = UNLESS.get(name, {})
    readers = set(expand(module, READERS.get(name, "")))
    words = [vars(module).get(each) for each in WORDS_FOR_NOW.get(name, "").split()]
    takes_words_for_now.update((id(each), each) for each in words if each is not None)
    if (day := TOLD_THE_DAY_BY.get(name)) is not None:
        told_the_day_by.update((id(each), day) for each in words)
    for kind, names in OWNERS.get(name, {}).items():
        for attribute in names.split():
            owner = vars(module).get(attribute)
            if owner is not None:
                entry = _Entry(owner, module, kind, f"{name}.{attribute}", None)
                _state.owners.setdefault(id(owner), []).insert(0, entry)
    for table in (NEARER, DENIED):
        for kind, names in table.get(name, {}).items():
            for qualified in expand(module, names):
                found = resolve(module, qualified)
                if found is not None:
                    reader = Reader(MODE_AT.get(qualified)) if qualified in readers else None
                    _put(_Entry(found, module, kind, f"{name}.{qualified}", unless.get(qualified), reader))
    if name in REFUSED:
        for attribute, value in _refused_members(name, module):
            reader = Reader(MODE_AT.get(attribute)) if attribute in readers else None
            _put(_Entry(value, module, REFUSED[name][0], f"{name}.{attribute}", unless.get(attribute), reader))


def _refused_members(name: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    """Functions and classes a refused module brings with it; not what it imports, nor exceptions and enumerations."""
    fine = set(REFUSED[name][1].split())
    for attribute, value in list(vars(module).items()):
        if attribute in fine or isinstance(value, _NO_CODE) or not callable(value):
            continue
        if isinstance(value, type) and issubclass(value, (BaseException, Enum)):
            continue
        if _belongs(value, name):
            yield attribute, value


def _belongs(value: object, name: str) -> bool:
    home = getattr(value, "__module__", None)
    if home is None:  # bound to a hidden instance
        return True
    if not isinstance(home, str):
        return False
    return home in (name, "_" + name) or home.startswith(name + ".") or home in HOMES.get(name, ())


def expand(module: ModuleType, names: str) -> Iterator[str]:
    """The names a line of a table stands for in a module that is there."""
    for name in names.split():
        if not name.endswith("*"):
            yield name
            continue
        prefix, _, beginning = name[:-1].rpartition(".")
        holder = resolve(module, prefix) if prefix else module
        members = vars(holder) if isinstance(holder, (ModuleType, type)) else {}
        for member, value in list(members.items()):
            if member.startswith(beginning) and not member.startswith("__") and callable(value):
                yield f"{prefix}.{member}" if prefix else member


def resolve(module: ModuleType, qualified: str) -> object | None:
    """The object as it lies in the module or in the class (a descriptor stays one); None if there is none."""
    found: Any = vars(module)
    for part in qualified.split("."):
        if isinstance(found, type):
            found = next((vars(base)[part] for base in found.__mro__ if part in vars(base)), None)
        elif isinstance(found, dict):
            found = found.get(part)
        else:
            return None
    return found  # type: ignore[no-any-return]


def _put(entry: _Entry) -> None:
    value = entry.value
    if isinstance(value, _NO_CODE):
        return
    _state.index.setdefault(id(value), []).append(entry)
    # a method bound to a class is made anew at every access; one bound to a hidden instance says nothing of the class
    if isinstance(value, _METHODS) or isinstance(getattr(value, "__self__", None), type):
        inner = getattr(value, "__func__", None)
        if callable(inner):
            _state.index.setdefault(id(inner), []).append(entry._replace(value=inner))


def _judged(entries: list[_Entry] | None) -> Verdict | None:
    """What is said of an object by the first module that is what its name says."""
    for entry in entries or ():
        if is_installed(entry.module):
            return _make(entry.kind, entry.name, entry.unless, entry.reader)
    return None


def _make(kind: str, name: str, unless: Condition | None = None, reader: Reader | None = None) -> Verdict:
    return Verdict(kind, f"{name.removeprefix('builtins.')}, which {REASONS[kind]}", unless, reader)


def _of_method(method: MethodType) -> Verdict | None:
    return _judged(_state.owners.get(id(method.__self__))) or _judged(_state.index.get(id(method.__func__)))


def _of_builtin_method(method: Any) -> Verdict | None:
    receiver = method.__self__
    if receiver is None or isinstance(receiver, ModuleType):
        return None
    owner = _judged(_state.owners.get(id(receiver)))
    if owner is not None:
        return owner
    own_bases = receiver.__mro__ if isinstance(receiver, type) else ()
    name = method.__name__
    for base in (*own_bases, *type(receiver).__mro__):
        own = type.__getattribute__(base, "__dict__")
        if name in own:
            return _judged(_state.index.get(id(own[name])))
    return None


@cache
def _named() -> dict[tuple[str, str], Verdict]:
    found = {}
    for table in (DENIED, NEARER):
        for module, kinds in table.items():
            for kind, names in kinds.items():
                for name in names.split():
                    if "." not in name and "*" not in name:
                        unless = UNLESS.get(module, {}).get(name)
                        reader = Reader(MODE_AT.get(name)) if name in READERS.get(module, "").split() else None
                        found[module, name] = _make(kind, f"{module}.{name}", unless, reader)
    return found
