"""The Python functions of a plan as pickles, for its recipe: the only place where functions of queries are pickled.

In: a plan, whose functions are the objects of the program. Out: pickles by token, and the plan with them in place of
the tokens. Law: a pickle is what the function was when its key was made; whoever takes one looks at the function again
afterwards.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from nectar.dialects.polars.plan import Plan
from nectar.errors import UserError
from nectar.keys.values.polars_functions import given_in, mapped, without_pickle
from nectar.keys.values.polars_plans import Callback

_PROTOCOL: Final = 5
AT_ONCE: Final = 1 << 20  # bytes of pickles that are made while the program waits

Pickles = Mapping[bytes, bytes]  # by token


class TooLarge(Exception):
    """A pickle would be larger than allowed."""


def pickles_of(plan: Plan, steps: Iterable[int], most: float) -> Pickles:
    """The functions of some steps, pickled. Raises TooLarge beyond so many bytes, and whatever pickling raises."""
    found: dict[bytes, bytes] = {}
    for token, callback in _callbacks_in(plan, steps).items():
        found[token] = _pickled(callback.function, most)
        most -= len(found[token])
    return found


def functions_in(plan: Plan, steps: Iterable[int]) -> list[Callback]:
    """The functions of some steps, as they are fingerprinted."""
    return list(_callbacks_in(plan, steps).values())


def with_pickles(plan: Plan, step: int, replaced: Mapping[int, Any], pickles: Pickles) -> bytes:
    """The plan that ends with a step, as Polars serialises it, with pickles in place of tokens."""

    def pickled(value: bytes) -> bytes:
        before, token = without_pickle(value)
        return before + pickles[token] if given_in(value) else value

    return plan.written(step, replaced, changed=lambda body: mapped(body, (), pickled))


def _callbacks_in(plan: Plan, steps: Iterable[int]) -> dict[bytes, Callback]:
    return {token: callback for number in steps for token, callback in plan.callbacks_of(number).items()}


def _pickled(function: object, most: float) -> bytes:
    """A function by its name where it has one that leads to it, otherwise with everything it is made of."""
    try:
        by_name = _dumped(pickle.Pickler, function, most)
        if b"__main__" not in by_name:  # which is another module wherever the recipe is run
            return by_name
    except TooLarge:
        raise
    except Exception:  # of a function without a name, and of objects that know nothing of modules
        pass
    try:
        from cloudpickle import Pickler  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise UserError("functions of the script itself are only written down with cloudpickle: install it") from None
    return _dumped(Pickler, function, most)


def _dumped(pickler: Callable[..., Any], function: object, most: float) -> bytes:
    target = _Limited(most)
    pickler(target, protocol=_PROTOCOL).dump(function)
    return target.getvalue()


class _Limited(io.BytesIO):
    def __init__(self, most: float) -> None:
        super().__init__()
        self._most = most

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > self._most:
            raise TooLarge
        return super().write(data)
