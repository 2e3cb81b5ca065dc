"""Expanders of the persistent maps and sets of rpds, which jsonschema and its like keep their documents in.

They come out in the order of hashes, which differs between processes: it is no part of what they are.
"""

from __future__ import annotations

import sys
from typing import Any

from nectar.keys.expansion import Expander, Expansion, WalkContext, always

_COUNT = 8


def expand_map(value: Any, walk: WalkContext) -> Expansion:
    """A map: its pairs, in no order."""
    pairs = tuple(value.items())
    return Expansion("persistent map", len(pairs).to_bytes(_COUNT, "little"), pairs, unordered=True, still=always)


def expand_set(value: Any, walk: WalkContext) -> Expansion:
    """A set: its members, in no order."""
    members = tuple(value)
    return Expansion("persistent set", len(members).to_bytes(_COUNT, "little"), members, unordered=True, still=always)


def _kinds() -> dict[type, Expander]:
    rpds = sys.modules.get("rpds")
    found = ((getattr(rpds, "HashTrieMap", None), expand_map), (getattr(rpds, "HashTrieSet", None), expand_set))
    return {kind: expander for kind, expander in found if kind is not None}


EXPANDERS: dict[type, Expander] = _kinds()
