"""Expander of XGBoost's models, which lie in native memory: what XGBoost itself writes to have them again."""

from __future__ import annotations

import sys
from typing import Any

from nectar.keys.expansion import Expander, Expansion, WalkContext
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import placed


def expand_booster(value: Any, walk: WalkContext) -> Expansion:
    """A model: trees and parameters as bytes, and what else is put onto the object."""
    state = value.__getstate__()
    parts = Parts(type(value))
    model = state.pop("handle", None)
    parts.bulk(b"" if model is None else bytes(model))
    for name in sorted(state):
        parts.text(name)
        parts.child(state[name], f".{name}")
    parts.attributes(value)
    return parts.expansion("xgboost model")


def _expanders() -> dict[type, Expander]:
    module = sys.modules.get("xgboost.core")
    return {} if module is None else {module.Booster: expand_booster}


EXPANDERS: dict[type, Expander] = placed(_expanders())
