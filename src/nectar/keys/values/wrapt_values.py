"""Expander of functions that were decorated with wrapt: what is wrapped, and what is done around it.

Such an object passes on every question to what it wraps, so that only its own fields are read.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

from nectar.keys.expansion import Expander, Expansion, WalkContext, joined

_FIELDS: Final = ("wrapper", "instance", "enabled", "binding", "parent", "owner")
_NO_FIELD: Final = "none"


def expand_wrapper(value: Any, walk: WalkContext) -> Expansion:
    """A decorated function or method: the function, the decorator, what it is bound to, and attributes of its own."""
    wrapt: Any = sys.modules["wrapt"]
    fields = [getattr(value, f"_self_{name}", _NO_FIELD) for name in _FIELDS]
    # Its __dict__ is that of what it wraps; attributes of its own lie in a dict that only the collector is shown.
    own = [
        each for each in gc.get_referents(value) if type(each) is dict and not any(each is field for field in fields)
    ]
    payload = joined(type(value).__name__, str(wrapt.__version__), str(len(own)))
    return Expansion("wrapt", payload, (value.__wrapped__, *fields, *own), ("wrapped", *_FIELDS))


def _expanders() -> dict[type, Expander]:
    wrapt = sys.modules.get("wrapt")
    return {} if wrapt is None else dict.fromkeys((wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper), expand_wrapper)


EXPANDERS: dict[type, Expander] = _expanders()
