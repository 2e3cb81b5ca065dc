"""Why a call was not known: by comparing it with what is remembered of earlier calls of the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nectar.catalog.service import Catalog
from nectar.dialects.python.describe import call_text
from nectar.errors import NectarError
from nectar.keys.ambient import STANDARD
from nectar.keys.api import trace
from nectar.keys.call import program_of
from nectar.keys.difference import compare
from nectar.keys.trace import Trace
from nectar.model.entry import Entry

if TYPE_CHECKING:
    from nectar.dialects.python.invocation import Invocation
    from nectar.dialects.python.memo import Memoized


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
    others = [each for each in catalog.inquire([program])[program] if each.created < invocation.began]
    if others:
        return _other_arguments(invocation, others)
    return _change(memo, catalog, program) or "it is called for the first time"


def changes_since_kept(memo: Memoized[..., Any], catalog: Catalog) -> str:
    """What is known of a function as it is, and what changed since it was last another."""
    program = program_of(memo.function, memo.extra)
    kept = len(catalog.inquire([program])[program])
    change = _change(memo, catalog, program)
    if kept:
        return f"{memo.label} is known as it is: {kept} result{'s' if kept > 1 else ''} kept"
    return change or f"no result of {memo.label} has been kept"


def _change(memo: Memoized[..., Any], catalog: Catalog, program: bytes) -> str:
    """What changed in a function since it was last another; empty if it never was."""
    before = catalog.previous_trace(memo.label, program)
    if before is None:
        return ""
    kept = catalog.trace_of(memo.label, program)  # settings may be others by now
    found = compare(Trace.from_json(before), trace(memo.function) if kept is None else Trace.from_json(kept))
    if not found:
        return "its version, or what it ignores, is another"
    more = len(found.differences) + found.more - 1
    first = str(found.differences[0])
    is_set = first.removeprefix("now uses ").removeprefix("no longer uses ").startswith("settings of ")
    what = "what it uses is set otherwise" if is_set else "its code changed"
    return f"{what}: {first}" + (f" (and {more} more)" if more > 0 else "")


def _other_arguments(invocation: Invocation, others: list[Entry]) -> str:
    about = call_text(invocation.memo.label, invocation.arguments)
    alike = next((each for each in others if each.about == about), None)
    if alike is not None:
        if invocation.call.inputs:
            return "the content of its input files is new"
        libraries = _brought_by_arguments(invocation)
        return f"its arguments look the same as before; what they hold{libraries} is another"
    nearest = max(others, key=lambda each: (_common(each.about, about), each.used))
    return f"these arguments are new; the nearest known call is {nearest.about}"


def _brought_by_arguments(invocation: Invocation) -> str:
    """Libraries whose settings count because arguments bring them along, for people."""
    walk = invocation.call.walk
    touched = walk.touched - (set() if walk.before is None else walk.before.touched)
    names = sorted(each for each in touched if not each.startswith(STANDARD))
    return f", or what is set in {' or '.join(names)}," if names else ""


def _common(one: str, other: str) -> int:
    """How many of their parts two calls share."""
    return len(set(one.rstrip(")").split(", ")) & set(other.rstrip(")").split(", ")))
