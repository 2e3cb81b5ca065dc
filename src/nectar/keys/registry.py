"""From the type of an object to the expander that takes it apart.

Exact types first; then classes, then instances of whatever else. Expanders for libraries are loaded when the library
is, never before. People add their own with register().
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Final

from nectar.keys import ambient, annotated, classes, exposed, functions, instances, library
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.modules import Follower
from nectar.keys.special_methods import SpecialMethod
from nectar.keys.values import containers, standard

_LIBRARIES: Final = {
    "numpy": "nectar.keys.values.numpy_values",
    "numpy.ma": "nectar.keys.values.numpy_masked",
    "numpy.random": "nectar.keys.values.numpy_random",
    "pandas": "nectar.keys.values.pandas_values",
    "pyarrow": "nectar.keys.values.arrow_values",
    "polars": "nectar.keys.values.polars_values",
    "pydantic_core": "nectar.keys.values.pydantic_values",
    "PIL.Image": "nectar.keys.values.pillow_values",
    "lxml.etree": "nectar.keys.values.lxml_values",
    "xgboost.core": "nectar.keys.values.xgboost_values",
    "wrapt": "nectar.keys.values.wrapt_values",
    "shapely.lib": "nectar.keys.values.shapely_values",
    "rpds": "nectar.keys.values.rpds_values",
    "zoneinfo": "nectar.keys.values.zoneinfo_values",
    "fractions": "nectar.keys.values.fractions_values",
    "gmpy2": "nectar.keys.values.gmpy2_values",
    "pint": "nectar.keys.values.pint_values",
    "numba.core.registry": "nectar.keys.values.numba_values",
}
KNOWN_LIBRARIES: Final = frozenset(name.partition(".")[0] for name in _LIBRARIES)


def named_by_place(value: object) -> str | None:
    """The name of an object of the interpreter that is what it is by where it stands, whatever it holds."""
    for owner, name in _PLACES:
        if getattr(owner, name, None) is value:
            return f"{owner.__name__}.{name}"
    return None


_PLACES: Final = (
    (sys, "stdout"), (sys, "stderr"), (sys, "__stdout__"), (sys, "__stderr__"), (sys, "modules"), (os, "environ"),
)  # fmt: skip


def _by_place(expander: Expander) -> Expander:
    def expand(value: object, walk: WalkContext) -> Expansion:
        name = named_by_place(value)
        if name is None:
            return expander(value, walk)
        library.notice(value, walk)  # what it holds may be read wherever it lies: in a default, a list, an attribute
        return Expansion("place", joined(name), by_value=True, still=always)

    return expand


_expanders: dict[type, Expander] = {
    **standard.EXPANDERS,
    **containers.EXPANDERS,
    types.FunctionType: functions.expand_function,
    SpecialMethod: functions.expand_special_method,
    types.BuiltinFunctionType: library.expand_builtin,
    types.MethodType: library.expand_bound_method,
    types.MethodWrapperType: library.expand_bound_special,
    types.ModuleType: library.expand_module,
    type: classes.expand_class,
    exposed.Exposed: exposed.expand_exposed,
    annotated.Meant: exposed.expand_meant,
    ambient.EnvironmentVariable: ambient.expand_environment_variable,
    ambient.Settings: ambient.expand_settings,
    ambient.TextCodec: ambient.expand_text_codec,
}
_expanders.update({kind: _by_place(_expanders[kind]) for kind in (dict, io.TextIOWrapper)})
_loaded: set[str] = set()
_found: dict[type, Expander] = {}


def expander_for(kind: type) -> Expander:
    """The expander of objects whose type is exactly kind."""
    expander = _expanders.get(kind)
    if expander is not None:
        return expander
    _libraries.follow()
    expander = _found.get(kind)
    if expander is None:
        expander = _found[kind] = _search(kind)
    return expander


def _search(kind: type) -> Expander:
    expander = _expanders.get(kind)
    if expander is not None:
        return expander
    return classes.expand_class if issubclass(kind, type) else _by_place(_expand_instance)


def _load_libraries() -> bool:
    for name, home in _LIBRARIES.items():
        if name in sys.modules and name not in _loaded:
            for kind, expander in importlib.import_module(home).EXPANDERS.items():
                _expanders.setdefault(kind, expander)
            _loaded.add(name)
            _found.clear()
            instances.forget_layouts()
    return True


_libraries: Final = Follower(_load_libraries)


def _expander_of_base(kind: type) -> Expander | None:
    return None if kind is object else _expanders.get(kind)


_expand_instance = instances.make_expander(_expander_of_base)


def has_unknown_layout(cls: type) -> bool:
    """Whether instances keep something in native code that no expander reads."""
    _libraries.follow()
    layout = instances.layout_of(cls, _expander_of_base)
    return layout.held_by is None and layout.base_expander is None


def add(kind: type, expander: Expander) -> None:
    """Objects whose type is exactly kind are taken apart by this expander; for types of Nectar itself."""
    _expanders[kind] = expander
    _found.clear()
    instances.forget_layouts()


def register(kind: type, encode: Callable[[Any], object]) -> None:
    """Objects whose type is exactly kind are fingerprinted as the value that encode gives for them."""

    def expand_registered(value: object, walk: WalkContext) -> Expansion:
        return Expansion("registered", b"", (kind, encode(value)), ("class", "encoding"))

    add(kind, expand_registered)
