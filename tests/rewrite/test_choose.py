"""What is taken from the store, and what is cut out to be kept."""

from __future__ import annotations

from typing import Any

import pytest

from nectar.program.tree import POSITIONAL, ROW_WISE, Node, Order, Program
from nectar.rewrite import choose as choosing
from nectar.rewrite.choose import choose, wanted

SCRAMBLED = Order(scrambles=True, carries=False)
ENTRY: Any = object()


def _node(at: int, inputs: tuple[int, ...], order: Order = ROW_WISE, breaker: bool = False) -> Node:
    return Node(str(at), inputs, bytes([at]), (bytes([at]),), order, breaker=breaker, is_input=not inputs)


CHAIN = Program((_node(0, ()), _node(1, (0,), SCRAMBLED, True), _node(2, (1,)), _node(3, (2,))))


def test_the_part_nearest_to_the_root_wins() -> None:
    found = choose(CHAIN, {1: ENTRY, 2: ENTRY}, {})
    assert (list(found.hits), found.computed, found.keep) == ([2], (3,), ())


def test_sources_are_not_looked_up() -> None:
    assert wanted(CHAIN) == [3, 2, 1]


@pytest.mark.parametrize(("times", "kept"), [(choosing.LOOKED_UP - 1, ()), (choosing.LOOKED_UP, (1,))])
def test_a_part_is_kept_once_it_was_asked_for_often(times: int, kept: tuple[int, ...]) -> None:
    assert choose(CHAIN, {}, {1: times, 2: 99, 3: 99}).keep == kept


def test_what_may_not_be_looked_up_is_not_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LOOKED_UP", 0)
    slices = [_node(2, (1,), POSITIONAL), _node(3, (2,), SCRAMBLED, True), _node(4, (1,), POSITIONAL)]
    program = Program((_node(0, ()), _node(1, (0,), SCRAMBLED, True), *slices, _node(5, (3, 4))))
    asked = wanted(program)
    assert asked == [5, 1]
    assert choose(program, {}, dict.fromkeys(asked, 5)).keep == (1,)


def test_one_hit_serves_several_uses() -> None:
    program = Program((_node(0, ()), _node(1, (0,)), _node(2, (1,)), _node(3, (1,)), _node(4, (2, 3))))
    found = choose(program, {1: ENTRY}, {})
    assert (list(found.hits), found.computed) == ([1], (2, 3, 4))
