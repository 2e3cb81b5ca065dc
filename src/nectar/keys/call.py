"""The fingerprint of a call: what a function computes, and what it is given.

In: a function and its arguments by name. Out: a `Call`: one digest for both, the reasons not to reuse it, and the
inputs (files) whose content is still to be added. The function's own part is remembered (outcome.py); the walk over the
arguments goes on where the walk over the function ended, so that an argument which is, or is made of, something the
function captured (a sentinel, a class) is told from one that only looks like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from nectar.errors import UnencodableError
from nectar.keys.ambient import Settings
from nectar.keys.expansion import joined
from nectar.keys.outcome import Outcome, explore, outcome_of
from nectar.keys.scheme import new_hasher
from nectar.keys.walk import Walk, describe_type
from nectar.model.refusal import Refusal

_ROUNDS: Final = 10  # features are few; each round adds one at least


class Call(NamedTuple):
    """A call as it is now.

    program: what the function computes. digest: that and its arguments. walk: over both, to know their objects again.
    """

    program: bytes
    digest: bytes
    refusals: tuple[Refusal, ...]
    inputs: tuple[object, ...]
    walk: Walk


def call_of(function: object, arguments: Mapping[str, object], extra: bytes = b"") -> Call:
    """The fingerprint of calling function with these arguments. extra: what else tells programs apart.

    Raises UnencodableError if something in either has no canonical bytes.
    """
    observed: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        outcome = outcome_of(function, observed)
        walk = _over(outcome, arguments, extra)
        if walk.noticed <= outcome.walk.observed:
            break
        # The code of an argument looks at what was left out of the function's part: take that part with it.
        observed = outcome.walk.observed | walk.noticed
    refusals = outcome.refusals
    if walk.refusals:
        refusals += explore(list(arguments.values()), observed=observed)[2]
    inputs = (*outcome.walk.inputs, *walk.inputs)
    return Call(_program(outcome.digest, extra), walk.finish(), refusals, inputs, walk)


def program_of(function: object, extra: bytes = b"") -> bytes:
    """What all calls of a function have in common."""
    return _program(outcome_of(function).digest, extra)


@lru_cache(4096)
def _program(digest: bytes, extra: bytes) -> bytes:
    hasher = new_hasher()
    hasher.update(joined("program", digest, extra))
    return hasher.digest()


def _over(outcome: Outcome, arguments: Mapping[str, object], extra: bytes) -> Walk:
    hasher = new_hasher()
    hasher.update(joined("call", outcome.digest, extra, *arguments))
    walk = outcome.walk.continued(hasher)
    name = ""
    try:
        for name, value in arguments.items():
            walk.visit(value, name)
    except RecursionError as error:
        raise UnencodableError(describe_type(arguments[name]), walk.path(), "it is nested too deeply") from error
    for library in sorted(walk.touched - outcome.walk.touched):
        walk.visit(Settings(library), f"settings of {library}")
    return walk
