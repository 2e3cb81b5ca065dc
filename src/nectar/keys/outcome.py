"""The fingerprint of a function or value, remembered as long as nothing it was made of has changed.

In: any object. Out: an Outcome: the digest, and the reasons not to cache it, if there are any. The first time
everything is walked; after that, rechecks compare what was read then with what is there now, object by object.
Mutable contents are looked at again each time.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Hashable
from typing import Any, Final, NamedTuple

from nectar.errors import UnencodableError
from nectar.keys import caches, declared
from nectar.keys.ambient import (
    KNOWN_IN_PART,
    PROVIDERS,
    STANDARD,
    TABLES,
    Settings,
    always_touched,
    has_no_settings,
    tells_states,
)
from nectar.keys.changes import assignment_to, change_of, patch_of
from nectar.keys.expansion import joined
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES, Features
from nectar.keys.origin import application_packages
from nectar.keys.program_text import MAYBE
from nectar.keys.purity import tables
from nectar.keys.registered import recheck, registered
from nectar.keys.registrations import REGISTRATIONS
from nectar.keys.registry import expander_for
from nectar.keys.scheme import new_hasher
from nectar.keys.special_methods import SpecialMethod
from nectar.keys.texts import version_of_program
from nectar.keys.thread_states import has_states
from nectar.keys.walk import Observer, Walk, describe_type
from nectar.model.refusal import Refusal

_WRAPPINGS: Final = 20  # how far a callable is followed to the function that takes the arguments
_REMEMBERED: Final = 4096  # outcomes kept; each keeps what it was made of alive
_LIGHT: Final = 50_000  # objects and 64-byte pieces; what is heavier is walked anew rather than kept alive


class Outcome(NamedTuple):
    """What a walk found. The digest is right even where refusals say that caching would be wrong.

    findings: what others found out of the code that was reached, which is true as long as this is remembered.
    """

    digest: bytes
    refusals: tuple[Refusal, ...]
    walk: Walk
    findings: dict[object, Any]


class _Memory(NamedTuple):
    value: object
    rechecks: list[Callable[[], bool]]
    outcome: Outcome
    circumstances: object


_memory: dict[object, _Memory] = {}


def outcome_of(
    value: object, observed: frozenset[str] = frozenset(), memory: dict[object, Any] | None = None
) -> Outcome:
    """The outcome for value as it is now. observed: what others look at, besides the code reached from value.

    memory: where it is remembered, however heavy it is, if not with all others: whoever has it ends its life.
    """
    key = _key(value), observed
    remembered = _memory if memory is None else memory
    known = remembered.get(key)
    if known is not None and known.circumstances == _circumstances() and _holds(known.rechecks):
        return known.outcome
    walk, digest, refusals = explore(value, observed=observed)
    outcome = Outcome(digest, refusals, walk, {})
    if is_light(outcome) or memory is not None:
        if len(remembered) >= _REMEMBERED:
            remembered.clear()
        remembered[key] = _Memory(value, walk.rechecks, outcome, _circumstances())
    else:
        remembered.pop(key, None)
    return outcome


def is_light(outcome: Outcome) -> bool:
    """Whether it is remembered, so that to look at the value again is a matter of microseconds."""
    return outcome.walk.weight <= _LIGHT


def explore(
    value: object, observer: Callable[[], Observer] | None = None, observed: frozenset[str] = frozenset()
) -> tuple[Walk, bytes, tuple[Refusal, ...]]:
    """Walks over value, again if the code reached looks at more than was included; the last walk is returned.

    observer makes a new observer for each walk.
    """
    tables.refresh()
    walk, observed = _walk_with_features(value, observed, observer)
    walk.observed.complete(walk.noticed)
    digest = walk.finish()
    stale = _look_at_caches(walk) if walk.caches else {}
    if walk.refusals or stale:
        looked = _walk(value, observed, None, _excused(observed))
        found = (*looked.refusals, *(stale[id(each)] for each in looked.caches if id(each) in stale))
        return walk, digest, tuple(dict.fromkeys(found))
    return walk, digest, ()


def _walk_with_features(
    value: object, observed: frozenset[str], observer: Callable[[], Observer] | None = None
) -> tuple[Walk, frozenset[str]]:
    """A walk that has taken in all the features that the code it reached looks at, and those features."""
    while True:
        walk = _walk(value, observed, observer)
        observed |= walk.noticed
        if not walk.observed.lacks(walk.noticed):
            return walk, observed


def _look_at_caches(walk: Walk) -> dict[int, Refusal]:
    """Why results of functions that remember theirs must not be kept, by id; looked at again at each recheck."""
    found: dict[int, Refusal] = {}
    for cached in {id(each): each for each in walk.caches}.values():
        inner, _ = _walk_with_features(cached.__wrapped__, frozenset())
        alone = caches.uses_only_itself(cached, inner.examined.values())
        refusal = caches.look(cached, inner.finish(), alone)
        if refusal is not None:
            found[id(cached)] = refusal
        walk.rechecks.append(functools.partial(caches.is_unchanged, cached, caches.token(cached)))
    return found


def _excused(observed: frozenset[str]) -> Callable[[object], bool]:
    """Tells what the search for refusals does not look into: what people vouch for, and what nobody calls here."""
    copies = "copies" in observed

    def excused(value: object) -> bool:
        if type(value) is SpecialMethod:
            return value.role == "dormant" and not copies
        return declared.is_pure(value)

    return excused


def _walk(
    value: object,
    observed: frozenset[str],
    observer: Callable[[], Observer] | None,
    closed: Callable[[object], bool] | None = None,
) -> Walk:
    hasher = new_hasher()
    hasher.update(joined(*_parameters(value)))
    walk = Walk(expander_for, hasher, Features(observed), observer() if observer else None, closed)
    try:
        walk.visit(value, _label(value))
    except RecursionError as error:
        raise UnencodableError(describe_type(value), walk.path(), "sets or code in it are nested too deeply") from error
    visit_registered(walk)
    visit_settings(walk, walk.touched | always_touched())
    return walk


def visit_settings(walk: Walk, libraries: Collection[str]) -> None:
    """Visits the settings that these libraries keep for the process; refuses those that the application changes."""
    for library in sorted(libraries):
        _refuse_if_changed(walk, library)
        if library in TABLES or library.startswith(STANDARD):
            continue
        if tells_states(library) and has_states(library):
            walk.observe(HOLDS_CACHES)
        in_part = WITHOUT_CACHES in walk.observed
        if has_no_settings(library, in_part):
            walk.rechecks.append(functools.partial(has_no_settings, library, in_part))
        else:
            walk.visit(Settings(library, in_part), f"settings of {library}")


def _assignment_to(library: str) -> str:
    return assignment_to(library.removeprefix(STANDARD))


def _refuse_if_changed(walk: Walk, library: str) -> None:
    is_known = library not in KNOWN_IN_PART and (library in PROVIDERS or library in REGISTRATIONS)
    place_of = _assignment_to if library.startswith(STANDARD) else patch_of if is_known else change_of
    version = version_of_program()
    place = place_of(library)
    walk.rechecks.append(_SamePlace(place_of, library, place, version))
    if place:
        name = library.removeprefix(STANDARD)
        does, why = ("may change", place[len(MAYBE) :]) if place.startswith(MAYBE) else ("changes", place)
        reason = f"uses {name}, and the program {does} what {name} keeps or registers with it ({why})"
        walk.refuse(Refusal("global state", reason, walk.path()))


class _SamePlace:
    """Whether what the program changes in a library is what it was; asked anew when the program has further texts."""

    __slots__ = ("_library", "_place", "_place_of", "_version")

    def __init__(self, place_of: Callable[[str], str], library: str, place: str, version: Hashable) -> None:
        self._place_of, self._library, self._place, self._version = place_of, library, place, version

    def __call__(self) -> bool:
        version = version_of_program()
        if version == self._version:
            return True
        if self._place_of(self._library) != self._place:
            return False
        self._version = version
        return True


def visit_registered(walk: Walk) -> None:
    """Visits what was put onto classes of data libraries under names that reached code asks for."""
    visited: set[str] = set()
    while True:
        names = names_used(walk)
        put = registered(names, "any attribute" in walk.noticed)
        new = [label for label in sorted(put) if label not in visited]
        for label in new:
            walk.visit(put[label], label)
        visited.update(new)
        if not new:
            break
    walk.rechecks.append(recheck(names))


def names_used(walk: Walk) -> frozenset[str]:
    """Names of attributes that the code reached asks for, of whatever object; also those in texts, for getattr()."""
    templates = [part.template for each in walk.examined.values() for part in each.resolution.parts]
    return frozenset().union(*(template.attributes | template.strings for template in templates))


def _parameters(value: object) -> tuple[str, ...]:
    """Names by which callers can pass arguments to a function, method, class, partial or callable object."""
    for _ in range(_WRAPPINGS):
        if type(value) is types.FunctionType:
            code = value.__code__
            return code.co_varnames[code.co_posonlyargcount : code.co_argcount]
        inner = _called_by(value)
        if inner is None:
            return ()
        value = inner
    return ()


def _called_by(value: Any) -> object | None:
    """What runs when value is called. Asked of its type: an object may answer for itself in odd ways."""
    kind = type(value)
    if kind is types.MethodType:
        return value.__func__  # type: ignore[no-any-return]
    if issubclass(kind, functools.partial):
        return value.func  # type: ignore[no-any-return]
    if issubclass(kind, type):
        return next((vars(base)["__init__"] for base in type.mro(value) if "__init__" in vars(base)), None)
    if kind is functools._lru_cache_wrapper:
        return value.__wrapped__  # type: ignore[no-any-return]
    return next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)


def _label(value: Any) -> str:
    kind = type(value)
    return str(value.__qualname__) if kind is types.FunctionType or issubclass(kind, type) else kind.__name__


def _key(value: object) -> object:
    """What identifies an object for the time it is kept. Methods are made anew at every access."""
    if type(value) is types.MethodType:
        return id(value.__func__), id(value.__self__)
    return id(value)


def _circumstances() -> object:
    """What changes outcomes without changing any object."""
    return declared.version(), frozenset(application_packages), always_touched()


def _holds(rechecks: list[Callable[[], bool]]) -> bool:
    try:
        for recheck in rechecks:
            if not recheck():
                return False
    except Exception:  # whatever it is, walking anew says it better
        return False
    return True


def forget() -> None:
    """Forgets all outcomes, for tests and measurements."""
    _memory.clear()
