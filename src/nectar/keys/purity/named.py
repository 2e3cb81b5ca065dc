"""Variables that a call reads by names that stand in a text: `df.query("a > @limit")`, `ols("y ~ scaled(x)", d)`.

In: a call as the analysis sees it. Out: the names, or None where the text is not known. Names of variables of the
function itself count by its bytecode, others by what the name means in the module of the function.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import types
from typing import TYPE_CHECKING, Final

from nectar.keys.bytecode.operation import Operation
from nectar.keys.folding import MISSING
from nectar.keys.purity.facts import ATTRIBUTE, CONSTANT, OBJECT, Fact, Facts, class_of, static_attribute
from nectar.keys.purity.tables import verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KIND: Final = "names"  # of verdicts about what reads variables by name
METHODS: Final = frozenset({"query", "eval"})  # of frames of pandas, which are mostly arguments
_AFTER_AT: Final = re.compile(r"@\s*([^\W\d]\w*)")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_TEXTS: Final = ("expr", "formula", "formula_like", "spec")  # keywords under which the text is given
_WITH_FORMULAS: Final = frozenset({"patsy", "formulaic", "statsmodels"})
_CALLERS: Final = (map, filter, functools.partial, functools.reduce)
_OF_FORMATS: Final = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")


def takes_query(receiver: Fact, name: str) -> bool:
    """Whether a method of this name may be that of a frame of pandas, which takes names with @ from its caller."""
    if name not in METHODS or "pandas" not in sys.modules:
        return False
    cls = class_of(receiver)
    if cls is None:
        return receiver.kind != OBJECT
    found = verdict(static_attribute(cls, name))
    return found is not None and found.takes_names


def handed_on(callee: Fact, arguments: Sequence[Fact]) -> str | None:
    """The method of a frame that takes names and is asked for, or called, in a way that does not show its text."""
    if "pandas" not in sys.modules:
        return None
    if callee.root is operator.methodcaller or callee.root is getattr:
        name = _known(arguments[callee.root is getattr]) if len(arguments) > (callee.root is getattr) else None
        of_frame = callee.root is operator.methodcaller or takes_query(arguments[0], name or "")
        return name if name in METHODS and of_frame else None
    if any(callee.root is each for each in _CALLERS):
        for argument in arguments:
            if argument.kind == ATTRIBUTE and argument.owner is not None and takes_query(argument.owner, argument.name):
                return argument.name
    return None


def takes_formula(called: object) -> bool:
    """Whether a callable takes a formula, whose names are looked up where it is called."""
    if called is None or not any(map(sys.modules.__contains__, _WITH_FORMULAS)):
        return False
    found = verdict(called)
    return found is not None and found.takes_names


def names_in_query(call: Operation, facts: Facts) -> frozenset[str] | None:
    """The variables that the text of a query names with @; None if the text is not known."""
    if call.name != "CALL":  # with arguments that stand in a list or dict
        return None
    text = _text(call, facts)
    return None if text is None else frozenset(_AFTER_AT.findall(text))


def names_in_formula(call: Operation, facts: Facts) -> frozenset[str] | None:
    """What the texts among the arguments of a call name, modules in front included; None if one is not known."""
    if call.name != "CALL" or _text(call, facts) is None:
        return None
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    named = dict(zip(reversed(keywords), reversed(call.operands), strict=False))
    texts = [_known(facts.of(value)) for value in call.operands[1:]]
    if any("formula" in name and _known(facts.of(value)) is None for name, value in named.items()):
        return None
    return frozenset(name for text in texts if text is not None for name in _DOTTED.findall(text))


def meaning(name: str, namespace: dict[str, object]) -> Iterator[object]:
    """What a name with dots means: the last that modules lead to."""
    first, *rest = name.split(".")
    found = namespace.get(first, MISSING)
    for part in rest:
        if not isinstance(found, types.ModuleType):
            break
        found = vars(found).get(part, MISSING)
    if found is not MISSING:
        yield found


def _text(call: Operation, facts: Facts) -> str | None:
    """The text a call is given: what is known of it, where values are put into it."""
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    given = call.operands[1:]
    if len(given) > len(keywords):
        return _pieces(given[0], facts)
    by_name = dict(zip(keywords, given, strict=True))
    found = next((by_name[name] for name in _TEXTS if name in by_name), None)
    return "" if found is None else _pieces(found, facts)


def _pieces(value: int, facts: Facts) -> str | None:
    known = _known(facts.of(value))
    if known is not None:
        return known
    made = facts.maker(value)
    if made is None or made.name != "BUILD_STRING":
        return None
    pieces = [_piece(operand, facts) for operand in made.operands]
    return None if None in pieces else "0".join(pieces)  # type: ignore[arg-type]


def _piece(value: int, facts: Facts) -> str | None:
    """A piece of a text: as it is written, or "" for a value that is put in its place."""
    made = facts.maker(value)
    if made is None or made.name not in _OF_FORMATS:
        return _known(facts.of(value))
    return _known(facts.of(made.operands[0])) or ""


def _known(fact: Fact) -> str | None:
    return fact.root if fact.kind in (CONSTANT, OBJECT) and type(fact.root) is str else None
