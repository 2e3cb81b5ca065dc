"""Whether a call shows in which order a set gives its texts, which depends on the hash seed of the process.

In: a call as the analysis sees it. Out: yes or no; yes only for sets that are known to hold texts. What becomes of a
loop over a set is not looked at: most loops do not care about the order.
"""

from __future__ import annotations

from typing import Final

from nectar.keys.bytecode.operation import Operation
from nectar.keys.purity.facts import ATTRIBUTE, CONSTANT, OBJECT, Fact
from nectar.keys.purity.uses import Uses

KEEPS_ORDER: Final = {id(each): each for each in (list, tuple, enumerate)}
_FORGETS_ORDER: Final = {id(each): each for each in (sorted, set, frozenset, len, min, max, any, all)}


def shows_order(call: Operation, callee: Fact, uses: Uses) -> bool:
    """Whether a call puts a set of texts in order, and something other than sorting is done with that."""
    if callee.kind == OBJECT and id(callee.root) in KEEPS_ORDER:
        joins = False
    elif callee.kind == ATTRIBUTE and callee.name == "join":
        joins = True
    else:
        return False
    if len(call.operands) != 2 or not _holds_texts(call.operands[1], uses):
        return False
    return joins or not _order_is_forgotten(call.result, uses)


def _holds_texts(value: int, uses: Uses) -> bool:
    """Whether a value is a set with at least two members, of which some are texts."""
    fact = uses.facts.of(value)
    if fact.kind in (OBJECT, CONSTANT):
        return type(fact.root) in (set, frozenset) and _are_texts(fact.root)
    made = uses.facts.maker(value)
    if made is None or made.name != "BUILD_SET":
        return False
    members: list[object] = [uses.facts.of(operand).root for operand in made.operands]
    for use, at in uses.of(value):
        added = uses.facts.of(use.operands[1]).root if use.name == "SET_UPDATE" and at == 0 else None
        members += added if isinstance(added, frozenset) else ()
    return _are_texts(members)


def _are_texts(members: object) -> bool:
    return len(members) > 1 and any(type(each) in (str, bytes) for each in members)  # type: ignore[arg-type, attr-defined]


def _order_is_forgotten(value: int, uses: Uses) -> bool:
    found = uses.of(value)
    if any(use.name == "LOAD_ATTR" and use.arg == "sort" for use, _ in found):
        return True
    return all(
        use.name == "CONTAINS_OP"
        or (use.name == "CALL" and at > 0 and id(uses.facts.of(use.operands[0]).root) in _FORGETS_ORDER)
        for use, at in found
    )
