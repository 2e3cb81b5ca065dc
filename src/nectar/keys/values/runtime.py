"""Expanders of objects that belong to a running program: locks, context, loggers, weak references, exceptions.

Objects with a position that running moves on (iterators, generators, files, sockets, frames) are refused: what they
give next depends on who asked before.
"""

from __future__ import annotations

import _thread
import builtins
import contextvars
import io
import itertools
import logging
import mmap
import random
import socket
import threading
import types
import weakref
from array import array
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.purity.mutators import is_transient
from nectar.keys.values.bulk import content
from nectar.keys.values.callables import attributes
from nectar.model.refusal import Refusal

_UNSET: Final = object()


def expand_object(value: object, walk: WalkContext) -> Expansion:
    """A bare object(): nothing but its identity."""
    return Expansion("object", still=always)


def expand_cell(value: types.CellType, walk: WalkContext) -> Expansion:
    """A variable shared by functions: its present value, if it has one."""
    try:
        inside = value.cell_contents
    except ValueError:
        return Expansion("empty cell", still=lambda: not _filled(value))
    return Expansion("cell", b"", (inside,), ("contents",))


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading it raises if it is empty
    except ValueError:
        return False
    return True


_CODE_NUMBERS: Final = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags")
_CODE_NAMES: Final = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
_FUTURE_ANNOTATIONS: Final = 0x1000000


def expand_code(value: types.CodeType, walk: WalkContext) -> Expansion:
    """A code object that is used as a value: all of it except where it came from."""
    numbers = [str(getattr(value, name) & ~_FUTURE_ANNOTATIONS) for name in _CODE_NUMBERS]
    payload = joined(value.co_code, value.co_exceptiontable, value.co_name, *numbers)
    names = [getattr(value, name) for name in _CODE_NAMES]
    return Expansion("code", payload, (*names, value.co_consts), (*_CODE_NAMES, "co_consts"), still=always)


def _refused_weak(tag: str, walk: WalkContext) -> Expansion:
    """What is there by a weak reference may go at any moment; a walk over it would keep it alive."""
    reason = "holds a weak reference: what it leads to is there only as long as others use it"
    walk.refuse(Refusal("global state", reason, walk.path()))
    return Expansion(tag, b"alive")


def expand_weak_reference(value: weakref.ReferenceType[Any], walk: WalkContext) -> Expansion:
    """A weak reference: its callback, and what it refers to if the walk has come to that in another way."""
    referent = value()
    if referent is None:
        return Expansion("dead weakref", b"", (value.__callback__,), ("callback",), still=always)
    if walk.has_met(referent):
        return Expansion("weakref", b"", (value.__callback__, referent), ("callback", "referent"))
    return _refused_weak("weakref", walk)


def expand_weak_keys(value: weakref.WeakKeyDictionary[Any, Any], walk: WalkContext) -> Expansion:
    """A dictionary with weak keys."""
    items = list(value.items())
    return _weak_items("weak keys", items, [key for key, _ in items], walk)


def expand_weak_values(value: weakref.WeakValueDictionary[Any, Any], walk: WalkContext) -> Expansion:
    """A dictionary with weak values."""
    items = list(value.items())
    return _weak_items("weak values", items, [each for _, each in items], walk)


def _weak_items(tag: str, items: list[tuple[Any, Any]], weak: list[Any], walk: WalkContext) -> Expansion:
    """What is there as long as others use it: fine if the walk has come to all of it in another way."""
    if not all(map(walk.has_met, weak)):
        return _refused_weak(tag, walk)
    return Expansion(tag, b"", [part for item in items for part in item])


def expand_weak_set(value: weakref.WeakSet[Any], walk: WalkContext) -> Expansion:
    """A set of weak references."""
    return _refused_weak("weak set", walk) if value else Expansion("weak set")


def expand_context_variable(value: contextvars.ContextVar[Any], walk: WalkContext) -> Expansion:
    """A context variable: its name, its default, its value in the present context."""
    current = value.get(_UNSET)
    try:
        default = contextvars.Context().run(value.get)
    except LookupError:
        default = _UNSET
    known = [part for part in (default, current) if part is not _UNSET]
    payload = joined(value.name, repr(default is _UNSET), repr(current is _UNSET))
    return Expansion("context variable", payload, known)


def expand_lock(value: object, walk: WalkContext) -> Expansion:
    """A lock: its kind. Whether someone holds it just now belongs to the run, not to the program."""
    return Expansion("lock", joined(type(value).__name__), still=always)


def expand_event(value: threading.Event, walk: WalkContext) -> Expansion:
    """An event: whether it is set."""
    return Expansion("event", repr(value.is_set()).encode())


def expand_semaphore(value: Any, walk: WalkContext) -> Expansion:
    """A semaphore: how many may pass."""
    return Expansion("semaphore", joined(type(value).__name__, repr(value._value)))


def expand_thread_local(value: threading.local, walk: WalkContext) -> Expansion:
    """Thread-local data: that of the present thread, unless it is there only while something is being done."""
    if is_transient(value):
        return Expansion("thread local", joined("transient"), still=always)
    names, own = attributes(value)
    return Expansion("thread local", joined(*names), own, names)


