"""Columns that a query makes: which name each gets, and of which columns it is made.

In: a text that is a query. Out: Columns, or None where the parser does not understand it. Nothing is resolved: a name
stands for every column of that name, wherever in the text it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nectar.dialects.spark.sql.queries import parsed, query_text


@dataclass(frozen=True, slots=True)
class Columns:
    """What a query makes. made: names, each with the columns it is made of.

    joined: of which columns each text is made that `||` puts together. nameless: a column is made of no other, and
    called what the engine calls it. renamed: columns get names by their positions.
    """

    made: tuple[tuple[str, frozenset[str]], ...]
    joined: tuple[frozenset[str], ...]
    nameless: bool
    renamed: bool


@lru_cache(maxsize=256)
def columns_in(text: str) -> Columns | None:
    """The columns that a query makes; None if it is not understood."""
    if query_text(text).refusals:  # some would end the parser, and the process with it
        return None
    found = parsed(text)
    if isinstance(found, str):
        return None
    trees, nodes = found
    every = [node for tree in trees for node in tree.walk()]
    made = [
        (node.alias.lower(), columns)
        for node in every
        if isinstance(node, nodes.Alias)
        and not _is_no_text(node.this, nodes)
        and (columns := _columns_of(node.this, nodes)) is not None
    ]
    joined = (_columns_of(node, nodes) for node in every if isinstance(node, nodes.DPipe))
    selected = [each for node in every if isinstance(node, nodes.Select) for each in node.expressions]
    return Columns(
        tuple(made), tuple(each for each in joined if each is not None),
        any(_is_nameless(each, nodes) for each in selected),
        any(isinstance(node, (nodes.TableAlias, nodes.Pivot)) and node.args.get("columns") for node in every),
    )  # fmt: skip


def _columns_of(node: Any, nodes: Any) -> frozenset[str] | None:
    """The columns that an expression is made of, in small letters; None if it is made of all there are."""
    if any(isinstance(each, nodes.Star) and not isinstance(each.parent, nodes.Count) for each in node.walk()):
        return None
    variables = {str(each.name).lower() for every in node.find_all(nodes.Lambda) for each in every.expressions}
    return frozenset(str(each.name).lower() for each in node.find_all(nodes.Column)) - variables


def _is_nameless(node: Any, nodes: Any) -> bool:
    """Whether a column has no name of its own, is made of no other, and may be a text."""
    if isinstance(node, (nodes.Alias, nodes.Aliases, nodes.Column, nodes.Star)) or _is_no_text(node, nodes):
        return False
    return _columns_of(node, nodes) == frozenset()


def _is_no_text(node: Any, nodes: Any) -> bool:
    inner = node.this if isinstance(node, nodes.Neg) else node
    is_number = isinstance(inner, nodes.Literal) and not inner.is_string
    return is_number or isinstance(inner, (nodes.Null, nodes.Boolean, nodes.Count))
