"""What is chosen to go is what sorting everything would choose, whatever the policy."""

from hypothesis import given
from hypothesis import strategies as st

from nectar.catalog.policies import POLICIES
from nectar.catalog.state import Candidate, Need, choose
from nectar.model.entry import SUPERSEDED

NOW = 100.0
few = st.integers(0, 4)
candidate = st.builds(
    Candidate, key=st.binary(min_size=4, max_size=4), size=few, files=few, seconds=st.sampled_from([0.0, 1.0, 2.0]),
    hits=few, created=st.just(0.0), used=st.integers(0, 5).map(float),
    protected=st.sampled_from([0.0, 200.0, SUPERSEDED]), pinned=st.booleans(), rebuildable=st.booleans(),
)  # fmt: skip


def sorted_choice(candidates, wanted, policy):
    def place(each):
        old = each.rebuildable and each.used < wanted.unused_since and each.protected <= NOW
        rebuilt = 0 if each.protected == SUPERSEDED else 2 if each.protected > NOW else 1
        tier = -1 if old else rebuilt if each.rebuildable else 3
        return tier, 0.0 if old else -policy.expendability(each, NOW)

    def helps(each):  # where only files are wanted, what lies in the index frees nothing
        return wanted.size > 0 or each.files > 0 or place(each)[0] < 0

    chosen, size, files = [], 0, 0
    for each in sorted((each for each in candidates if not each.pinned and helps(each)), key=place):
        if place(each)[0] >= 0 and size >= wanted.size and files >= wanted.files:
            break
        chosen.append(each.key)
        size, files = size + each.size, files + each.files
    return chosen


@given(
    st.lists(candidate, max_size=14, unique_by=lambda each: each.key),
    st.builds(
        Need, size=st.integers(0, 12), files=st.integers(0, 8), unused_since=st.sampled_from([float("-inf"), 3.0])
    ),
    st.sampled_from(list(POLICIES.values())),
)
def test_choice_is_that_of_a_sort(candidates, wanted, policy):
    assert [victim.key for victim in choose(candidates, wanted, policy, NOW)] == sorted_choice(
        candidates, wanted, policy
    )


def test_what_is_superseded_goes_before_what_any_policy_thinks_little_of():
    useless = Candidate(b"idle", 9, 1, 0.0, 0, 0.0, 0.0, 0.0, False, True)
    superseded = Candidate(b"superseded", 1, 1, 900.0, 50, 0.0, NOW, SUPERSEDED, False, True)
    for policy in POLICIES.values():
        victims = choose([useless, superseded], Need(size=1), policy, NOW)
        assert [(victim.key, victim.reason) for victim in victims] == [(b"superseded", "superseded by one of more")]
