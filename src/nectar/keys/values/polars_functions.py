"""Python functions in serialised plans and expressions, as the objects they are.

Polars pickles every Python function when it serialises a plan, and a plan that is read back holds copies: other objects
than the program made, without their locks, views and identities. Here it gets a token for each function instead. A
token is a pickle that looks its object up in a table of this process, so that a plan which is read back holds the very
functions it was written with.

Law: tokens are made for the plan that this thread is writing, and for nobody else who pickles at the same time. A token
leads to its object for as long as the `Functions` that made it live, and then, or in another process, to an error.
"""

from __future__ import annotations

import io
import itertools
import operator
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Final

import polars as pl

from nectar.errors import UnencodableError, UserError
from nectar.forks import in_child
from nectar.keys.values.polars_plans import Callback, is_python, said_and_pickle

_PROTOCOL: Final = 4
_LONGEST_KEYS: Final = 4  # of the way to a piece, so many of the last keys tell what it is

# tokens


_process = os.urandom(8).hex()  # of this process: a token of another one is never taken for one of ours
_numbers: Final = itertools.count(1)
_table: Final[weakref.WeakValueDictionary[bytes, Callback]] = weakref.WeakValueDictionary()


class _Token:
    __slots__ = ("number", "process")

    def __init__(self, process: str, number: str) -> None:
        self.process, self.number = process, number

    def __reduce__(self) -> tuple[Any, ...]:
        return _function_of, (self.process, self.number)


def _token(process: str, number: str) -> bytes:
    return _pickled(_Token(process, number), _PROTOCOL)


def _function_of(process: str, number: str) -> object:
    """The function that a token stands for; this is what a plan that is read back calls."""
    found = _table.get(_token(process, number))
    if found is None:
        where = "the query it was part of is over" if process == _process else "it belongs to another process"
        raise UserError(f"a Python function of a Polars plan cannot be found: {where}. Make the plan anew")
    return found.called


# Calls the functions of plans that are read back, where somebody has to be there when they run: before Python 3.12.
through: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None
_IS_NEEDED: Final = not hasattr(sys, "monitoring")  # known before whoever calls them is loaded, with the first of them


class _Called:
    """What stands for a function in a plan that is read back, where functions are called through something else."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if through is None:
            return self.function(*arguments, **options)
        return through(self.function, arguments, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.itemgetter(0), ((self.function,),)  # whoever reads it back gets the function itself


class Functions:
    """The Python functions of plans; their tokens are good while this object lives."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[int, tuple[bytes, Callback]] = {}  # by identity, for as long as they are held

    def token(self, function: object) -> bytes:
        """What stands for a function in a plan: the same for the same object."""
        if type(function) is _Called:
            function = function.function
        known = self._given.get(id(function))
        if known is None:
            token, callback = _token(_process, f"{next(_numbers):016x}"), Callback(function)
            if _IS_NEEDED and callable(function) and not isinstance(function, type):
                callback.called = _Called(function)
            _table[token] = callback
            self._given[id(function)] = known = token, callback
        return known[0]

    def serialised(self, serialise: Callable[[io.BytesIO], object], target: io.BytesIO | None = None) -> bytes:
        """What a method of Polars that serialises writes, with tokens for functions; it runs no code of theirs."""
        target = io.BytesIO() if target is None else target
        frame = sys._getframe()
        _writers[frame] = self
        _begin()
        try:
            serialise(target)
        finally:
            _end()
            del _writers[frame], frame
        return target.getvalue()

    def adopted(self, value: Any, keys: tuple[str, ...]) -> Any:
        """A piece of a plan with a token for each function that is there as a pickle, as in a plan that was read.

        Polars itself unpickles it when the plan runs. What cannot be unpickled stays as it is.
        """
        return mapped(value, keys, self._adopted)

    def _adopted(self, value: bytes) -> bytes:
        try:
            before, pickled = without_pickle(value)
            return value if pickled in _table else before + self.token(pickle.loads(pickled))
        except Exception:  # pickles of others may raise anything
            return value


