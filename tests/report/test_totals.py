"""What all runs of a process came to."""

from nectar.report.run import Part
from nectar.report.totals import RunTotals


def test_nothing_ran():
    assert str(RunTotals()) == "nectar: nothing to reuse: no query and no memoised function ran"


def test_what_was_reused_counts_with_the_time_it_saved():
    totals = RunTotals()
    totals.count(Part("a", "reused", seconds=1.0, saved=253.0))
    totals.count(Part("b", "reused", seconds=3.0, saved=1.0))
    totals.count(Part("c", "computed", seconds=9.0))
    totals.count_kept(5000)
    assert str(totals) == "nectar: 2 of 3 parts reused, 4 min 12 s saved"


def test_what_was_kept_is_told_when_nothing_was_reused():
    totals = RunTotals()
    totals.count(Part("a"))
    assert str(totals) == "nectar: 0 of 1 part reused, nothing kept"
    totals.count_kept(5000)
    assert str(totals) == "nectar: 0 of 1 part reused, 1 kept for next time (5 kB)"


def test_totals_above_count_everything():
    above = RunTotals()
    for _ in range(2):
        session = RunTotals(above)
        session.count(Part("a", "reused", saved=1.0))
        session.count_kept(10)
        assert (session.parts, session.kept) == (1, 1)
    assert (above.parts, above.reused, above.saved, above.kept, above.kept_bytes) == (2, 2, 2.0, 2, 20)
