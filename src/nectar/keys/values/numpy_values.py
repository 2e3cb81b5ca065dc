"""Expanders of NumPy's values: arrays, scalars, dtypes, random generators, universal functions.

Law: dtype, shape and content in C order decide; strides, padding bytes, alignment of memory and the file behind a
memory map do not. Whether an array may be written to is part of it, because programs find out.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import HERE, placed

CHUNK: Final = 1 << 22  # bytes copied at a time when memory is not contiguous
_LONG_DOUBLE_BYTES: Final = 10 if np.finfo(np.longdouble).nmant == 63 else np.dtype(np.longdouble).itemsize


def add_dtype(parts: Parts, dtype: np.dtype[Any]) -> None:
    """Adds a dtype: kind, width, byte order, unit; fields with offsets and titles; metadata."""
    parts.text(type(dtype).__name__, dtype.char, dtype.str)
    if dtype.type is not np.void and dtype.kind == "V":
        parts.child(dtype.type, "scalar type")
    if dtype.metadata:
        parts.child(dict(dtype.metadata), "metadata")
    if dtype.kind == "T":
        _add_string_dtype(parts, dtype)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        parts.number(*shape)
        add_dtype(parts, base)
    if dtype.names is None or dtype.fields is None:
        return
    parts.number(len(dtype.names), dtype.itemsize, dtype.alignment, dtype.isalignedstruct)
    for name in dtype.names:
        field = dtype.fields[name]
        parts.text(name)
        parts.number(field[1])
        parts.child(field[2] if len(field) > 2 else None, "title")
        add_dtype(parts, field[0])


def _add_string_dtype(parts: Parts, dtype: Any) -> None:
    parts.number(dtype.coerce)
    if hasattr(dtype, "na_object"):
        parts.child(dtype.na_object, "na_object")


def add_array(parts: Parts, array: np.ndarray[Any, Any], label: str = "") -> None:
    """Adds an array's dtype, shape and content."""
    add_dtype(parts, array.dtype)
    parts.number(array.ndim, *array.shape)
    add_elements(parts, array, label)


def add_elements(parts: Parts, array: np.ndarray[Any, Any], label: str = "") -> None:
    """Adds an array's content in C order, without what lies between its elements."""
    dtype = array.dtype
    if dtype.kind in "US":
        parts.holds_texts(lambda: array.ravel().tolist())
    if dtype.names is not None:
        for name in dtype.names:
            field = np.ndarray.__getitem__(array, name)
            parts.number(field.ndim, *field.shape)
            add_elements(parts, field, f"{label}.{name}")
    elif dtype.kind in "OT":
        parts.objects(array.reshape(-1).tolist(), label)
    elif dtype.char in "gG":
        parts.chunks(_without_padding(array))
    elif array.size == 0 or dtype.itemsize == 0:
        parts.bulk(b"")
    elif array.flags.c_contiguous:
        parts.bulk(_memory(array))
    else:
        parts.chunks(_copied(array))


def _memory(array: Any) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return memoryview(array.reshape(-1).view(np.uint8))


