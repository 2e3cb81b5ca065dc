"""What all runs of a process came to: every query and every call once, by what became of it."""

import asyncio

import pytest

from nectar.report.run import Part
from nectar.report.totals import RunTotals


def call(name, outcome="computed", **more):
    return Part(name, outcome, kind="call", **more)


def test_nothing_ran():
    assert str(RunTotals()) == "nectar: nothing to reuse: no query and no memoised function ran"


def test_what_was_reused_counts_with_the_time_it_saved():
    totals = RunTotals()
    totals.count(Part("a", "reused", seconds=1.0, saved=253.0))
    totals.count(Part("b", "reused", seconds=3.0, saved=1.0))
    totals.count(Part("c", "computed", seconds=9.0))
    totals.count_kept(5000)
    assert str(totals) == "nectar: 2 of 3 queries from cache, 4 min 12 s saved"


def test_what_was_kept_is_told_when_nothing_was_reused():
    totals = RunTotals()
    totals.count(Part("a"))
    assert str(totals) == "nectar: 0 of 1 query from cache, nothing kept"
    totals.count_kept(5000)
    assert str(totals) == "nectar: 0 of 1 query from cache, 1 kept for next time (5 kB)"


def test_queries_calls_and_steps_are_told_apart():
    totals = RunTotals()
    totals.count(Part("a"))
    totals.count(Part("b", "reused", saved=1.0, kind="step"))
    totals.count(call("f", "reused", saved=2.0))
    totals.leave_alone(True, 2)
    totals.leave_alone(True, 20_000, "call")
    totals.leave_alone(False, 1, "call")
    assert str(totals) == (
        "nectar: 0 of 1 query and 1 of 1 call and 1 step from cache, 3 s saved; 2 queries and 20,000 calls left alone, "
        "quicker than looking for them; 1 call not looked at, to keep within the setting overhead"
    )
    assert (totals.looked_at, totals.cached, totals.alone, totals.waived) == (2, 1, 20_002, 1)


def test_calls_that_are_refused_or_fail_are_counted_and_their_functions_named():
    totals = RunTotals()
    for _ in range(3):
        totals.count(call("load", "uncacheable"))
    for name in "abbcccddddeeeee":
        totals.count(call(name, "failed"))
    assert str(totals) == (
        "nectar: 0 of 3 calls from cache, nothing kept; 3 calls of load cannot be kept; "
        "15 calls of e, d, c, 2 more failed"
    )


def test_queries_that_fail_are_told_alike_whether_they_were_looked_at():
    looked_at, alone = RunTotals(), RunTotals()
    looked_at.count(Part("select of scan", "failed"))
    alone.count_failed()
    assert str(looked_at) == str(alone) == "nectar: nothing to reuse: 1 query failed"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_was_stopped_has_not_failed(error):
    totals, part = RunTotals(), call("f")
    part.fail(error())
    totals.count(part)
    assert (part.outcome, totals.failed) == ("interrupted", 0)
    assert str(totals) == "nectar: nothing to reuse: 1 call interrupted"


def test_totals_above_count_everything():
    above = RunTotals()
    for _ in range(2):
        session = RunTotals(above)
        session.count(Part("a", "reused", saved=1.0))
        session.count_kept(10)
        session.count_failed()
        session.count_unkept("its result went into a file")
        session.leave_alone(True)
        assert (session.looked_at, session.kept, session.failed, session.alone) == (1, 1, 1, 1)
    assert (above.looked_at, above.cached, above.saved, above.kept, above.kept_bytes) == (2, 2, 2.0, 2, 20)
    assert (above.failed, above.alone, above.unkept) == (2, 2, {"its result went into a file": 2})
