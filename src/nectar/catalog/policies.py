"""Policies: which entries are the least worth keeping. They suggest; state.choose decides.

Each gives a number per entry, the larger the sooner it goes, from size S, time since last use dT, number of uses N,
and machine time M it took to make.
"""

from __future__ import annotations

import math
from typing import Final

from nectar.catalog.state import Candidate, Policy
from nectar.errors import SettingError

_LEAST_SECONDS: Final = 1e-3  # a result that took no time is worth no less than one that took a millisecond
_HALF_LIFE: Final = 86400.0  # for LRFU: a use counts half after a day


class CostBenefit:
    """(S x dT) / (N x M): large, long unused, seldom used, quickly made results go first."""

    name = "cost-benefit"

    def expendability(self, candidate: Candidate, now: float) -> float:
        """The cost of keeping over the benefit of having."""
        idle = max(now - candidate.used, 0.0) + 1.0
        return candidate.size * idle / (max(candidate.hits, 1) * max(candidate.seconds, _LEAST_SECONDS))


class LeastRecentlyUsed:
    """Longest unused first."""

    name = "lru"

    def expendability(self, candidate: Candidate, now: float) -> float:
        """Time since last use."""
        return now - candidate.used


class LeastFrequentlyRecentlyUsed:
    """LRFU: uses count less the longer ago they were. Approximated from their number and the last one."""

    name = "lrfu"

    def expendability(self, candidate: Candidate, now: float) -> float:
        """Minus the logarithm of the combined recency and frequency."""
        return (now - candidate.used) / _HALF_LIFE - math.log2(candidate.hits + 1)


class GreedyDualSizeFrequency:
    """GDSF: frequency times cost over size, aged by the time since last use."""

    name = "gdsf"

    def expendability(self, candidate: Candidate, now: float) -> float:
        """Minus the value per byte; the age stands in for the inflation of the original."""
        value = (candidate.hits + 1) * max(candidate.seconds, _LEAST_SECONDS) / max(candidate.size, 1)
        return math.log1p(max(now - candidate.used, 0.0)) - math.log(value)


POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (CostBenefit(), LeastRecentlyUsed(), LeastFrequentlyRecentlyUsed(), GreedyDualSizeFrequency())
}


def policy_named(name: str) -> Policy:
    """The policy of a name."""
    found = POLICIES.get(name)
    if found is None:
        raise SettingError(f"there is no eviction policy {name!r}: choose one of {', '.join(POLICIES)}")
    return found
