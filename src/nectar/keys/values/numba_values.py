"""Functions that numba compiles.

In: a dispatcher. Out: the function that it was made from, and its options. numba takes the values of globals when it
compiles, which is when a function is first called with arguments of some types, and never looks at them again: what is
compiled may not be what the function is by now. So a function that reads such values counts only while it is not
compiled yet.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Final

from nectar.keys.expansion import Expander, Expansion, WalkContext, joined
from nectar.keys.folding import MISSING
from nectar.model.refusal import Refusal

_CODE: Final = (type, types.ModuleType)
_looking: Final[set[int]] = set()  # at functions that call themselves


def expand_dispatcher(value: Any, walk: WalkContext) -> Expansion:
    """A compiled function: what it was made from, and how it is compiled."""
    if id(value) not in _looking:
        reason = _why_not(value)
        if reason:
            walk.refuse(Refusal("global state", reason, walk.path()))
    compiled = bool(value.overloads)
    options = repr(sorted(value.targetoptions.items()))
    still = lambda: bool(value.overloads) == compiled  # noqa: E731 - a def would not say more
    return Expansion("numba function", joined(options), (value.py_func,), ("function",), still=still)


def _why_not(value: Any) -> str:
    from nectar.keys.outcome import outcome_of  # which takes this module to take functions apart

    if type(value._cache).__name__ != "NullCache":
        return "numba keeps the compiled function on disk, with values that globals had once"
    if not value.overloads:
        return ""
    _looking.add(id(value))
    try:
        examined = outcome_of(value.py_func).walk.examined.values()
    finally:
        _looking.discard(id(value))
    read = [held for each in examined for _, _, held in each.resolution.reads]
    captures = any(each.resolution.cells for each in examined)
    if captures or not all(each is MISSING or isinstance(each, _CODE) or callable(each) for each in read):
        return "numba has compiled the function before, maybe with other values of globals"
    return ""


_numba: Any = sys.modules.get("numba.core.registry")
EXPANDERS: Final[dict[type, Expander]] = {} if _numba is None else {_numba.CPUDispatcher: expand_dispatcher}
