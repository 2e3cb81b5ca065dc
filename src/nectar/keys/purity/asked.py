"""What a call asks of the process by what it is given: an encoding, a way to handle errors, local time, warnings.

In: a call as the analysis sees it. Out: what has to count beside the code.
"""

from __future__ import annotations

import codecs
import warnings
from typing import Final

from nectar.keys.ambient import TextCodec
from nectar.keys.bytecode.operation import Operation
from nectar.keys.purity import order
from nectar.keys.purity.facts import ATTRIBUTE, CONSTANT, OBJECT, Fact

_CODING_METHODS: Final = frozenset({"encode", "decode"})
_CODING: Final = {id(each): each for each in (str, bytes, bytearray, codecs.encode, codecs.decode)}
# What is worth a closer look: names of methods, and callables by id.
METHODS: Final = _CODING_METHODS | {"join", "strftime"}
CALLABLES: Final = {**_CODING, **order.KEEPS_ORDER, id(warnings.catch_warnings): warnings.catch_warnings}
_SECONDS: Final = "%s"  # of strftime: seconds since 1970, by local time


def codec_asked_for(operation: Operation, callee: Fact, arguments: list[Fact]) -> TextCodec | None:
    """The names under which a call encodes or decodes; the application may have registered functions for them."""
    given = _names_given(operation, callee, arguments)
    names = {name: fact.root for name, fact in given.items() if type(fact.root) is str}
    return TextCodec(names.get("encoding", ""), names.get("errors", "")) if names else None


def _names_given(operation: Operation, callee: Fact, arguments: list[Fact]) -> dict[str, Fact]:
    """What a call that encodes or decodes is given for the encoding and for the way to handle errors."""
    if callee.kind == ATTRIBUTE and callee.name in _CODING_METHODS:
        first = 0
    elif callee.kind == OBJECT and id(callee.root) in _CODING:
        first = 1
    else:
        return {}
    keywords: tuple[str, ...] = operation.arg  # type: ignore[assignment]
    positional = arguments[: len(arguments) - len(keywords)]
    given = dict(zip(keywords, arguments[len(positional) :], strict=True))
    given.update(zip(("encoding", "errors"), positional[first:], strict=False))
    return {name: given[name] for name in ("encoding", "errors") if name in given}


def asks_for_any_codec(operation: Operation, callee: Fact, arguments: list[Fact]) -> bool:
    """Whether a call encodes or decodes by a name, or handles errors in a way, that is known only when it runs."""
    given = _names_given(operation, callee, arguments)
    return any(type(fact.root) is not str for fact in given.values())


def asks_for_warnings(operation: Operation, callee: Fact, arguments: list[Fact]) -> bool:
    """Whether a block records warnings: the filters of the process decide which there are."""
    keywords: tuple[str, ...] = operation.arg  # type: ignore[assignment]
    if callee.root is not warnings.catch_warnings or "record" not in keywords:
        return False
    recorded = arguments[len(arguments) - len(keywords) + keywords.index("record")]
    return recorded != Fact(CONSTANT, False)


def asks_for_local_seconds(callee: Fact, arguments: list[Fact]) -> bool:
    """Whether strftime() is given a format that depends on local time."""
    return callee.name == "strftime" and any(type(fact.root) is str and _SECONDS in fact.root for fact in arguments)
