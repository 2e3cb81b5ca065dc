"""Inputs from outside the program that a function reads by a constant name: stand-ins that carry today's value.

A function that reads `os.environ["REGION"]` depends on one variable whose value is known when the fingerprint is
taken, so it is fingerprinted like a global. Reading under a computed name is refused (purity/).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from nectar.keys.expansion import Expansion, WalkContext, joined


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """One variable of the environment."""

    name: str


def expand_environment_variable(value: EnvironmentVariable, walk: WalkContext) -> Expansion:
    """Its name and its value now, or that it is not set. The value itself never shows in traces."""
    now = os.environ.get(value.name)
    payload = joined(value.name, "unset") if now is None else joined(value.name, "set", now)
    return Expansion("environment variable", payload, by_value=True, still=lambda: os.environ.get(value.name) == now)
