"""Results of functions: taken apart to be kept, and made again exactly as they were.

Frames of Polars and tables of Arrow are kept as Arrow files and come back without a copy. Everything else is pickled,
its arrays beside it, and comes back with arrays that are mapped from the file and may be written to without changing
it. Classes and functions of the application are referred to by their number in the walk over the call, not by their
names: the same call has the same numbers wherever its code lies by now. Law: what comes back is of the type that went
in; what cannot be made again exactly is not kept, and says why.
"""

from __future__ import annotations

import collections
import enum
import functools
import importlib
import io
import operator
import sys
import types
from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nectar.dialects.python.pickling import is_doubtful
from nectar.errors import StoreFailure, UserError
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.keys.registry import expander_for
from nectar.keys.values.bulk import added_attributes
from nectar.keys.walk import Walk, describe_type
from nectar.model.origin import APPLICATION
from nectar.store.estimate import estimate
from nectar.store.formats import objects

if TYPE_CHECKING:
    from nectar.store.read import Result

_CONTAINERS: Final = frozenset({list, dict, set, bytearray, collections.defaultdict, collections.deque})
_walk: ContextVar[Walk | None] = ContextVar("nectar_walk", default=None)


class Snapshot(NamedTuple):
    """A result that nobody can change any more. content: a frame or table, or a value taken apart."""

    content: Any
    table: bool

    @property
    def size(self) -> int:
        """Bytes it takes, roughly."""
        return estimate(self.content)

    def holds_any(self, texts: Iterable[str]) -> bool:
        """Whether one of several texts stands in the result."""
        sought = [text.encode(coding) for text in texts for coding in _CODINGS]
        if not sought:
            return False
        pieces = [_written(self.content)] if self.table else [self.content[0], *map(bytes, self.content[1])]
        return any(each in piece for piece in pieces for each in sought)

    def restored(self, walk: Walk) -> Any:
        """The result, for a caller of its own."""
        if self.table:
            return self.content.clone() if hasattr(self.content, "clone") else self.content
        data, buffers = self.content
        places, pieces = objects.laid_out(buffers)
        with _resolving(walk):
            return objects.load(data, bytearray().join(pieces), places, "memory")


_CODINGS: Final = ("utf-8", "utf-16-le", "utf-32-le")  # arrays of NumPy hold the last


def _written(table: Any) -> bytes:
    """A frame or table as the bytes of a file."""
    memory = io.BytesIO()
    if _is_frame(table):
        table.write_ipc_stream(memory)
    else:
        with sys.modules["pyarrow"].ipc.new_stream(memory, table.schema) as writer:
            writer.write_table(table)
    return memory.getvalue()


def snapshot(value: Any, walk: Walk) -> Snapshot:
    """The result of a call as it is now. Raises UserError if it cannot be kept."""
    from nectar.dialects.python.round_trip import holds_sets, refuse_unless_same

    expander_for(type(value))  # from now on it is known what libraries that are loaded keep in their objects
    if (_is_frame(value) or _is_table(value)) and not added_attributes(value):
        copy = _copied(value)
        if copy is not None:
            return Snapshot(copy, table=True)
    doubted: list[Any] = []
    content = _Given(value, number) if (number := _number_of_given(walk, value)) is not None else value
    taken = _taken_apart(content, walk, doubted)
    if doubted or holds_sets(taken.content.data):
        refuse_unless_same(
            value, taken.restored(walk), walk, doubted, lambda part: _taken_apart(part, walk, []).restored(walk)
        )
    return taken


def _taken_apart(content: Any, walk: Walk, doubted: list[Any]) -> Snapshot:
    return Snapshot(objects.dump(content, functools.partial(_reduce, walk, doubted)).copied(), table=False)


