"""Whether a result comes back from its pickle as it was, and whether pickling it does anything else.

In: a value, the copy that its pickle gives, and the objects in it that are pickled in a way of their own. Law: what is
seen to differ is not kept; what code of the application does when a result is pickled, or comes back, must have no
effect, because a program without Nectar never runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

from nectar.errors import UnencodableError, UserError
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.keys.outcome import outcome_of
from nectar.keys.purity.facts import static_attribute
from nectar.keys.scheme import new_hasher
from nectar.keys.values.opaque import is_opaque
from nectar.keys.walk import Walk
from nectar.model.origin import APPLICATION

_RUN: Final = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__new__",
    "__init__", "__setattr__", "__setitem__", "append", "extend", "__del__",
)  # fmt: skip
# How pickle writes a set, or the end of a frozen one: the instruction, then that it is remembered.
_SETS: Final = (b"\x8f\x94(", b"\x91\x94")
_MOST: Final = 1000  # objects that are compared one by one


def refuse_if_pickling_acts(cls: type) -> None:
    """Raises UserError if pickling objects of a class, or making them again, would do what plain Python does not."""
    for name in _RUN if origin_of_class(cls) is APPLICATION else ():
        found = static_attribute(cls, name)
        function = getattr(found, "__func__", found)
        if type(function) is not FunctionType or origin_of_function(function) is not APPLICATION:
            continue
        try:
            refusals = outcome_of(function).refusals
        except UnencodableError as error:
            raise UserError(f"keeping {cls.__qualname__} would run its {name}, and {error}") from error
        if refusals:
            raise UserError(
                f"keeping {cls.__qualname__} would run its {name}, which {refusals[0].reason}: return something else"
            )


def holds_sets(pickled: bytes) -> bool:
    """Whether there may be a set in what was pickled."""
    return any(each in pickled for each in _SETS)


def refuse_unless_same(value: Any, copy: Any, walk: Walk, doubted: Sequence[Any], again: Callable[[Any], Any]) -> None:
    """Raises UserError if a copy made from a pickle is not what was pickled, as far as can be told.

    doubted: what was pickled in a way of its own. again: gives the copy of a part.
    """
    try:
        same = _digest(value, walk) == _digest(copy, walk)
    except UnencodableError as error:
        _refuse_if_a_part_differs(doubted, walk, again, error)
        return
    if same:
        return
    if not doubted:
        raise UserError("it holds a set of numbers that comes back in another order: return them in a list")
    _refuse(_differing(doubted, walk, again))


def _refuse(cls: type) -> None:
    raise UserError(
        f"pickle does not give back {cls.__qualname__} as it is: see its __getstate__, __reduce__, __setstate__ "
        "and __new__, or return something else"
    )


def _differing(doubted: Sequence[Any], walk: Walk, again: Callable[[Any], Any]) -> type:
    """The class of the first object that does not come back as it is."""
    for each in doubted[:_MOST] if len(doubted) > 1 else ():
        try:
            if _digest(each, walk) != _digest(again(each), walk):
                return type(each)
        except UserError:
            continue
    return type(doubted[0])


def _refuse_if_a_part_differs(
    doubted: Sequence[Any], walk: Walk, again: Callable[[Any], Any], error: UnencodableError
) -> None:
    """The whole cannot be compared: what can be is, and of the rest libraries know what they write."""
    for cls in {type(each): None for each in doubted}:
        if origin_of_class(cls) is APPLICATION:
            raise UserError(
                f"nobody can tell whether {cls.__qualname__}, which is pickled in a way of its own, comes back as it "
                f"is: {error}"
            ) from error
    for each in doubted[:_MOST]:
        if is_opaque(each):
            raise UserError(f"what pickle keeps of {type(each).__qualname__} may be a part of it only") from error
        try:
            same = _digest(each, walk) == _digest(again(each), walk)
        except UnencodableError:
            continue
        if not same:
            _refuse(type(each))


def _digest(value: Any, walk: Walk) -> bytes:
    inner = walk.continued(new_hasher(), frozenset())
    inner.visit(value, "result")
    return inner.finish()
