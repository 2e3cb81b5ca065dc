"""What the catalog decides, without anything that could fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.making import entry, key

from nectar.catalog import state
from nectar.catalog.policies import POLICIES, CostBenefit
from nectar.catalog.state import Accept, Budget, Candidate, Decline, Granted, Lapsed, Need, Present, Taken
from nectar.model.entry import Lease, Reservation, Usage

NOW = 1000.0
MINE = Reservation(key(1), "mine", "me", NOW + 10)


def candidate(number=0, **changes):
    given = {
        "key": key(number), "size": 100, "files": 2, "seconds": 1.0, "hits": 1, "created": 0.0, "used": 0.0,
        "protected": 0.0, "pinned": False, "rebuildable": True,
    }  # fmt: skip
    return Candidate(**{**given, **changes})


def chosen(candidates, wanted, policy=POLICIES["cost-benefit"]):
    keys = {each.key: number for number, each in enumerate(candidates)}
    return [keys[victim.key] for victim in state.choose(candidates, wanted, policy, NOW)]


# reservations


def test_whoever_asks_first_computes():
    assert state.reserve(MINE, None, None, NOW) == Granted(MINE)


def test_whoever_asks_second_waits_until_the_time_is_up():
    other = Reservation(key(1), "other", "you", NOW + 99)
    assert state.reserve(other, None, MINE, NOW) == Taken(MINE)
    assert state.reserve(other, None, MINE, NOW + 10) == Granted(other)


def test_what_is_there_is_not_computed():
    assert state.reserve(MINE, entry(1), MINE, NOW) == Present(entry(1))


# new entries


def test_a_new_entry_is_spared_for_a_while():
    decision = state.add(entry(1), None, True, 60.0, NOW)
    assert isinstance(decision, Accept)
    assert (decision.entry.created, decision.entry.used, decision.entry.protected) == (0.0, NOW, NOW + 60)


def test_the_first_of_two_stays():
    assert state.add(entry(1, size=2), entry(1), True, 60.0, NOW) == Decline(entry(1))
    assert state.add(entry(1, size=2), entry(1), False, 60.0, NOW) == Decline(entry(1))


def test_without_its_lease_nothing_is_added():
    assert state.add(entry(1), None, False, 60.0, NOW) == Lapsed()


# deletion


def test_pins_and_leases_that_hold_keep_an_entry():
    held = Lease("t", entry(1).location, "somebody", NOW + 1)
    assert state.may_evict(entry(1), [], NOW) is None
    assert state.may_evict(entry(1, pinned=True), [], NOW) == "pinned"
    assert "somebody" in state.may_evict(entry(1), [held], NOW)
    assert state.may_evict(entry(1), [held], NOW + 1) is None, "its time is over"


def test_what_is_swept_belongs_to_nobody_and_is_old():
    held = Lease("t", "aa/1", "somebody", NOW + 1)
    assert state.may_sweep(False, [], NOW - 10, 10, NOW)
    assert not state.may_sweep(False, [], NOW - 9, 10, NOW)
    assert not state.may_sweep(True, [], 0, 10, NOW)
    assert not state.may_sweep(False, [held], 0, 10, NOW)
    assert state.may_sweep(False, [held], 0, 10, NOW + 1)


# what is needed


def test_within_the_budget_nothing_is_needed():
    assert not state.need(Budget(size=1000, files=10, reserve=5), Usage(size=1000, files=10), 5, NOW)
    assert not state.need(Budget(), Usage(size=10**15, files=10**9), 0, NOW)


def test_deletion_goes_down_to_a_target():
    wanted = state.need(Budget(size=1000, files=100, target=0.9), Usage(size=1001, files=101), None, NOW)
    assert (wanted.size, wanted.files) == (101, 11)
    assert wanted.pressing


def test_pending_doomed_and_coming_bytes_count():
    usage = Usage(size=500, pending=200, doomed=100)
    assert not state.need(Budget(size=1000), usage, None, NOW, coming=200)
    assert state.need(Budget(size=1000), usage, None, NOW, coming=201).size == 101


def test_the_reserve_of_the_disk_is_kept():
    assert state.need(Budget(reserve=1000), Usage(), 900, NOW).size == 100
    assert state.need(Budget(reserve=1000), Usage(), 1100, NOW, coming=150).size == 50
    assert not state.need(Budget(reserve=1000), Usage(), None, NOW), "where there is no telling"
    assert state.need(Budget(size=10, reserve=1000), Usage(size=20), 900, NOW).size == 100, "the larger of both"


def test_age_alone_is_not_pressing():
    wanted = state.need(Budget(age=100.0), Usage(), None, NOW)
    assert wanted
    assert not wanted.pressing
    assert wanted.unused_since == NOW - 100


# choice of victims


def test_the_largest_ratio_goes_first():
    large, idle, used, costly = (
        candidate(0, size=400), candidate(1, used=-NOW), candidate(2, hits=10), candidate(3, seconds=10.0),
    )  # fmt: skip
    assert chosen([costly, used, idle, large], Need(size=10**9))[:2] == [3, 2]
    assert set(chosen([costly, used, idle, large], Need(size=10**9))[2:]) == {0, 1}


def test_only_as_many_as_are_needed():
    candidates = [candidate(number, size=100 + number) for number in range(10)]
    assert chosen(candidates, Need(size=109)) == [9]
    assert chosen(candidates, Need(size=110)) == [9, 8]
    assert chosen(candidates, Need(files=5)) == [9, 8, 7]
    assert chosen(candidates, Need()) == []


def test_where_only_files_are_wanted_what_has_none_stays():
    assert chosen([candidate(0, size=10**9, files=0), candidate(1), candidate(2)], Need(files=2)) == [1]
    assert chosen([candidate(0, size=10**9, files=0), candidate(1)], Need(size=1, files=2)) == [0, 1]


def test_pinned_entries_never_go():
    assert chosen([candidate(0, pinned=True), candidate(1)], Need(size=10**9, files=10**9)) == [1]
    assert chosen([candidate(0, pinned=True, used=-NOW)], Need(unused_since=NOW)) == []


def test_new_entries_are_spared_and_what_cannot_be_rebuilt_goes_last():
    ordinary, new, precious = (
        candidate(0, size=1), candidate(1, size=10**6, protected=NOW + 1), candidate(2, size=10**9, rebuildable=False),
    )  # fmt: skip
    assert chosen([precious, new, ordinary], Need(size=1)) == [2]
    assert chosen([precious, new, ordinary], Need(size=2)) == [2, 1]
    assert chosen([precious, new, ordinary], Need(size=2 * 10**6)) == [2, 1, 0]


def test_every_victim_has_a_reason():
    candidates = [
        candidate(0), candidate(1, protected=NOW + 1), candidate(2, rebuildable=False), candidate(3, used=-NOW),
    ]  # fmt: skip
    reasons = [victim.reason for victim in state.choose(candidates, Need(10**9, 0, -1.0), CostBenefit(), NOW)]
    assert len(set(reasons)) == 4


def test_too_old_goes_whatever_the_budget_says():
    old, young, precious = candidate(0, used=10.0), candidate(1, used=20.0), candidate(2, used=10.0, rebuildable=False)
    new = candidate(3, used=10.0, protected=NOW + 1)
    assert chosen([old, young, precious, new], Need(unused_since=15.0)) == [0]


def test_what_was_too_old_counts_for_what_is_needed():
    assert chosen([candidate(0, used=1.0), candidate(1, used=20.0)], Need(size=100, unused_since=15.0)) == [0]


@given(
    st.lists(
        st.builds(
            candidate, st.integers(0, 10**6), size=st.integers(0, 10**6), files=st.integers(0, 5),
            seconds=st.floats(0, 10**6), hits=st.integers(0, 100), used=st.floats(0, 2 * NOW),
            protected=st.floats(0, 2 * NOW), pinned=st.booleans(), rebuildable=st.booleans(),
        ),
        unique_by=lambda each: each.key,
    ),
    st.integers(0, 10**7), st.integers(0, 50), st.sampled_from(sorted(POLICIES)),
)  # fmt: skip
def test_enough_goes_and_no_more(candidates, size, files, policy):
    victims = state.choose(candidates, Need(size, files), POLICIES[policy], NOW)
    by_key = {each.key: each for each in candidates}
    gone = [by_key[victim.key] for victim in victims]
    assert len({each.key for each in gone}) == len(gone)
    assert not any(each.pinned for each in gone)
    left = [each for each in candidates if each not in gone and not each.pinned]
    enough = sum(each.size for each in gone) >= size and sum(each.files for each in gone) >= files
    assert enough or not [each for each in left if size or each.files]
    if gone:
        assert sum(each.size for each in gone[:-1]) < size or sum(each.files for each in gone[:-1]) < files
    if any(not each.rebuildable for each in gone):
        assert all(not each.rebuildable for each in left if size or each.files)


@pytest.mark.parametrize("own", [0.0, 2.5])
def test_machine_time_is_that_of_everything_reused_too(own):
    first = entry(1, seconds=100.0)
    second = entry(2, seconds=state.cumulative(1.0, [first]))
    assert second.seconds == 101.0
    assert state.cumulative(own, [first, second]) == own + 201.0
    assert state.cumulative(own, []) == own
