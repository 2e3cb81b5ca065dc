"""A feature that reached code observes makes another walk necessary only if something met on the way has it."""

import pytest
from benchmarks.timing import functions

import nectar
from nectar.keys import outcome
from nectar.keys.features import Features


class Price:
    def __init__(self, cents):
        self.cents = cents


PRICE = Price(3)


def shows_a_number(n):
    return str(n) + "!"


def shows_a_price(n):
    return str(n) + str(PRICE.cents)


def shows_names(f):
    return f.__name__, shows_a_number(1)


@pytest.fixture
def walks(monkeypatch):
    """The walks that are done."""
    done = []
    walk = outcome._walk

    def counted(*arguments):
        done.append(walk(*arguments))
        return done[-1]

    monkeypatch.setattr(outcome, "_walk", counted)
    outcome.forget()
    return done


@pytest.mark.parametrize(("function", "number"), [(shows_a_number, 1), (shows_a_price, 2), (shows_names, 2)])
def test_walks_are_repeated_only_for_what_was_asked_for(walks, function, number):
    nectar.fingerprint(function)
    assert len(walks) == number
    assert walks[-1].noticed


@pytest.mark.parametrize("name", [*functions(), "shows_a_number", "shows_a_price", "shows_names"])
def test_another_walk_would_give_the_same(monkeypatch, name):
    function = functions().get(name) or globals()[name]
    _, digest, refusals = outcome.explore(function)
    monkeypatch.setattr(Features, "lacks", lambda self, noticed: not noticed <= self._known)
    assert outcome.explore(function)[1:] == (digest, refusals)


def test_answers_are_noted_and_completed():
    features = Features(frozenset({"names"}))
    assert "names" in features
    assert "docs" not in features
    assert not features.any_of(frozenset({"texts", "types"}))
    assert features.asked == {"names", "docs", "texts", "types"}
    assert features.lacks({"names", "docs"})
    assert not features.lacks({"names", "order"})
    features.complete({"order"})
    assert "order" in features


def test_assigning_to_a_variable_always_counts():
    assert Features().lacks({"rebinds K"})
    assert Features(frozenset({"rebinds K"})).rebound == {"K"}
