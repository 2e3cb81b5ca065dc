"""Python functions in plans: remembered when the client pickles them, fingerprinted as the objects they are.

The plan holds a function as pickled bytes, which differ between processes; the client knows the object. Law: what is
remembered of pickled bytes is what the function computed at the moment it was pickled, or nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Final

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.connect.expressions import PythonUDF
from pyspark.sql.connect.plan import PythonDataSource, PythonUDTF

from nectar.errors import NectarError
from nectar.forks import in_child
from nectar.keys.scheme import digest_of
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
_MOST: Final = 1024  # functions; a plan is made anew for each action, so the latest are enough
_SIDE_EFFECTS: Final = ("DataFrame.foreach.<locals>", "DataFrame.foreachPartition.<locals>")

_FOR_ITS_EFFECT: Final = "foreach is run for what it does, and not for a result"


@dataclass(frozen=True, slots=True)
class Pickled:
    """A function that a plan holds. digest: what it computes. refusal: why its results are not reused.

    command: the bytes that it was pickled as, which differ between processes. reached: the functions of Python that it
    called when it was pickled, itself included. is_light: whether looking at it again takes no time to speak of.
    """

    function: Any
    digest: bytes
    refusal: str = ""
    command: bytes = field(default=b"", compare=False, repr=False)
    reached: tuple[FunctionType, ...] = field(default=(), compare=False, repr=False)
    is_light: bool = field(default=True, compare=False)


_lock = threading.Lock()
_remembered: Final[OrderedDict[bytes, Pickled]] = OrderedDict()
_warned: Final[set[str]] = set()
_plain: Final[dict[type, Any]] = {kind: kind.to_plan for kind in (PythonUDF, PythonUDTF)}
_plain_source_to_plan: Final = PythonDataSource.to_plan


@in_child
def _forget_parent() -> None:
    """A thread of the parent that held the lock is not here to give it back."""
    global _lock
    _lock = threading.Lock()


def install() -> None:
    """From now on functions are remembered when they are pickled."""
    for kind in _plain:
        kind.to_plan = _to_plan  # type: ignore[attr-defined]  # of each of them
    PythonDataSource.to_plan = _source_to_plan


def uninstall() -> None:
    """From now on functions are pickled as without Nectar."""
    for kind, plain in _plain.items():
        kind.to_plan = plain  # type: ignore[attr-defined]  # of each of them
    PythonDataSource.to_plan = _plain_source_to_plan


def known_as(command: bytes) -> Pickled | None:
    """What is remembered of pickled bytes."""
    with _lock:
        return _remembered.get(digest_of(command))


def recall(command: bytes) -> None:
    """A function that another process has pickled is known as it is here. Raises whatever unpickling raises."""
    function, _ = CloudPickleSerializer().loads(command)
    _remember(command, replace(_described(function), command=command))


def is_still(pickled: Pickled) -> bool:
    """Whether a function computes what it computed when it was pickled."""
    return _described(pickled.function) == pickled


def _to_plan(self: Any, session: Any) -> Any:
    before = _described_or_none(self._func)
    if before is not None and before.refusal:
        _warn(before.refusal)
    expression = next(plain for kind, plain in _plain.items() if isinstance(self, kind))(self, session)
    # Once more: another thread may have changed what the function captured while it was pickled.
    if before is not None and _described_or_none(self._func) == before:
        _remember(expression.command, replace(before, command=expression.command))
    return expression


def _source_to_plan(self: Any, session: Any) -> Any:
    """A class that reads data: its results are never reused for what it is, so that nobody needs to be told."""
    before = _described_or_none(self._data_source)
    source = _plain_source_to_plan(self, session)
    if before is not None and _described_or_none(self._data_source) == before:
        _remember(source.command, replace(before, command=source.command))
    return source


def _warn(refusal: str) -> None:
    """The log says once why results of a function are not reused; of foreach nobody expects it."""
    if refusal not in _warned and refusal != _FOR_ITS_EFFECT and len(_warned) < _MOST:
        _warned.add(refusal)
        _log.warning("queries with this function run as without Nectar: %s", refusal)


def _remember(command: bytes, pickled: Pickled) -> None:
    key = digest_of(command)
    with _lock:
        _remembered[key] = pickled
        _remembered.move_to_end(key)
        while len(_remembered) > _MOST:
            _remembered.popitem(last=False)


def _described_or_none(function: Any) -> Pickled | None:
    try:
        return _described(function)
    except Exception:  # a mistake in Nectar must not stop the program
        _log.debug("a function is not known", exc_info=True)
        return None


def _described(function: Any) -> Pickled:
    from nectar.keys.outcome import is_light, outcome_of  # these take long to load, and most plans hold no function
    from nectar.keys.sources import functions_reached

    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    if name.startswith(_SIDE_EFFECTS):
        return Pickled(function, b"", _FOR_ITS_EFFECT)
    try:
        outcome = outcome_of(function)
    except NectarError as error:
        return Pickled(function, b"", f"{name}: {error}")
    if outcome.walk.inputs:
        return Pickled(function, b"", f"{name} reads files that it declares, which plans of Spark cannot hold yet")
    refusals = "; ".join(dict.fromkeys(str(each) for each in outcome.refusals))
    reached = tuple(functions_reached(outcome.walk))
    refusal = f"{name}: {refusals}" if refusals else ""
    return Pickled(function, outcome.digest, refusal, reached=reached, is_light=is_light(outcome))
