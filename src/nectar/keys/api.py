"""The public functions of this package: fingerprint, trace, why, pure, depends_on, register_fingerprint."""

from __future__ import annotations

from nectar.errors import UncacheableError
from nectar.keys import declared, registry
from nectar.keys.scheme import SCHEME, new_hasher
from nectar.keys.walk import Walk
from nectar.model.fingerprint import Fingerprint


def fingerprint(f: object, types: object = None) -> Fingerprint:
    observed: frozenset[str] = frozenset()
    while True:
        walk = Walk(registry.expander_for, new_hasher(), observed)
        digest = walk.run(f, "f")
        if walk.noticed <= observed:
            break
        observed |= walk.noticed
    if walk.refusals:
        raise UncacheableError(getattr(f, "__qualname__", repr(type(f))), walk.refusals)
    return Fingerprint(digest, SCHEME)