def _copied(array: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    """The elements in C order, copied in bounded chunks."""
    size = max(1, CHUNK // array.dtype.itemsize)
    chunks: Any = np.nditer(array, ("external_loop", "buffered", "zerosize_ok"), order="C", buffersize=size)
    for chunk in chunks:
        yield _memory(np.ascontiguousarray(chunk))


def _without_padding(array: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    """Extended floats without the bytes that round them up to a multiple of the word."""
    if array.size == 0:
        return
    width = np.dtype(np.longdouble).itemsize
    for chunk in _copied(array):
        cells = np.frombuffer(chunk, np.uint8).reshape(-1, width)
        yield _memory(np.ascontiguousarray(cells[:, :_LONG_DOUBLE_BYTES]))


def _plain(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return value.view(np.ndarray)


def expand_array(value: np.ndarray[Any, Any], walk: WalkContext) -> Expansion:
    """An array: dtype, shape, content, whether it may be written to, and whether it lies in memory column by column."""
    parts = Parts(type(value))
    parts.number(value.flags.writeable, value.flags.fnc)
    add_array(parts, _plain(value) if type(value) is not np.ndarray else value)
    return parts.expansion("ndarray")


def expand_scalar(value: np.generic, walk: WalkContext) -> Expansion:
    """A NumPy scalar: dtype and content."""
    parts = Parts(type(value))
    add_array(parts, np.asarray(value))
    fixed = type(value) is not np.void
    return parts.expansion("numpy scalar")._replace(by_value=fixed, still=always if fixed else None)


def expand_dtype(value: np.dtype[Any], walk: WalkContext) -> Expansion:
    """A dtype."""
    parts = Parts(type(value))
    add_dtype(parts, value)
    return parts.expansion("dtype")


_UFUNC_HOMES: Final = ("numpy", "numpy._core.umath", "numpy.linalg._umath_linalg", "numpy.strings", "scipy.special")


def expand_ufunc(value: np.ufunc, walk: WalkContext) -> Expansion:
    """A universal function: by its name where a library has it, otherwise the Python function it was made from."""
    name = value.__name__
    for home in _UFUNC_HOMES:
        if getattr(sys.modules.get(home), name, None) is value:
            parts = Parts(type(value))
            parts.text(home, name)
            return parts.expansion("ufunc")._replace(still=always)
    return _expand_made_ufunc(value)


def _expand_made_ufunc(value: np.ufunc) -> Expansion:
    inside = [part for part in gc.get_referents(value) if callable(part)]
    if len(inside) != 1 or not value.__name__.endswith("(vectorized)"):
        raise UnencodableError(
            f"the universal function {value.__name__}", HERE, "no library NumPy knows has it under that name"
        )
    parts = Parts(type(value))
    parts.number(value.nin, value.nout)
    parts.child(value.identity, "identity")
    parts.child(inside[0], "function")
    return parts.expansion("ufunc from Python")


def expand_vectorize(value: np.vectorize, walk: WalkContext) -> Expansion:
    """np.vectorize: its function and options, not the universal functions it made so far."""
    parts = Parts(type(value))
    names = ("pyfunc", "otypes", "signature", "cache")
    for name in names:
        parts.child(getattr(value, name, None), name)
    parts.child(frozenset(value.excluded), "excluded")
    return parts.expansion("vectorize")


def expand_array_function(value: Any, walk: WalkContext) -> Expansion:
    """A public function of NumPy that other array libraries can take over: by its name."""
    module, name = value.__module__, value.__qualname__
    found: object = importlib.import_module(module) if str(module).startswith("numpy") else None
    for step in str(name).split("."):
        found = getattr(found, step, None)
    if found is not value:
        raise UnencodableError(f"the function {module}.{name}", HERE, "NumPy has another one under that name")
    parts = Parts(type(value))
    parts.text(module, name)
    return parts.expansion("numpy function")._replace(still=always)


def _refuse_iterator(value: object, walk: WalkContext) -> Expansion:
    raise UnencodableError(f"a {type(value).__name__}", HERE, "it holds a position that every use moves on")


def _dtype_classes() -> set[type]:
    named = {kind for kind in vars(np.dtypes).values() if isinstance(kind, type) and issubclass(kind, np.dtype)}
    return named | {type(np.dtype(code)) for code in np.typecodes["All"]}


def _scalar_classes() -> set[type]:
    return {np.dtype(code).type for code in np.typecodes["All"] if code != "O"}


EXPANDERS: dict[type, Expander] = placed(
    {
        **dict.fromkeys((np.ndarray, np.matrix, np.memmap, np.recarray, np.char.chararray), expand_array),
        **dict.fromkeys(_scalar_classes(), expand_scalar),
        np.record: expand_scalar,
        **dict.fromkeys(_dtype_classes(), expand_dtype),
        np.ufunc: expand_ufunc,
        np.vectorize: expand_vectorize,
        type(np.sum): expand_array_function,
        **dict.fromkeys((np.nditer, np.flatiter, np.broadcast, np.ndenumerate), _refuse_iterator),
    }
)
