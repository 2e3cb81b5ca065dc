"""Functions as people have them remembered: a loan's plan, a simulation with a seed, large arrays in and out.

Every computation is noted, so that a benchmark can tell how often a function ran, in all processes together: that is
the only thing here that is not a matter of the arguments.
"""

from __future__ import annotations

import math
import os

import numpy as np
import numpy.random  # else loaded by whoever asks for it first, and measured there

LOG = ""  # a file that grows by a byte for each computation of any process


def _note() -> None:
    if LOG:
        descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, b".")
        os.close(descriptor)


def times_computed() -> int:
    """How often functions of this module ran since the log began."""
    return os.path.getsize(LOG) if os.path.exists(LOG) else 0


# small arguments, small results


def _instalment(principal: float, monthly: float, months: int) -> float:
    return principal * monthly / (1 - (1 + monthly) ** -months)


def _rounded(amount: float) -> float:
    return math.floor(amount * 100 + 0.5) / 100


def repayment(principal: float, percent: float, months: int) -> dict[str, float]:
    """What a loan costs: the instalment, all interest, and what is left after the first half."""
    _note()
    monthly = percent / 1200
    instalment = _rounded(_instalment(principal, monthly, months))
    left, interest, half = principal, 0.0, principal
    for month in range(months):
        due = _rounded(left * monthly)
        interest += due
        left -= instalment - due
        if month == months // 2:
            half = left
    return {"instalment": instalment, "interest": _rounded(interest), "half": _rounded(half)}


# seconds of work, small results


def ruin(seed: int, walks: int) -> dict[str, float]:
    """How many of so many random walks fall below a bound, and how far they come."""
    _note()
    steps = np.random.default_rng(seed).normal(0.01, 1.0, size=(walks, 250))
    paths = steps.cumsum(axis=1)
    return {"share": float((paths.min(axis=1) < -20).mean()), "end": float(paths[:, -1].mean())}


# large arrays


def energy(signal: np.ndarray) -> dict[str, float]:
    """A large array comes in."""
    _note()
    centred = signal - signal.mean()
    return {"energy": float(np.square(centred).sum()), "peak": float(np.abs(centred).max())}


def tone(seed: int, count: int) -> np.ndarray:
    """A large array goes out."""
    _note()
    noise = np.random.default_rng(seed).normal(size=count)
    return np.sin(np.arange(count) * 0.01) + 0.1 * noise
