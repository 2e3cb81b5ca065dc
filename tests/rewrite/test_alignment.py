"""Streams that are cut together: no value is in two parts, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from nectar.rewrite.alignment import cut_together

spans = st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair)))
streams = st.lists(st.lists(spans, min_size=1, max_size=8), min_size=1, max_size=3)


def parts(streams, cuts):
    """For each part the ranges in it."""
    count = len(cuts[0]) - 1
    return [
        [span for stream, cut in zip(streams, cuts, strict=True) for span in stream[cut[at] : cut[at + 1]]]
        for at in range(count)
    ]


def test_streams_that_arrive_together():
    orders, lines = [(0, 9), (10, 19), (20, 29)], [(1, 9), (10, 18), (22, 22)]
    assert cut_together([orders, lines]) == [(0, 1, 2, 3), (0, 1, 2, 3)]


def test_what_overlaps_stays_together():
    assert cut_together([[(0, 12), (10, 19), (20, 29)], [(1, 9), (10, 18), (22, 22)]]) == [(0, 2, 3), (0, 2, 3)]


def test_a_value_on_the_border_is_in_both():
    assert cut_together([[(0, 10), (10, 19)]]) == [(0, 2)]


def test_parts_have_something_of_each_stream():
    assert cut_together([[(0, 1), (2, 3), (4, 5)], [(0, 1), (4, 5)]]) == [(0, 1, 3), (0, 1, 2)]
    assert cut_together([[(0, 1)], [(0, 1), (4, 5)]]) == [(0, 1), (0, 2)]


def test_streams_in_another_order_are_one():
    assert cut_together([[(0, 1), (4, 5)], [(4, 5), (0, 1)]]) == [(0, 2), (0, 2)]


@given(streams)
def test_no_value_is_in_two_parts(streams):
    cuts = cut_together(streams)
    for stream, cut in zip(streams, cuts, strict=True):
        assert cut[0] == 0
        assert cut[-1] == len(stream)
        assert all(before < after for before, after in zip(cut, cut[1:], strict=False))
    hulls = [(min(low for low, _ in part), max(high for _, high in part)) for part in parts(streams, cuts)]
    values = [{value for low, high in part for value in range(low, high + 1)} for part in parts(streams, cuts)]
    assert len(hulls) == len(cuts[0]) - 1
    for at, mine in enumerate(values):
        assert all(mine.isdisjoint(other) for other in values[at + 1 :])
