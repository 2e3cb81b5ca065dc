"""Why a call was not known: by comparing it with what is remembered of earlier calls of the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nectar.dialects.python.describe import call_text
from nectar.errors import NectarError
from nectar.keys.api import trace
from nectar.keys.difference import compare
from nectar.keys.trace import Trace
from nectar.model.entry import Entry

if TYPE_CHECKING:
    from nectar.dialects.python.invocation import Invocation


def explain_miss(invocation: Invocation) -> str:
    """Why the result of a call was not known, for people."""
    try:
        return _explain(invocation)
    except NectarError as error:
        return f"the reason cannot be told: {error}"


def _explain(invocation: Invocation) -> str:
    if invocation.refreshing:
        return "asked for anew, or older than it may be"
    memo, catalog, program = invocation.memo, invocation.catalog, invocation.call.program
    others = [each for each in catalog.inquire([program])[program] if each.key not in invocation.keyed.keys]
    if others:
        return _other_arguments(invocation, others)
    before = catalog.previous_trace(memo.label, program)
    if before is None:
        return "it is called for the first time"
    found = compare(Trace.from_json(before), trace(memo.function))
    first = str(found.differences[0]) if found else "its version, or what it ignores, is another"
    more = len(found.differences) + found.more - 1
    return f"its code changed: {first}" + (f" (and {more} more)" if found and more > 0 else "")


def _other_arguments(invocation: Invocation, others: list[Entry]) -> str:
    about = call_text(invocation.memo.label, invocation.arguments)
    alike = next((each for each in others if each.about == about), None)
    if alike is not None:
        if invocation.call.inputs:
            return "the content of its input files is new"
        return "its arguments look the same as before, but their content is new"
    nearest = max(others, key=lambda each: (_common(each.about, about), each.used))
    return f"these arguments are new; the nearest known call is {nearest.about}"


def _common(one: str, other: str) -> int:
    """How many of their parts two calls share."""
    return len(set(one.rstrip(")").split(", ")) & set(other.rstrip(")").split(", ")))
