"""Which relations of a plan may be taken from the store, or computed by themselves, while the rest is computed.

In: the steps of a plan. Out: for each step why a copy of its rows could not take its place; empty if it could. Law:
over a copy everything above gives what it gives over the relation itself. A copy has its columns (names, types,
nullability, metadata) and its plan id; it has no order of rows, no qualifiers, no hints, none of the relations that it
was made from, and it is cut in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

from nectar.dialects.spark.kinds import RELATIONS, SHARING
from nectar.dialects.spark.relations import Step
from nectar.program.tree import ROW_WISE, Order


def why_not_apart(steps: Sequence[Step], orders: Sequence[Order] | None = None) -> list[str]:
    """For each step, why it cannot be replaced by a copy of its rows; empty if it can. The root is never replaced.

    orders: of each step; unless they are given, whatever has a name, or is a text, is taken for sorted.
    """
    above = _users(steps)
    if orders is None:
        orders = [RELATIONS.get("sql" if _is_by_name(step) else step.kind, ROW_WISE) for step in steps]
    reasons = [_of_itself(step, is_ordered) for step, is_ordered in zip(steps, _ordered(steps, orders), strict=True)]
    _mark_referred(steps, above, reasons)
    qualified = _qualified(steps)
    outer: list[str] = [""] * len(steps)  # what is wrong with everything below a step
    dotted = [False] * len(steps)  # whether a step above may name columns by a qualifier
    for number in reversed(range(len(steps) - 1)):
        user = above[number]
        outer[number] = outer[user] or _to_what_is_below(steps[user])
        dotted[number] = dotted[user] or steps[user].dotted
        own = "columns may be named by a qualifier above it" if dotted[number] and qualified[number] else ""
        reasons[number] = reasons[number] or outer[number] or own
    return reasons


def _users(steps: Sequence[Step]) -> list[int]:
    """For each step the one that uses it; -1 for the root."""
    users = [-1] * len(steps)
    for number, step in enumerate(steps):
        for below in step.inputs:
            users[below] = number
    return users


def _ordered(steps: Sequence[Step], orders: Sequence[Order]) -> list[bool]:
    """For each step whether its rows have an order that somebody could rely on."""
    found: list[bool] = []
    for step, order in zip(steps, orders, strict=True):
        from_below = not step.inputs or not order.carries or any(found[below] for below in step.inputs)
        found.append(not order.scrambles and from_below)
    return found


def _qualified(steps: Sequence[Step]) -> list[bool]:
    """For each step whether its columns may have qualifiers: names of tables, or aliases."""
    found: list[bool] = []
    for step in steps:
        found.append(step.kind == "subquery_alias" or _is_by_name(step) or any(found[below] for below in step.inputs))
    return found


def _is_by_name(step: Step) -> bool:
    """Whether a relation is written down elsewhere, by somebody who may have sorted it and given its columns names."""
    return step.sql or bool(step.names)


def _of_itself(step: Step, is_ordered: bool) -> str:
    if is_ordered:
        return "its rows have an order, and a copy of it has none"
    if step.kind == "hint":
        return "it is a hint for what is above it"
    return ""


def _to_what_is_below(step: Step) -> str:
    """Why nothing below a step can be replaced."""
    if step.kind in SHARING:
        return "what is above it may use parts of it by name"
    if step.layout:
        reason = f": {step.refusals[0]}" if step.refusals else ""
        return f"what is above it may see how its rows are cut{reason}"
    if step.unknown:
        return f"what is above it may see how its rows are cut: {min(step.unknown)} is no function of the engine"
    return ""


def _mark_referred(steps: Sequence[Step], above: Sequence[int], reasons: list[str]) -> None:
    """Everything that a reference leads into, or out of, stays as it is."""
    for number, step in enumerate(steps):
        for named in step.references:
            for start, end in ((above[named], number), (number, named)):
                _mark(steps, above, start, end, reasons)


def _mark(steps: Sequence[Step], above: Sequence[int], start: int, reached: int, reasons: list[str]) -> None:
    """Steps from one upwards, up to the first that also contains the other."""
    at = start
    while at >= 0 and not at - steps[at].size < reached <= at:
        reasons[at] = reasons[at] or "a column of a relation within it is named outside of it, or the other way round"
        at = above[at]
