"""Code that the application has put onto classes of data libraries: registered namespaces, accessors, methods.

Frames and columns come from anywhere: from arguments, files, other frames. So what `df.money.in_euros()` runs counts
for every function that asks for an attribute of that name, whether it reaches the class or not.
In: names of attributes that reached code asks for. Out: what was registered under them, and a recheck.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from nectar.keys.held import Held
from nectar.keys.library import foreign_in

_CLASSES: Final = {
    "pandas": ("DataFrame", "Series", "Index"),
    "polars": ("DataFrame", "Expr", "LazyFrame", "Series"),
    "xarray": ("DataArray", "Dataset"),
    "geopandas": ("GeoDataFrame", "GeoSeries"),
}
# Methods that run without their name being written.
_RUN_BY_OPERATORS: Final = (
    "__init__", "__getitem__", "__setitem__", "__getattr__", "__len__", "__iter__", "__add__", "__sub__", "__mul__",
    "__truediv__", "__eq__", "__lt__", "__gt__", "__and__", "__or__", "__invert__", "__repr__", "__contains__",
)  # fmt: skip


def registered(names: frozenset[str], every: bool) -> dict[str, object]:
    """What was put onto classes of data libraries under these names, or by which they do what all code does."""
    found: dict[str, object] = {}
    for cls in _classes():
        for name, value in _put_onto(cls, names):
            if every or name in names or name in _RUN_BY_OPERATORS:
                found[f"{cls.__module__.partition('.')[0]}.{cls.__name__}.{name}"] = value
    return found


class _Scan(NamedTuple):
    """What lay in the namespace of a class when it was looked through, and what of that was of the application."""

    held: dict[str, object]
    operators: Held
    put: list[tuple[str, object]]


_scans: dict[type, _Scan] = {}


def _put_onto(cls: type, names: frozenset[str]) -> list[tuple[str, object]]:
    """What the application has put onto a class; looked through again where it, or what a name means, has changed."""
    space, scan = vars(cls), _scans.get(cls)
    if (
        scan is None
        or len(space) != len(scan.held)
        or not scan.operators.is_still_in(space)
        or not all(map(operator.is_, map(space.get, names), map(scan.held.get, names)))
    ):
        put = [(label.rpartition(".")[2], value) for label, value in foreign_in(cls)[0]]
        scan = _scans[cls] = _Scan(dict(space), Held(space, _RUN_BY_OPERATORS), put)
    return scan.put


def recheck(names: Iterable[str]) -> Callable[[], bool]:
    """Tells whether something was put onto the classes since, or something else is there under one of these names."""
    spaces: list[Mapping[str, object]] = [vars(cls) for cls in _classes()]
    libraries = {name for name in _CLASSES if name in sys.modules}
    sizes = [len(space) for space in spaces]
    held = [(space, name, space[name]) for space in spaces for name in names if name in space]
    absent = _CLASSES.keys() - libraries

    def still() -> bool:
        for space, name, value in held:
            if space.get(name) is not value:
                return False
        modules = sys.modules
        return list(map(len, spaces)) == sizes and modules.keys() >= libraries and modules.keys().isdisjoint(absent)

    return still


def _classes() -> list[type]:
    found = []
    for library, names in _CLASSES.items():
        module = sys.modules.get(library)
        for name in names if module is not None else ():
            cls = vars(module).get(name)
            if isinstance(cls, type):
                found.append(cls)
    return found
