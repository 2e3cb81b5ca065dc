"""The public functions of this package: fingerprint, trace, why, pure, depends_on, register_fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nectar.errors import UncacheableError
from nectar.keys import caches, registry
from nectar.keys.declared import depends_on, pure
from nectar.keys.outcome import explore, outcome_of
from nectar.keys.scheme import SCHEME
from nectar.model.fingerprint import Fingerprint

if TYPE_CHECKING:  # loaded when somebody wants to know
    from nectar.keys.difference import Explanation
    from nectar.keys.trace import Recorder, Trace

__all__ = ["depends_on", "fingerprint", "pure", "register_fingerprint", "trace", "why"]


def fingerprint(f: object, types: object = None) -> Fingerprint:
    """The fingerprint of a function, class or value: equal if and only if it is the same computation.

    types: what is known of the types of the arguments, for normal forms that use it; this scheme does not.

    Raises UncacheableError if f reads or changes what no fingerprint can see (with every reason and place), and
    UnencodableError if something it reaches has no canonical bytes.

    >>> import nectar
    >>> str(nectar.fingerprint(lambda n: n + 1)) == str(nectar.fingerprint(lambda number: number + 1))
    False
    """
    outcome = outcome_of(f)
    refusals = tuple(each for each in outcome.refusals if each.kind != caches.KIND)
    if refusals:
        from nectar.keys.trace import describe

        raise UncacheableError(describe(f, None), refusals)
    return Fingerprint(outcome.digest, SCHEME)


def trace(f: object) -> Trace:
    """What goes into the fingerprint of f, refused or not, as a tree."""
    from nectar.keys.trace import Recorder, Trace

    recorders: list[Recorder] = []

    def recorder() -> Recorder:
        recorders.append(Recorder())
        return recorders[-1]

    _, digest, _ = explore(f, recorder)
    top = recorders[-1].top
    top.seal()
    root = top.children[0] if len(top.children) == 1 else top
    return Trace(root, digest.hex())


def why(a: object, b: object) -> Explanation:
    """What makes the fingerprints of two functions, values or traces differ; the text of it is for people."""
    from nectar.keys.difference import compare
    from nectar.keys.trace import Trace

    return compare(a if isinstance(a, Trace) else trace(a), b if isinstance(b, Trace) else trace(b))


def register_fingerprint(type: type, encode: Callable[[Any], object]) -> None:
    """Objects whose type is exactly `type` are fingerprinted as the value that encode gives for them.

    encode takes the object and returns any value that has canonical bytes itself and tells equal objects from others.
    """
    registry.register(type, encode)
