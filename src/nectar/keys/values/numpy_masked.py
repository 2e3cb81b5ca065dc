"""Expanders of NumPy's masked arrays. Apart from the others: importing numpy.ma takes long, and few programs do."""

from __future__ import annotations

from typing import Any

import numpy as np

from nectar.keys.expansion import Expander, Expansion, WalkContext, always
from nectar.keys.values.bulk import OWN_ATTRIBUTES, Parts
from nectar.keys.values.numpy_values import add_array
from nectar.keys.values.place import placed

OWN_ATTRIBUTES[np.ma.MaskedArray] = frozenset(vars(np.ma.masked_array([0])))


def expand_masked_array(value: np.ma.MaskedArray[Any, Any], walk: WalkContext) -> Expansion:
    """A masked array: data (also below the mask, where programs can look), mask, fill value, hardness of the mask."""
    if value is np.ma.masked:
        return Expansion("np.ma.masked", b"", (type(value),), still=always)
    parts = Parts(type(value))
    parts.number(value.flags.writeable, value.hardmask, value.mask is np.ma.nomask)
    add_array(parts, np.ma.getdata(value).view(np.ndarray), "data")
    add_array(parts, np.asarray(value.mask), "mask")
    add_array(parts, np.asarray(value.fill_value), "fill_value")
    parts.attributes(value)
    return parts.expansion("masked array")


EXPANDERS: dict[type, Expander] = placed(dict.fromkeys((np.ma.MaskedArray, type(np.ma.masked)), expand_masked_array))