def expand_logger(value: logging.Logger, walk: WalkContext) -> Expansion:
    """A logger: its name and what decides whether it says anything; not where it says it."""
    parts = (value.name, value.level, value.getEffectiveLevel(), value.disabled, value.propagate, value.manager.disable)
    return Expansion("logger", joined(type(value).__name__, *map(repr, parts)))


_EXCEPTION_ATTRIBUTES: Final = (
    "errno", "strerror", "filename", "filename2", "code", "value", "name", "name_from", "path", "obj",
    "encoding", "object", "start", "end", "reason", "msg", "lineno", "offset", "text", "end_lineno", "end_offset",
)  # fmt: skip
_MISSING_PART: Final = "no value"


def exception_parts(value: BaseException) -> tuple[list[str], list[object]]:
    """Names and values of what C code keeps in an exception, apart from its traceback."""
    names = ["args", "__cause__", "__context__", "__suppress_context__"]
    parts: list[object] = [value.args, value.__cause__, value.__context__, value.__suppress_context__]
    for name in _EXCEPTION_ATTRIBUTES:
        slot = _c_attribute(type(value), name)
        if slot is not None:
            names.append(name)
            parts.append(getattr(value, name, _MISSING_PART))
    return names, parts


def _c_attribute(kind: type, name: str) -> object | None:
    """The C-level slot for name that a built-in exception class gives to kind."""
    for base in kind.__mro__:
        if base.__module__ == "builtins" and name in vars(base):
            slot: object = vars(base)[name]
            return slot if isinstance(slot, (types.MemberDescriptorType, types.GetSetDescriptorType)) else None
    return None


def expand_exception(value: BaseException, walk: WalkContext) -> Expansion:
    """An exception that was made or caught: its class, arguments, attributes and cause."""
    names, parts = exception_parts(value)
    own_names, own = attributes(value)
    return Expansion(
        "exception", joined(*names, "", *own_names), (type(value), *parts, *own), ("class", *names, *own_names)
    )


def expand_random(value: random.Random, walk: WalkContext) -> Expansion:
    """A random number generator: its state."""
    version, numbers, spare = value.getstate()
    return Expansion("random", joined(repr(version), content(array("Q", numbers).tobytes()), repr(spare)))


def _refusal(reason: str) -> Expander:
    def refuse(value: object, walk: WalkContext) -> Expansion:
        kind = type(value)
        raise UnencodableError(f"an object of type {kind.__module__}.{kind.__qualname__}", walk.path(), reason)

    return refuse


_POSITION = "it holds a position that every use moves on, so what it gives next is not known"
_OPEN = "it stands for something open outside the program, whose content is not known"
_FRAME = "it belongs to a running call, which moves on"
_SYSTEM_RANDOM = "it gives other numbers in every run"


def _iterators() -> set[type]:
    empty: dict[int, int] = {}
    samples: list[object] = [
        iter([]), iter(()), iter(set()), iter(""), iter("\u0100"), iter(b""), iter(bytearray()), iter(range(0)),
        iter(range(1 << 70)), iter(empty), iter(empty.values()), iter(empty.items()), reversed([]), reversed(empty),
        reversed(empty.values()), reversed(empty.items()), iter(int, 0), iter(memoryview(b"")),
    ]  # fmt: skip
    kinds = {type(sample) for sample in samples}
    kinds |= {map, filter, zip, enumerate, reversed, types.GeneratorType, types.AsyncGeneratorType}
    kinds |= {kind for kind in vars(itertools).values() if isinstance(kind, type) and kind.__module__ == "itertools"}
    kinds |= {types.CoroutineType, type(iter(types.GenericAlias(list, int)))}
    return kinds


def _outside() -> set[type]:
    kinds = {kind for kind in vars(io).values() if isinstance(kind, type) and issubclass(kind, io.IOBase)}
    return kinds | {socket.socket, mmap.mmap}


EXPANDERS: dict[type, Expander] = {
    **dict.fromkeys(_iterators(), _refusal(_POSITION)),
    **dict.fromkeys(_outside(), _refusal(_OPEN)),
    **dict.fromkeys((types.FrameType, types.TracebackType), _refusal(_FRAME)),
    threading.Thread: _refusal(_FRAME),
    random.SystemRandom: _refusal(_SYSTEM_RANDOM),
    weakref.ProxyType: _refusal("a weak proxy hides what it refers to"),
    weakref.CallableProxyType: _refusal("a weak proxy hides what it refers to"),
    object: expand_object,
    types.CellType: expand_cell,
    types.CodeType: expand_code,
    weakref.ReferenceType: expand_weak_reference,
    weakref.WeakKeyDictionary: expand_weak_keys,
    weakref.WeakValueDictionary: expand_weak_values,
    weakref.WeakSet: expand_weak_set,
    contextvars.ContextVar: expand_context_variable,
    _thread.LockType: expand_lock,
    type(threading.RLock()): expand_lock,
    threading.Condition: expand_lock,
    threading.Event: expand_event,
    threading.Semaphore: expand_semaphore,
    threading.BoundedSemaphore: expand_semaphore,
    threading.local: expand_thread_local,
    logging.Logger: expand_logger,
    logging.RootLogger: expand_logger,
    random.Random: expand_random,
    **{
        kind: expand_exception
        for kind in vars(builtins).values()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    },
}
