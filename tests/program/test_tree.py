"""Programs: who uses whom."""

from __future__ import annotations

from nectar.program.tree import Node, Program


def _node(*inputs: int) -> Node:
    return Node("", inputs, b"", (b"best", b"other"))


def test_users_and_what_is_below() -> None:
    program = Program((_node(), _node(0), _node(0, 0), _node(1, 2)))
    assert program.users == ((1, 2, 2), (3,), (3,), ())
    assert program.root == 3
    assert sorted(program.below(2)) == [0, 2]
    assert sorted(program.below(3)) == [0, 1, 2, 3]


def test_results_are_kept_under_the_best_key() -> None:
    assert _node().key == b"best"
