"""Which parts may be answered from an earlier run while the rest is computed."""

from __future__ import annotations

from msgspec.structs import replace

from nectar.program.tree import POSITIONAL, ROW_WISE, Node, Order, Program
from nectar.rewrite.consistency import answerable, reusable

SCRAMBLED = Order(scrambles=True, carries=False)
INEXACT = Order(carries=False, arbitrary=True)


def _program(*nodes: tuple[Order, tuple[int, ...]], refused: int = -1, acts: int = -1) -> Program:
    return Program(
        tuple(
            Node(
                str(at),
                inputs,
                bytes([at]),
                (bytes([at]),),
                order,
                "no" if at in (refused, acts) else "",
                acts=at == acts,
            )
            for at, (order, inputs) in enumerate(nodes)
        )
    )


def test_determined_parts_may_be_reused_one_by_one() -> None:
    program = _program((ROW_WISE, ()), (ROW_WISE, (0,)), (POSITIONAL, (0,)), (ROW_WISE, (1, 2)))
    assert reusable(program) == [True] * 4


def test_two_slices_of_one_undetermined_order_come_from_one_run() -> None:
    program = _program((ROW_WISE, ()), (SCRAMBLED, (0,)), (POSITIONAL, (1,)), (POSITIONAL, (1,)), (ROW_WISE, (2, 3)))
    assert reusable(program) == [True, True, False, False, True]


def test_what_all_uses_lead_through_may_be_reused() -> None:
    program = _program(
        (ROW_WISE, ()), (SCRAMBLED, (0,)), (POSITIONAL, (1,)), (POSITIONAL, (1,)), (ROW_WISE, (2, 3)), (ROW_WISE, (4,)),
        (ROW_WISE, (5, 0)),
    )  # fmt: skip
    assert reusable(program) == [True, True, False, False, True, True, True]


def test_an_undetermined_order_that_nobody_looks_at_does_no_harm() -> None:
    program = _program((ROW_WISE, ()), (SCRAMBLED, (0,)), (ROW_WISE, (1,)), (ROW_WISE, (1,)), (SCRAMBLED, (2, 3)))
    assert reusable(program) == [True] * 5


def test_inexact_sums_that_meet_again_come_from_one_run() -> None:
    """Rows joined with the maximum of their own sums: from two runs they may differ in the last bit, and never meet."""
    program = _program((ROW_WISE, ()), (INEXACT, (0,)), (ROW_WISE, (1,)), (ROW_WISE, (1, 2)))
    assert reusable(program) == [True, True, False, True]


def test_content_that_depends_on_an_undetermined_order_stays_so() -> None:
    program = _program(
        (ROW_WISE, ()), (SCRAMBLED, (0,)), (POSITIONAL, (1,)), (Order(carries=False), (2,)), (ROW_WISE, (3,)),
        (ROW_WISE, (3, 4)),
    )  # fmt: skip
    assert reusable(program) == [True, True, True, True, False, True]


def test_one_node_twice_in_one_step_is_used_in_two_places() -> None:
    program = _program((ROW_WISE, ()), (SCRAMBLED, (0,)), (POSITIONAL, (1, 1)), (ROW_WISE, (2,)))
    assert reusable(program) == [True] * 4


def test_what_acts_on_this_process_runs_as_it_was_given() -> None:
    program = _program((ROW_WISE, ()), (ROW_WISE, (0,)), (ROW_WISE, (1,)), acts=2)
    assert reusable(program) == [False] * 3


def test_below_what_is_refused_parts_may_be_reused() -> None:
    program = _program((ROW_WISE, ()), (ROW_WISE, (0,)), (ROW_WISE, (1,)), refused=2)
    assert reusable(program) == [True, True, False]


def _renamed(program: Program) -> Program:
    """The same with another last step."""
    return Program((*program.nodes[:-1], replace(program.nodes[-1], keys=(b"another",))))


def test_programs_that_run_together_share_one_run_of_what_is_undetermined() -> None:
    cut = ((ROW_WISE, ()), (SCRAMBLED, (0,)), (POSITIONAL, (1,)))
    first, second = _program(*cut), _program(*cut, (ROW_WISE, (2,)))
    assert answerable([first, second]) == [True, False]
    assert answerable([first, _renamed(first)]) == [False, False]
    assert answerable([first, _program((ROW_WISE, ()))], beside_given=True) == [False, True]
    assert answerable([first, first]) == [True, True]
    assert answerable([first]) == [True]


def test_programs_that_share_what_is_determined_are_answered_one_by_one() -> None:
    first, second = _program((ROW_WISE, ()), (POSITIONAL, (0,))), _program((ROW_WISE, ()), (ROW_WISE, (0,)))
    groups, rows = (
        _program((ROW_WISE, ()), (SCRAMBLED, (0,))),
        _program((ROW_WISE, ()), (SCRAMBLED, (0,)), (ROW_WISE, (1,))),
    )
    assert answerable([first, second]) == [True, True]
    assert answerable([groups, rows]) == [True, True]