def without_pickle(value: bytes) -> tuple[bytes, bytes]:
    """What stands before the pickle or token of a function in a piece of a plan, and the pickle or token.

    Raises UnencodableError if there is none.
    """
    _, pickled = said_and_pickle(value, "a Polars plan")
    return value[: -len(pickled)], pickled


def given_in(value: bytes) -> Callback | None:
    """The Python callable that a piece of a plan stands for, if the piece is a token."""
    try:
        return _table.get(without_pickle(value)[1])
    except UnencodableError:
        return None


def callback_in(value: bytes, what: str) -> Callback:
    """The Python callable that a piece of a plan holds: the object itself, where the piece is a token; else a copy.

    Raises UnencodableError if the piece holds neither, and whatever unpickling raises.
    """
    _, pickled = said_and_pickle(value, what)
    return _table.get(pickled) or Callback(pickle.loads(pickled))


# pickling, while a plan is written


_pickled: Callable[..., bytes] = pickle.dumps
_writers: Final[dict[FrameType, Functions]] = {}
_lock = threading.RLock()
_open = 0


class _Dumps:
    """Stands in the place of `pickle.dumps` while plans are written.

    Polars calls it from the frame that writes; everybody else, in this thread (a finaliser) and in others, gets what
    they would get without it.
    """

    def __call__(self, *arguments: Any, **options: Any) -> bytes:
        functions = _writers.get(sys._getframe(1))
        return _pickled(*arguments, **options) if functions is None else functions.token(arguments[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _dumps, ()


def _dumps() -> Callable[..., bytes]:
    """What pickles, for whoever has taken hold of our stand-in and pickles it."""
    return pickle.dumps


_stand_in: Final = _Dumps()


def _begin() -> None:
    global _open, _pickled
    with _lock:
        _open += 1
        if pickle.dumps is not _stand_in:
            _pickled = pickle.dumps
            pickle.dumps = _stand_in


def _end() -> None:
    global _open
    with _lock:
        _open -= 1
        if _open == 0 and pickle.dumps is _stand_in:
            pickle.dumps = _pickled


@in_child
def _forget_parent() -> None:
    """A forked process makes tokens of its own, and has none of the threads that were writing."""
    global _process, _lock, _open
    _process, _lock, _open = os.urandom(8).hex(), threading.RLock(), 0
    _writers.clear()
    if pickle.dumps is _stand_in:
        pickle.dumps = _pickled


@cache
def tokens_work() -> bool:
    """Whether the installed Polars takes tokens: it may pickle in another way some day."""
    probe = _Unpicklable()
    frame = pl.LazyFrame({"": [0]}).map_batches(probe).select(pl.col("").map_batches(probe, return_dtype=pl.Int64))
    functions = Functions()
    try:
        pl.LazyFrame.deserialize(io.BytesIO(functions.serialised(frame._ldf.serialize_binary))).collect_schema()
    except Exception:  # of the probe, or of Polars
        return False
    return True


class _Unpicklable:
    """A function that has to be replaced by a token."""

    def __call__(self, given: Any) -> Any:
        return given

    def __reduce__(self) -> Any:
        raise TypeError("it must not be pickled")


# where functions stand in a plan


def mapped(value: Any, keys: tuple[str, ...], change: Callable[[bytes], bytes]) -> Any:
    """A piece of a plan, each Python function in it changed. keys: where the piece stands.

    What people gave is none of them, whatever it looks like.
    """
    if isinstance(value, dict):
        return {name: mapped(inner, (*keys[-_LONGEST_KEYS:], str(name)), change) for name, inner in value.items()}
    if not (is_python(keys) or keys[-2:] == ("options", "scan_fn")):
        return [mapped(inner, keys, change) for inner in value] if isinstance(value, list) else value
    if isinstance(value, bytes):
        return change(value)
    if isinstance(value, list) and value and all(type(each) is int for each in value):
        return list(change(bytes(value)))
    return [mapped(inner, keys, change) for inner in value] if isinstance(value, list) else value
