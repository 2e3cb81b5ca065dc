"""Expander of fractions, loaded with the module that has them."""

from __future__ import annotations

import fractions

from nectar.keys.expansion import Expander, Expansion, WalkContext
from nectar.keys.values.standard import plain_value


def expand_fraction(value: fractions.Fraction, walk: WalkContext) -> Expansion:
    """A fraction: numerator and denominator."""
    return plain_value("fraction", value, str(value.numerator), str(value.denominator))


EXPANDERS: dict[type, Expander] = {fractions.Fraction: expand_fraction}
