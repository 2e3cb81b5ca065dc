"""What is found out about a function: the nouns of the analysis."""

from __future__ import annotations

import types
from typing import NamedTuple

from msgspec import Struct, field

from nectar.keys.ambient import TextCodec
from nectar.keys.bytecode.operation import Operation
from nectar.keys.resolve import Resolution
from nectar.model.refusal import Refusal


class Ran(NamedTuple):
    """Methods that code runs of a parameter without a call of their own. attribute: it reads one, of the one name."""

    parameter: int
    names: tuple[str, ...]
    attribute: bool = False


class Report(Struct):
    """What was found out about a function."""

    refusals: list[Refusal] = field(default_factory=list)
    features: frozenset[str] = frozenset()
    settled: list[object] = field(default_factory=list)  # impure objects whose use here has been judged
    exposed: dict[int, object] = field(default_factory=dict)
    changed: frozenset[int] = frozenset()  # parameters, by position
    ran: set[Ran] = field(default_factory=set)
    named: dict[str, object] = field(default_factory=dict)  # what texts name, by name
    settings: frozenset[str] = frozenset()  # of the process, that the code asks for by name
    codecs: dict[TextCodec, None] = field(default_factory=dict)


class Examined(NamedTuple):
    """A function with the objects it works with, what it does with them, and the report about it."""

    function: types.FunctionType
    resolution: Resolution
    skeleton: bytes
    report: Report


Known = dict[tuple[int, bool], Examined]


def place_of(function: types.FunctionType, code: types.CodeType, operation: Operation | None) -> str:
    """Where in a function an operation stands, for people."""
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    line = code.co_firstlineno
    if operation is not None:
        for start, end, number in code.co_lines():
            if start <= operation.offset < end and number is not None:
                line = number
    return f"{function.__code__.co_qualname} ({file}:{line})"
