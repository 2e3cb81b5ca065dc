"""A digest of any value, over the registry of expanders."""

from __future__ import annotations

from nectar.keys.registry import expander_for
from nectar.keys.scheme import new_hasher
from nectar.keys.walk import Walk


def walked(value: object) -> tuple[bytes, Walk]:
    walk = Walk(expander_for, new_hasher())
    return walk.run(value, "value"), walk


def digest(value: object) -> bytes:
    return walked(value)[0]


def still(walk: Walk) -> bool:
    return all(recheck() for recheck in walk.rechecks)
