"""The fingerprint of a call: what a function computes, and what it is given.

In: a function and its arguments by name. Out: a `Call`: one digest for both, the reasons not to reuse it, and the
inputs (files) whose content is still to be added. The function's own part is remembered (outcome.py); the walk over the
arguments goes on where the walk over the function ended, so that an argument which is, or is made of, something the
function captured (a sentinel, a class) is told from one that only looks like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from nectar.errors import UnencodableError
from nectar.keys.expansion import joined
from nectar.keys.features import COPIED, HOLDS_CACHES, IDENTITIES, MOMENTS, WITHOUT_CACHES
from nectar.keys.origin import OWN_NAME, origin_of_class
from nectar.keys.outcome import Outcome, explore, names_used, outcome_of, visit_registered, visit_settings
from nectar.keys.purity.tables import against_instances
from nectar.keys.scheme import new_hasher
from nectar.keys.walk import Walk, describe_type
from nectar.model.refusal import Refusal

# What an argument may bring in: inputs that its own bytes do not show.
_HIDDEN: Final = frozenset({"file", "network", "clock", "random", "database", "process", "environment", "input"})
# Nobody knows where an argument goes: libraries may show the name of a function or class they are handed.
_SHOWN: Final = frozenset({"names", "qualnames", "annotations", "signatures"})
_HOLDING: Final = frozenset({tuple, list, dict})
_MOST_PARTS: Final = 1000  # of arguments whose identity is looked at
_PLAIN: Final = frozenset({int, float, bool, str, bytes, type(None)})
_LONG: Final = frozenset({str, bytes})
_SHORT: Final = 256  # characters, bytes or bits of an argument that is remembered
_LIGHT: Final = 1000  # objects and 64-byte pieces of a function whose calls are remembered
_MOST_CALLS: Final = 256  # of one function, with plain arguments
_CALLS: Final = "calls with plain arguments"
_ROUNDS: Final = 10  # features are few; each round adds one at least


class Call(NamedTuple):
    """A call as it is now.

    program: what the function computes. digest: that and its arguments. walk: over both, to know their objects again.
    findings: what others found out of the code of both; calls share it whose arguments bring no code. holds_caches:
    whether objects of libraries are reached that remember something to save time.
    """

    program: bytes
    digest: bytes
    refusals: tuple[Refusal, ...]
    inputs: tuple[object, ...]
    walk: Walk
    findings: dict[object, Any]
    holds_caches: bool = False


def call_of(
    function: object, arguments: Mapping[str, object], extra: bytes = b"", without: frozenset[str] = frozenset()
) -> Call:
    """The fingerprint of calling function with these arguments. extra: what else tells programs apart.

    without: what is left out, so that this is no key. Raises UnencodableError if something has no canonical bytes.
    """
    observed, plain, known = without, () if without else _plain(arguments), None
    for _ in range(_ROUNDS):
        outcome = outcome_of(function, observed)
        if plain and observed is without:
            known = outcome.findings.setdefault(_CALLS, {})
            if (call := known.get((extra, plain))) is not None:
                return call  # type: ignore[no-any-return]
        walk = _over(outcome, arguments, extra)
        if not outcome.walk.observed.lacks(walk.noticed) and not walk.observed.lacks(walk.noticed):
            break
        # The code of an argument looks at what was left out of the function's part: take that part with it.
        observed = without | outcome.walk.observed.known | walk.noticed
    refusals = outcome.refusals
    if walk.refusals or walk.caches:
        refusals += explore(list(arguments.values()), observed=walk.observed.known)[2]
    if walk.kinds:
        refusals += _against_arguments(frozenset(walk.kinds), names_used(walk), _label(function))
    inputs = (*outcome.walk.inputs, *walk.inputs)
    findings = outcome.findings if len(walk.examined) == len(outcome.walk.examined) else {}
    holds_caches = HOLDS_CACHES in walk.noticed or HOLDS_CACHES in outcome.walk.noticed
    call = Call(_program(outcome.digest, extra), walk.finish(), refusals, inputs, walk, findings, holds_caches)
    if known is not None and observed is without and _depends_on_values_alone(call, outcome):
        if len(known) >= _MOST_CALLS:
            known.clear()
        known[extra, plain] = call
    return call


def _plain(arguments: Mapping[str, object]) -> tuple[object, ...]:
    """Arguments that are nothing but their values, so that two calls with equal ones are the same; else empty."""
    found: list[object] = []
    for name, value in arguments.items():
        kind = type(value)
        if kind is float:
            if value != value:
                return ()
            value = value.hex()  # type: ignore[attr-defined]  # 0.0 equals -0.0
        elif kind not in _PLAIN or _is_long(value):
            return ()
        found += name, kind, value
    return tuple(found)


def _is_long(value: Any) -> bool:
    kind = type(value)
    return value.bit_length() > _SHORT if kind is int else kind in _LONG and len(value) > _SHORT


def _depends_on_values_alone(call: Call, outcome: Outcome) -> bool:
    """Whether a call with equal arguments has the same fingerprint as long as that of the function is the same."""
    if call.refusals or call.inputs or call.holds_caches or call.walk.caches or outcome.walk.weight > _LIGHT:
        return False  # the last, because each call that is remembered holds what a walk over it has met
    return outcome.walk.noticed.isdisjoint((IDENTITIES, MOMENTS)) and MOMENTS not in outcome.walk.observed.known


def rest_of(call: Call, function: object, arguments: Mapping[str, object]) -> bytes:
    """The digest of a call as it is now without what objects of libraries remember to save time; empty if none do."""
    if not call.holds_caches:
        return b""
    return call_of(function, arguments, without=frozenset({WITHOUT_CACHES})).digest


def libraries_of(call: Call) -> set[str]:
    """The libraries whose settings are in the key of a call."""
    before = call.walk.before
    return call.walk.touched | (set() if before is None else before.touched)


def program_of(function: object, extra: bytes = b"") -> bytes:
    """What all calls of a function have in common."""
    return _program(outcome_of(function).digest, extra)


@lru_cache(4096)
def _program(digest: bytes, extra: bytes) -> bytes:
    hasher = new_hasher()
    hasher.update(joined("program", digest, extra))
    return hasher.digest()


@lru_cache(1024)
def _against_arguments(kinds: frozenset[type], names: frozenset[str], label: str) -> tuple[Refusal, ...]:
    """Why code that asks for these names must not be handed such objects: it may read files through them."""
    foreign = [kind for kind in kinds if origin_of_class(kind).name != OWN_NAME]  # declared inputs are what they say
    found = [(kind, against_instances(kind, names)) for kind in foreign]
    return tuple(
        Refusal(verdict.kind, f"is handed an object of type {kind.__qualname__}, and may use {verdict.reason}", label)
        for kind, verdict in sorted(found, key=lambda each: each[0].__qualname__)
        if verdict is not None and verdict.kind in _HIDDEN
    )


def _identities(arguments: tuple[object, ...], walk: Walk) -> list[str]:
    """For each argument, and each part of one, the first that is the same object, be it one that the function has."""
    parts = [part for each in walk.examined.values() for part in each.resolution.parts]
    numbers: dict[int, int] = {}
    for value in (value for part in parts for value in part.known.values() if type(value) in COPIED):
        numbers.setdefault(id(value), len(numbers))
    found: list[str] = []
    pending: list[Any] = list(arguments)
    for value in pending:
        found.append(str(numbers.setdefault(id(value), len(numbers))))
        if type(value) in _HOLDING and len(pending) < _MOST_PARTS:
            pending += value.values() if type(value) is dict else value
    return found


def _label(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _over(outcome: Outcome, arguments: Mapping[str, object], extra: bytes) -> Walk:
    hasher = new_hasher()
    hasher.update(joined("call", outcome.digest, extra, *arguments))
    walk = outcome.walk.continued(hasher, _SHOWN)
    name = ""
    try:
        for name, value in arguments.items():
            walk.visit(value, name)
    except RecursionError as error:
        raise UnencodableError(describe_type(arguments[name]), walk.path(), "it is nested too deeply") from error
    if IDENTITIES in outcome.walk.noticed:
        hasher.update(joined("identities", *_identities(tuple(arguments.values()), outcome.walk)))
    if len(walk.examined) > len(outcome.walk.examined):  # arguments bring code, which asks for more
        visit_registered(walk)
    visit_settings(walk, walk.touched - outcome.walk.touched)
    return walk
