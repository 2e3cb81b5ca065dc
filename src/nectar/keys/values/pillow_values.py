"""Expander of Pillow's images: mode, size, pixels, palette and notes. Pixels lie in native memory."""

from __future__ import annotations

import sys
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import HERE, placed

_NATIVE: Final = frozenset({"_im", "im", "pyaccess", "_mode", "_size", "fp", "_fp", "png"})  # told by other means


def expand_image(value: Any, walk: WalkContext) -> Expansion:
    """An image: one of several frames still reads them from its file, and is refused."""
    pixels = value.tobytes()  # reads the rest of its file, as any use of it does
    if getattr(value, "fp", None) is not None or getattr(value, "n_frames", 1) != 1:
        raise UnencodableError(
            "an image of several frames", HERE, "it is still tied to its file; hand over a copy (image.copy())"
        )
    parts = Parts(type(value))
    parts.text(value.mode)
    parts.number(*value.size)
    parts.bulk(pixels)
    for name in sorted(vars(value).keys() - _NATIVE):
        parts.text(name)
        parts.child(vars(value)[name], f".{name}")
    parts.attributes(value)
    return parts.expansion("image")


def _expanders() -> dict[type, Expander]:
    module = sys.modules.get("PIL.Image")
    return {} if module is None else {module.Image: expand_image}


EXPANDERS: dict[type, Expander] = placed(_expanders())
