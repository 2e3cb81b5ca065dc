"""Objects whose state lies in native code, of which their pickle may hold a part only.

In: an object of a library. Out: whether its pickle may be the same as that of another one. What a compiled class writes
as bytes of a format of its own may leave out properties, flags and digits; a class that hands over its fields, or that
is known to write all of it, is believed.
"""

from __future__ import annotations

from typing import Any, Final

from nectar.keys.origin import origin_of_class

# Distributions whose compiled classes are known to write all that they hold.
_COMPLETE: Final = frozenset(
    [
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "scipy",
        "scikit-learn",
        "xarray",
        "xgboost",
        "lightgbm",
        "catboost",
        "torch",
        "jax",
        "jaxlib",
        "duckdb",
        "pydantic",
        "pydantic-core",
        "attrs",
        "msgspec",
        "regex",
        "gmpy2",
        "bitarray",
        "pyroaring",
        "whenever",
        "shapely",
        "tokenizers",
        "pillow",
        "lxml",
        "rpds-py",
        "uuid-utils",
        "nectar-data",
    ]
)
_BOOST: Final = "Boost.Python"
_FROM_CYTHON: Final = "__pyx_unpickle"  # which Cython writes for all fields of a class
_DEPTH: Final = 4


def is_opaque(value: Any) -> bool:
    """Whether pickle asks native code for bytes that may be less than the object."""
    try:
        return may_lack_state(type(value), value.__reduce_ex__(4))
    except Exception:  # it cannot be pickled at all
        return True


def may_lack_state(cls: type, reduced: Any) -> bool:
    """The same of an object of a class that keeps state in native code, given what `__reduce_ex__` says of it."""
    if any(type(base).__module__ == _BOOST for base in cls.__mro__):
        return True
    origins = [origin_of_class(base) for base in cls.__mro__]
    native = next((each for each in origins if each.kind == "distribution"), None)
    if native is None or native.name in _COMPLETE or type(reduced) is not tuple:
        return False
    if getattr(reduced[0], "__name__", "").startswith(_FROM_CYTHON):
        return False
    return _holds_bytes(reduced[1:3], _DEPTH)


def _holds_bytes(value: object, depth: int) -> bool:
    if isinstance(value, bytes | bytearray | memoryview):
        return True
    if depth == 0 or not isinstance(value, tuple | list | dict):
        return False
    return any(_holds_bytes(each, depth - 1) for each in (value.values() if isinstance(value, dict) else value))
