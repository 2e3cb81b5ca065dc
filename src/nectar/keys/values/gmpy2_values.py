"""Expander of the numbers of gmpy2, of which mpmath makes its own where it is installed.

They lie in native code, and are pickled by a function that nobody can be told to trust: another may stand in its place.
What is written here is all of a number, its precision included, and how it was rounded.
"""

from __future__ import annotations

import sys
from typing import Any

from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined

_FROZEN = ("mpz", "mpq", "mpfr", "mpc")


def expand_number(value: Any, walk: WalkContext) -> Expansion:
    """A number that nobody can change."""
    return Expansion("number of gmpy2", joined(type(value).__name__, *_written(value)), still=always)


def expand_changeable(value: Any, walk: WalkContext) -> Expansion:
    """An integer that is changed in place."""
    return Expansion("number of gmpy2", joined("xmpz", *_written(value)))


def _written(value: Any) -> tuple[bytes | str, ...]:
    gmpy2: Any = sys.modules["gmpy2"]
    if isinstance(value, gmpy2.mpc):
        return *_written(value.real), *_written(value.imag), str(value.rc)
    if not isinstance(value, gmpy2.mpfr):
        return (bytes(gmpy2.to_binary(value)),)
    # Of those without digits gmpy2 writes bytes that nobody has set.
    digits = value.as_mantissa_exp() if gmpy2.is_finite(value) else (str(value), 0)
    signed = gmpy2.is_signed(value) and not gmpy2.is_nan(value)
    return str(digits[0]), str(digits[1]), str(value.precision), str(signed), str(value.rc)


def _kinds() -> dict[type, Expander]:
    gmpy2 = sys.modules.get("gmpy2")
    found: dict[type, Expander] = {kind: expand_number for name in _FROZEN if (kind := getattr(gmpy2, name, None))}
    changeable = getattr(gmpy2, "xmpz", None)
    return found if changeable is None else {**found, changeable: expand_changeable}


EXPANDERS: dict[type, Expander] = _kinds()