def restored(result: Result, walk: Walk | None) -> Any:
    """The result of an earlier call, for the same call if there is one. Raises StoreFailure if it cannot be made."""
    if result.made_by == "polars":
        return result.to_polars()
    if result.made_by == "pyarrow":
        return result.to_arrow()
    with _resolving(walk):
        return result.to_object(writable=True)


def _is_frame(value: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and type(value) is getattr(polars, "DataFrame", None)


def _is_table(value: Any) -> bool:
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and type(value) is getattr(pyarrow, "Table", None)


def _copied(table: Any) -> Any:
    """The same frame or table with memory of its own: columns may share theirs with an array that somebody changes.

    None if an Arrow file does not hold all of it: a column of Python objects, a type that an application has made.
    """
    memory = io.BytesIO()
    try:
        if _is_frame(table):
            table.write_ipc_stream(memory)
            memory.seek(0)
            copy = sys.modules["polars"].read_ipc_stream(memory)
            return copy if copy.schema == table.schema else None
        ipc: Any = sys.modules["pyarrow"].ipc
        with ipc.new_stream(memory, table.schema) as writer:
            writer.write_table(table)
        copy = ipc.open_stream(memory.getvalue()).read_all()
        return copy if copy.schema.equals(table.schema, check_metadata=True) and not _is_extended(copy) else None
    except Exception as error:
        raise UserError(f"the table cannot be kept: {type(error).__name__}: {error}") from error


def _is_extended(table: Any) -> bool:
    """Whether a table of Arrow has types that a process knows only once they have been registered with it."""
    kind: Any = sys.modules["pyarrow"].ExtensionType
    return any(isinstance(field.type, kind) for field in table.schema)


# what pickle does not do, or not exactly


def _reduce(walk: Walk, doubted: list[Any], value: Any) -> Any:
    """What is pickled in the place of a value, as `__reduce__` gives it; what is doubted is noted."""
    kind = type(value)
    if kind is _Given:
        return given, (value.number, describe_type(value.value))
    if isinstance(value, type) or kind is types.FunctionType:
        return _reduce_definition(walk, value)
    if kind is types.MappingProxyType:
        return read_only_mapping, (dict(value),)
    if isinstance(value, BaseException) and (value.__cause__ or value.__context__ or value.__traceback__):
        raise UserError(f"it holds an error ({kind.__qualname__}) with its traceback, which cannot be written down")
    if (number := _number_of_given(walk, value)) is not None:
        return given, (number, describe_type(value))
    if is_doubtful(value):
        from nectar.dialects.python.round_trip import refuse_if_pickling_acts

        refuse_if_pickling_acts(kind)
        doubted.append(value)
    polars = sys.modules.get("polars")
    if polars is not None and kind in (polars.DataFrame, polars.Series):
        return _reduce_columns(polars, value)
    masked = sys.modules.get("numpy.ma")
    if masked is not None and kind is masked.MaskedArray:
        mask = None if value.mask is masked.nomask else masked.getmaskarray(value)
        return masked_array, (masked.getdata(value), mask, value._fill_value, value.hardmask)
    return _reduce_identity(walk, value)


def _reduce_columns(polars: Any, value: Any) -> Any:
    """Python objects in a column are pickled one by one, which Polars does not do."""
    columns = [value] if isinstance(value, polars.Series) else value.get_columns()
    if not any(column.dtype == polars.Object for column in columns):
        return NotImplemented
    taken = [column if column.dtype != polars.Object else (column.name, column.to_list()) for column in columns]
    return (column_of_objects, taken[0]) if isinstance(value, polars.Series) else (frame_of_columns, (taken,))


def read_only_mapping(mapping: dict[Any, Any]) -> types.MappingProxyType[Any, Any]:
    """A mapping that cannot be changed."""
    return types.MappingProxyType(mapping)


def masked_array(data: Any, mask: Any, fill_value: Any, hard: bool) -> Any:
    """A masked array; NumPy's own pickle forgets that there is no mask, or that it is hard."""
    numpy: Any = importlib.import_module("numpy.ma")
    made = numpy.MaskedArray(data, numpy.nomask if mask is None else mask, hard_mask=hard)
    made._fill_value = fill_value
    return made


def column_of_objects(name: str, values: list[object]) -> Any:
    """A column of Python objects."""
    polars: Any = importlib.import_module("polars")
    return polars.Series(name, values, dtype=polars.Object)


def frame_of_columns(columns: list[Any]) -> Any:
    """A frame of these columns, of which some are names with Python objects."""
    polars: Any = importlib.import_module("polars")
    return polars.DataFrame([column_of_objects(*each) if isinstance(each, tuple) else each for each in columns])


# objects that the call was given, or that its function captured


class _Given(NamedTuple):
    """Stands for a result that was there before the call. number: of the value in the walk."""

    value: Any
    number: int


def _number_of_given(walk: Walk, value: Any) -> int | None:
    """The number of a value that was there before the call and that somebody may change, or compare with `is`."""
    kind = type(value)
    if kind not in _CONTAINERS and (not _is_instance_of_application(kind) or issubclass(kind, BaseException)):
        return None
    number = walk.number_of(value)
    return number if number is not None and walk.numbered(number) is value else None


def _is_instance_of_application(kind: type) -> bool:
    return not issubclass(kind, (type, enum.Enum, str, bytes, int, float, tuple, frozenset)) and (
        origin_of_class(kind) is APPLICATION
    )


def given(number: int, name: str) -> object:
    """What the call was given or its function captured, met as the number-th by the walk over the call."""
    walk = _walk.get()
    found = None if walk is None else walk.numbered(number)
    if found is None:
        raise StoreFailure(f"the result holds an object ({name}) that only the same call can give: call the function")
    return found


# classes and functions of the application


def _reduce_definition(walk: Walk, value: Any) -> Any:
    origin = origin_of_class(value) if isinstance(value, type) else origin_of_function(value)
    if origin is not APPLICATION:
        return NotImplemented
    number = walk.number_of(value)
    if number is None:
        raise UserError(
            f"it holds {value.__module__}.{value.__qualname__}, which the function was not seen to reach, so that "
            "nobody could tell later whether that is still the same"
        )
    return reached, (number, value.__module__, value.__qualname__)


def _reduce_identity(walk: Walk, value: Any) -> Any:
    """An object that is nothing but itself, such as a sentinel, must come back as itself."""
    kind: Any = type(value)
    plain = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    if not plain or kind.__eq__ is not object.__eq__ or getattr(value, "__dict__", None) or _has_slots(kind):
        return NotImplemented
    if kind.__init__ is not object.__init__ or (origin_of_class(kind) is APPLICATION and kind is not object):
        return NotImplemented
    number = walk.number_of(value)
    if number is None:
        raise UserError(f"it holds an object of type {kind.__qualname__} that is nothing but itself")
    return reached, (number, kind.__module__, kind.__qualname__)


def _has_slots(kind: type) -> bool:
    return any(getattr(base, "__slots__", ()) for base in kind.__mro__)


def reached(number: int, module: str, name: str) -> object:
    """A class or function of the application: the one met as the number-th by the walk over the call.

    Without a call, as when somebody only looks at a result, the one that has the name now.
    """
    walk = _walk.get()
    if walk is None:
        return operator.attrgetter(name)(importlib.import_module(module))
    found = walk.numbered(number)
    if found is None:
        raise StoreFailure(f"the result refers to {module}.{name}, which this call does not reach: compute it again")
    return found


class _resolving:  # noqa: N801 - read as a word
    """Within the block, references to classes and functions mean those of a walk."""

    __slots__ = ("_token", "_with")

    def __init__(self, walk: Walk | None) -> None:
        self._with = walk

    def __enter__(self) -> None:
        self._token = _walk.set(self._with)

    def __exit__(self, *_: object) -> None:
        _walk.reset(self._token)
