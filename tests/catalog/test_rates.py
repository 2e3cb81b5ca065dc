"""What an engine has taken here is learned, and remembered for other processes; engines learn apart."""

from weakref import WeakKeyDictionary

import pytest
from tests.catalog.making import opened

from nectar.catalog.rates import LearnedRates
from nectar.rewrite.cost import Rates


@pytest.fixture
def catalog(tmp_path):
    made = opened(tmp_path / "home")
    yield made
    made.close()


def learn(rates, catalog):
    for _ in range(9):
        rates.learn(catalog, 100 << 20, 3.0, states=True)


def test_what_was_learned_is_there_for_others(catalog):
    rates = LearnedRates("an engine")
    assert rates.of(catalog) == Rates()
    learn(rates, catalog)
    learned = rates.of(catalog)
    rates.remember(catalog)
    assert LearnedRates("an engine").of(catalog) == learned != Rates()


def test_engines_learn_apart(catalog):
    rates = LearnedRates("one")
    learn(rates, catalog)
    rates.remember(catalog)
    assert LearnedRates("another").of(catalog) == Rates()


def test_what_was_not_remembered_is_forgotten(catalog):
    rates = LearnedRates("an engine")
    learn(rates, catalog)
    rates.forget()
    assert rates.of(catalog) == Rates()


def test_something_else_under_their_key_is_no_rates(catalog):
    rates = LearnedRates("an engine")
    for value in ({"merging": "fast"}, [1, 2], {"merging": -1.0, "unknown": 3.0}):
        catalog.keep(rates._key(), rates._key(), value, replaces=True)
        rates.forget()
        assert rates.of(catalog) == Rates()


def test_another_thread_never_finds_half_of_what_is_known(catalog):
    """One thread learns while another, which writes results, remembers."""
    rates = LearnedRates("an engine")

    class Asked(WeakKeyDictionary):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            rates.remember(key)

    rates._known = Asked()
    assert rates.of(catalog) == Rates()
    learn(rates, catalog)
    assert LearnedRates("an engine").of(catalog) != Rates()
