"""Functions that numba compiles count by what they were when they were compiled."""

import pytest

import nectar

numba = pytest.importorskip("numba")
FACTOR = 2


def outcome():
    return nectar.last_run().parts[-1].outcome


@pytest.mark.filterwarnings("ignore::nectar.errors.NectarWarning")
def test_what_is_compiled_may_not_be_what_the_function_is_by_now(enabled, monkeypatch):
    @numba.njit
    def scaled(x):
        return x * FACTOR

    twice = nectar.memo(lambda x: scaled(x))
    assert twice(4) == 8
    assert outcome() == "computed"
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert twice(4) == 8  # as numba does
    assert outcome() == "uncacheable"
    scaled.recompile()
    assert twice(4) == 12
    monkeypatch.undo()


@pytest.mark.filterwarnings("ignore::nectar.errors.NectarWarning")
def test_a_function_that_was_compiled_before_is_computed_each_time(enabled):
    @numba.njit
    def plus(x):
        return x + FACTOR

    plus(1)
    added = nectar.memo(lambda x: plus(x))
    assert added(1) == 3
    assert outcome() == "uncacheable"


def test_a_function_that_reads_no_values_is_reused(enabled):
    @numba.njit
    def total(n):
        found = 0
        for each in range(n):
            found += each
        return found

    summed = nectar.memo(lambda n: total(n))
    for _ in range(2):
        assert summed(4) == 6
        enabled.settle()
    assert outcome() == "reused"


def test_fingerprints_of_two_equal_functions_are_the_same():
    def made(options):
        @numba.njit(**options)
        def count(n):
            return count(n - 1) + 1 if n > 0 else 0

        return count

    assert nectar.fingerprint(made({})) == nectar.fingerprint(made({}))
    assert nectar.fingerprint(made({})) != nectar.fingerprint(made({"fastmath": True}))
