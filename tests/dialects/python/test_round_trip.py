"""Results whose pickle does something, or gives back another value."""

import warnings

import pytest

import nectar

LOG = []


class Tells:
    def __init__(self, n):
        self.n = n

    def __setstate__(self, state):
        self.__dict__.update(state)
        LOG.append("set")


class Counts:
    made = 0

    def __init__(self, n):
        self.n = n
        Counts.made += 1

    def __reduce__(self):
        return Counts, (self.n,)


class Writes(dict):
    def __setitem__(self, key, value):
        LOG.append(key)
        super().__setitem__(key, value)


class Guarded:
    __slots__ = ("n",)

    def __init__(self, n):
        object.__setattr__(self, "n", n)

    def __setattr__(self, name, value):
        LOG.append(name)
        object.__setattr__(self, name, value)


class Quiet:
    def __init__(self, n):
        self.n, self.squares = n, [n * n]

    def __getstate__(self):
        return {"n": self.n}

    def __setstate__(self, state):
        self.n = state["n"]
        self.squares = [self.n * self.n]

    def __eq__(self, other):
        return vars(self) == vars(other)


def called(make):
    """What three calls of a memoised function give, and whether the result is kept."""
    memo = nectar.memo(make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [memo(3) for _ in range(3)]
    nectar.session.current().settle()
    return found, memo.check_call_in_cache(3)


@pytest.mark.parametrize("kind", [Tells, Counts, Guarded])
def test_what_acts_when_it_is_unpickled_is_not_kept(kind, enabled):
    def made(n):
        found = kind.__new__(kind)
        object.__setattr__(found, "n", n)
        return found

    LOG.clear()
    Counts.made = 0
    _, kept = called(made)
    assert not kept
    assert not LOG
    assert Counts.made == 0


def test_a_dict_that_acts_when_it_is_filled_is_not_kept(enabled):
    def made(n):
        found = Writes()
        dict.__setitem__(found, n, n)
        return found

    LOG.clear()
    _, kept = called(made)
    assert not kept
    assert not LOG


def test_a_class_that_makes_again_what_it_leaves_out_is_kept(enabled):
    def made(n):
        return [Quiet(n), {n: Quiet(n)}]

    found, kept = called(made)
    assert kept
    assert found[0] == found[1] == found[2]


def odd_order(n):
    found = set()
    for each in (8, 0, 16, 24, 1):
        found.add(each)
    found.discard(0)
    return found


@pytest.mark.parametrize(
    "wrap", [lambda found: found, lambda found: {"a": [found]}, lambda found: (frozenset(found), found)]
)
def test_numbers_come_out_of_a_set_in_the_order_they_had(wrap, enabled):
    def made(n):
        return wrap(odd_order(n))

    plain = repr(made(3))
    found, kept = called(made)
    assert {repr(each) for each in found} == {plain}
    assert not kept


@pytest.mark.parametrize("members", [range(50), [0.5, 2.0, 1e9], ["a", "b", "c"], [(1, 2), (3, 4)], [8, 0, 16]])
def test_usual_sets_are_kept(members, enabled):
    def made(n):
        return [set(members), n]

    found, kept = called(made)
    assert kept
    assert found[0] == found[2]
    if not isinstance(members, list) or not isinstance(members[0], str):  # whose order is another one in each process
        assert [*found[0][0]] == [*found[2][0]]


def test_what_was_changed_is_named(enabled):
    memo = nectar.memo(lambda held: held.setdefault("n", []).append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo({})
    nectar.session.current().settle()
    assert not memo.check_call_in_cache({})
    changed = nectar.last_run().parts[-1].keeping
    assert "builtins.dict that it was given was changed while it ran" in changed
