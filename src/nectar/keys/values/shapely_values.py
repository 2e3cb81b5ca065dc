"""Expander of the geometries of shapely: what it pickles of them, and whether they are prepared, which it does not."""

from __future__ import annotations

import sys
from typing import Any

from nectar.keys.expansion import Expander, Expansion, WalkContext, joined
from nectar.keys.values.place import placed


def expand_geometry(value: Any, walk: WalkContext) -> Expansion:
    """A geometry: its coordinates and its reference system, as bytes; and whether it is prepared."""
    shapely: Any = sys.modules["shapely"]
    content = shapely.to_wkb(value, include_srid=True)
    return Expansion("geometry", joined(repr(bool(shapely.is_prepared(value))), content))


def _expanders() -> dict[type, Expander]:
    module: Any = sys.modules.get("shapely.lib")
    return {} if module is None else {module.Geometry: expand_geometry}


EXPANDERS: dict[type, Expander] = placed(_expanders())
