"""The benchmark of functions of groups works; how fast it is, is not asked here."""

from benchmarks import incremental_map_groups


def test_its_figures_are_of_the_groups_asked_for():
    found = incremental_map_groups.figures(groups=1000)
    assert found["groups"] == 1000
    assert all(found[name] > 0 for name in ("increment_seconds", "recomputation_seconds", "times_faster"))
