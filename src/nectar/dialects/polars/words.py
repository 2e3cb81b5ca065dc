"""Steps of a plan in words, for people. Nothing is decided by them, and nothing of a source is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import polars as pl

from nectar.dialects.polars.plan import Step
from nectar.trust.secrets import HIDDEN, is_secret_name, looks_secret, redacted

_encode: Final = msgspec.msgpack.Encoder().encode
_LONGEST: Final = 160
_MOST: Final = 60  # phrases of a step; a wide select has thousands
_EXPRESSIONS: Final = frozenset(
    {"predicate", "expr", "exprs", "keys", "aggs", "by_column", "left_on", "right_on", "subset"}
)
# Of these everything may be told. Sources and sinks are not among them: their options may hold secrets.
_TOLD: Final = frozenset(
    {"Filter", "Select", "HStack", "GroupBy", "Join", "Sort", "Distinct", "Slice", "Union", "HConcat", "MapFunction",
     "Pivot", "MergeSorted", "Gather", "MatchToSchema"}
)  # fmt: skip
_DYNAMIC: Final = re.compile(r"dyn (?:int|float|str): ")
_COLUMN: Final = re.compile(r'(?:col|alias)\("((?:[^"\\]|\\.)*)"\)')
_TEXTS: Final = re.compile(r'((?:col|alias)\()?("(?:[^"\\]|\\.)*")')


def phrases_of(step: Step) -> tuple[str, ...]:
    """What a step does, a phrase for each expression and each option."""
    if step.kind not in _TOLD:
        return ()
    found: list[str] = []
    for phrase in _phrases("", step.body):
        found.append(phrase)
        if len(found) == _MOST:
            break
    return tuple(found)


def detail_of(step: Step) -> str:
    """The expressions of a step in one line; empty if it has none."""
    if step.kind not in _TOLD:
        return ""
    if step.kind == "Slice":
        return f"rows from {step.body['offset']}, at most {step.body['len']}"
    return shortened(", ".join(_expressions(step.body)))


def shortened(text: str) -> str:
    """The text, or its beginning; without what may be a credential."""
    text = redacted(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _expressions(body: Any) -> Iterator[str]:
    for name, value in body.items() if isinstance(body, dict) else ():
        if name in _EXPRESSIONS:
            yield from (_expression(each) for each in (value if isinstance(value, list) else [value]))
        elif isinstance(value, dict):
            yield from _expressions(value)


def _phrases(name: str, value: Any) -> Iterator[str]:
    if name in _EXPRESSIONS:
        yield from (shortened(_expression(each)) for each in (value if isinstance(value, list) else [value]))
    elif isinstance(value, dict):
        for inner, each in value.items():
            yield from _phrases(str(inner), each)
    elif isinstance(value, str | int | float | None) or (isinstance(value, list) and not _is_long(value)):
        yield shortened(f"{name} = {value}")


def _is_long(values: list[Any]) -> bool:
    return len(values) > _MOST or not all(isinstance(each, str | int | float | None) for each in values)


def _expression(value: Any) -> str:
    """An expression as Polars shows it, without what may be a credential."""
    if value is None:
        return "all columns"
    text = _without_secrets(_shown(value)) or "an expression"
    text = _DYNAMIC.sub("", " ".join(text.split())).replace(".()", ".map(a Python function)")
    return text[1:-1] if text.startswith("[(") and text.endswith(")]") else text


def _shown(value: Any) -> str:
    """An expression as Polars shows it; empty if it cannot."""
    try:
        return str(pl.Expr.deserialize(_encode(value)))
    except Exception:  # only words are lost
        return ""


def _without_secrets(text: str) -> str:
    """An expression without the texts that a column is compared or filled with that is called like a credential."""
    if any(map(is_secret_name, _COLUMN.findall(text))):
        return _TEXTS.sub(lambda match: match[0] if match[1] else f'"{HIDDEN}"', text)
    return text


def may_hold_secret(step: Step) -> bool:
    """Whether an expression of a step may hold a credential."""
    if step.kind not in _TOLD:
        return False
    return any(_without_secrets(text) != text or looks_secret(text) for text in map(_shown, _values(step.body)))


def _values(body: Any) -> Iterator[Any]:
    """The expressions in a step, as they are serialised."""
    for name, value in body.items() if isinstance(body, dict) else ():
        if name in _EXPRESSIONS:
            yield from (each for each in (value if isinstance(value, list) else [value]) if each is not None)
        elif isinstance(value, dict):
            yield from _values(value)
