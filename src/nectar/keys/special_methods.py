"""Methods that Python calls by itself, in roles that excuse something of what they do."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class SpecialMethod:
    """A method of a class that Python calls by itself, reached through the class, in a role that excuses something.

    "hash": it may use hash(), because what it gives stays unseen. "dormant": only copying and pickling call it, so that
    refusals in it and in what only it reaches count only where reached code copies or pickles.
    """

    function: types.FunctionType
    role: str


_ROLES: Final = {
    "__hash__": "hash",
    **dict.fromkeys(
        ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__",
         "__copy__", "__deepcopy__"),
        "dormant",
    ),
}  # fmt: skip


def in_its_role(name: str, value: object) -> object:
    """What a class has under a name, as a special method if it is one."""
    role = _ROLES.get(name)
    if role is None or type(value) is not types.FunctionType:  # asked of its type: a proxy says that it is a function
        return value
    return SpecialMethod(value, role)


_BY_ATTRS: Final = re.compile(r"<attrs generated \S+ (.+?)(-\d+)?>")


def without_salt(function: types.FunctionType) -> types.FunctionType:
    """The function; a __hash__ that attrs has written, without the number in it that is another one in every process.

    That number is the hash of a text with the name of the class, which is how it is known again.
    """
    code = function.__code__
    written = _BY_ATTRS.fullmatch(code.co_filename)
    if written is None:
        return function
    salt = hash(f"<attrs generated hash {written[1]}>")
    constants = tuple(_replaced(value, salt) for value in code.co_consts)
    if constants == code.co_consts:
        return function
    unsalted = types.FunctionType(
        code.replace(co_consts=constants), function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    unsalted.__kwdefaults__ = function.__kwdefaults__
    return unsalted


def _replaced(constant: object, salt: int) -> object:
    if type(constant) is tuple:
        return tuple(_replaced(part, salt) for part in constant)
    return 0 if type(constant) is int and constant == salt else constant
