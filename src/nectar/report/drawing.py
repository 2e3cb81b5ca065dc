"""A lineage as a drawing: in the language of Graphviz, and as an SVG by a simple layout of our own.

The layout needs no other program: a result stands one column to the right of the last one it was made from, files and
functions stand to the left of whoever used them first. Nodes are not moved to avoid crossings; `dot` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from nectar.model.lineage import Lineage

MOST: Final = 400  # nodes; a drawing of more is no drawing
_WIDTH, _HEIGHT = 210, 34
_ACROSS, _DOWN = 260, 50
_MARGIN: Final = 20
_FILL: Final = {"result": "#e8f0fe", "asked": "#fde293", "file": "#e6f4ea", "function": "#fce8e6"}
_LABEL: Final = 30


@dataclass(frozen=True, slots=True)
class Node:
    """What is drawn. kind: a result, one that was asked for, a file, a function. title: the whole text."""

    name: str
    kind: str
    label: str
    title: str


def nodes_of(graph: Lineage) -> dict[str, Node]:
    """Everything that is drawn, the results that were asked for first; the rest is left out once there are too many."""
    names: dict[int, list[str]] = {}
    for name, number in graph.names:
        names.setdefault(number, []).append(f"{name.name}@{name.version}")
    asked = set(graph.start)
    order = [*graph.start, *(number for number in graph.results if number not in asked)]
    found = [
        Node(f"r{number}", "asked" if number in asked else "result",
             ", ".join(names.get(number, ())) or graph.results[number].about or graph.results[number].key.hex()[:12],
             f"{graph.results[number].about} {graph.results[number].key.hex()}")
        for number in order
    ]  # fmt: skip
    found += [Node(f"f{at}", "file", file.url.rpartition("/")[2], file.url) for at, file in graph.files.items()]
    found += [
        Node(f"u{at}", "function", each.name, f"{each.name} {each.place}") for at, each in graph.functions.items()
    ]
    return {node.name: node for node in found[:MOST]}


def edges_of(graph: Lineage, nodes: dict[str, Node]) -> list[tuple[str, str]]:
    """From what was used to what was made with it."""
    pairs = [(f"r{source}", f"r{result}") for result, source in graph.made_from]
    pairs += [(f"f{file}", f"r{result}") for result, stream in graph.reads for file in graph.streams.get(stream, ())]
    pairs += [(f"u{each}", f"r{result}") for result, kit in graph.uses for each in graph.kits.get(kit, ())]
    return [pair for pair in pairs if pair[0] in nodes and pair[1] in nodes]


def dot_of(graph: Lineage) -> str:
    """The graph in the language of Graphviz."""
    nodes = nodes_of(graph)
    lines = ["digraph lineage {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    lines += [
        f'  {node.name} [label={_quoted(node.label)}, tooltip={_quoted(node.title)}, fillcolor="{_FILL[node.kind]}"];'
        for node in nodes.values()
    ]
    lines += [f"  {source} -> {result};" for source, result in edges_of(graph, nodes)]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


# a layout


def columns_of(nodes: dict[str, Node], edges: list[tuple[str, str]]) -> dict[str, int]:
    """The column of each node: right of everything it was made from; sources stand next to their first use."""
    above: dict[str, list[str]] = {name: [] for name in nodes}
    below: dict[str, list[str]] = {name: [] for name in nodes}
    for source, result in edges:
        above[result].append(source)
        below[source].append(result)
    waiting = {name: len(sources) for name, sources in above.items()}
    ready = [name for name, count in waiting.items() if not count]
    columns = dict.fromkeys(nodes, 0)
    while ready:
        name = ready.pop()
        for user in below[name]:
            columns[user] = max(columns[user], columns[name] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    for name, node in nodes.items():
        if node.kind in ("file", "function") and below[name]:
            columns[name] = min(columns[user] for user in below[name]) - 1
    return columns


def svg_of(graph: Lineage) -> str:
    """The graph as an SVG."""
    nodes = nodes_of(graph)
    edges = edges_of(graph, nodes)
    columns = columns_of(nodes, edges)
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for name in nodes:
        column = columns[name]
        places[name] = (_MARGIN + column * _ACROSS, _MARGIN + rows.get(column, 0) * _DOWN)
        rows[column] = rows.get(column, 0) + 1
    width = 2 * _MARGIN + max((x for x, _ in places.values()), default=0) + _WIDTH
    height = 2 * _MARGIN + max((y for _, y in places.values()), default=0) + _HEIGHT
    body = [*_lines(edges, places), *_boxes(nodes, places)]
    size = f'width="{width}" height="{height}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, *body, "</svg>"])


def _lines(edges: list[tuple[str, str]], places: dict[str, tuple[int, int]]) -> Iterator[str]:
    for source, result in edges:
        (x, y), (to_x, to_y) = places[source], places[result]
        x, y, to_y = x + _WIDTH, y + _HEIGHT // 2, to_y + _HEIGHT // 2
        middle = (x + to_x) // 2
        yield f'<path d="M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}" fill="none" stroke="#5f6368"/>'


def _boxes(nodes: dict[str, Node], places: dict[str, tuple[int, int]]) -> Iterator[str]:
    for name, node in nodes.items():
        x, y = places[name]
        label = node.label if len(node.label) <= _LABEL else f"{node.label[: _LABEL - 1]}…"
        yield (
            f'<g><title>{escape(node.title)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
            f'fill="{_FILL[node.kind]}" stroke="#5f6368"/><text x="{x + 8}" y="{y + 21}">{escape(label)}</text></g>'
        )
