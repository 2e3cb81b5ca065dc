"""Why two fingerprints differ, in words: the first real differences between two traces.

In: two traces. Out: an Explanation with one Difference for each place where they part, closest to the change:
"helper `clean` in etl.py:12: constant 3 became 4".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nectar.keys.trace import Node, Trace

_MOST: Final = 20
_TOP: Final = "top"  # the kind of a node for several roots
_IN_LIST: Final = re.compile(r"\[\d+\]")  # the place of an element says nothing that its text does not


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two traces part."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that differs between two functions or values, as far as fingerprints see it."""

    differences: tuple[Difference, ...]
    more: int = 0

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __str__(self) -> str:
        if not self.differences:
            return "no difference: both have the same fingerprint"
        lines = [str(difference) for difference in self.differences]
        return "\n".join([*lines, f"... and {self.more} more"] if self.more else lines)


def compare(old: Trace, new: Trace) -> Explanation:
    """What changed from one trace to the other."""
    if old.fingerprint == new.fingerprint:
        return Explanation(())
    roots = old.root, new.root
    if any(root.kind == _TOP for root in roots):  # beside the function stand settings that count
        one, other = (root if root.kind == _TOP else Node("", _TOP, "", b"", children=[root]) for root in roots)
    else:
        one, other = roots
    found = list(dict.fromkeys(_differences(one, other)))
    if not found:
        found = [Difference("", "names of parameters or keywords changed")]
    return Explanation(tuple(found[:_MOST]), max(0, len(found) - _MOST))


def _differences(old: Node, new: Node) -> Iterator[Difference]:
    pending = [(old, new, "", 0)]
    while pending:
        one, other, where, depth = pending.pop()
        if one.digest == other.digest:
            continue
        has_parts = bool(one.children or other.children) or one.kind == "function"
        if one.kind != other.kind or not has_parts:
            yield Difference(where, _became(one, other, where))
            continue
        inside = _where(one, other, depth) or where
        pairs, gone, added = _matched(one.children, other.children)
        changed = [(left, right) for left, right in pairs if left.digest != right.digest]
        if not changed and not gone and not added and one.content != other.content:
            yield Difference(inside, "what it does changed" if one.kind == "function" else f"{one.text} changed")
        for node in gone:
            yield Difference(inside, f"no longer uses {_named(node)}")
        for node in added:
            yield Difference(inside, f"now uses {_named(node)}")
        if one.kind == "function" and one.content != other.content and (gone or added or changed):
            constants = [(left, right) for left, right in changed if left.label != "constant"]
            if not gone and not added and not constants and changed:
                yield Difference(inside, "what it does changed")
        pending.extend((left, right, _inside(inside, left), depth + 1) for left, right in reversed(changed))


def _where(one: Node, other: Node, depth: int) -> str:
    if one.kind == "settings":
        return one.text
    if one.kind != "function":
        return ""
    name = one.text.removeprefix("function ").partition(" (")[0]
    return f"{'helper ' if depth else ''}`{name}` in {other.place or one.place}"


def _inside(where: str, node: Node) -> str:
    """Where a child stands: attributes and elements are told by the way that leads to them."""
    if node.kind in ("function", "again") or node.label in ("constant", "", "class", "settings"):
        return where
    return f"{where}, {node.label}" if where and node.children else where


def _became(one: Node, other: Node, where: str) -> str:
    label = one.label or "it"
    if label == "constant":
        return f"constant {one.text} became {other.text}"
    if one.text == other.text:
        return f"{label} is {one.text}, as before, and what it holds is another"
    if label == "settings" or (where.startswith("settings of ") and _IN_LIST.fullmatch(label)):
        return f"{one.text} became {other.text}"
    return f"{label} was {one.text}, is {other.text}"


def _named(node: Node) -> str:
    return node.text if node.label in ("", "constant", node.text) else f"{node.label} ({node.text})"


def _matched(old: list[Node], new: list[Node]) -> tuple[list[tuple[Node, Node]], list[Node], list[Node]]:
    """Children of both sides by label, in order; then what only one side has."""
    waiting: dict[str, list[Node]] = {}
    for node in new:
        waiting.setdefault(node.label, []).append(node)
    pairs, gone = [], []
    for node in old:
        candidates = waiting.get(node.label)
        if candidates:
            pairs.append((node, candidates.pop(0)))
        else:
            gone.append(node)
    return pairs, gone, [node for nodes in waiting.values() for node in nodes]
