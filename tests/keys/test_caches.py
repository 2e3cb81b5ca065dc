"""Functions that remember their results: what they remember may be out of date in this process."""

import functools
import urllib.parse

import pytest

import nectar
from nectar import session
from nectar.errors import NectarWarning
from nectar.keys.outcome import outcome_of
from nectar.observation.watch import Watch

RATE = 1


@pytest.fixture
def enabled(tmp_path, monkeypatch):
    """Nectar is on, with an empty store."""
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    nectar.enable(home=tmp_path / "home", reserve=0)
    yield
    nectar.disable()


def module_with(text):
    space = {"functools": functools, "RATE": 1}
    exec(text, space)
    return space


RATED = """
@functools.cache
def rated(n):
    return n * RATE

def f(n):
    return rated(n)
"""


def kinds(space):
    return [refusal.kind for refusal in outcome_of(space["f"]).refusals]


def watched(space, number):
    with Watch():
        space["f"](number)


def test_a_cache_that_was_empty_when_first_seen_is_fine():
    space = module_with(RATED)
    assert kinds(space) == []
    watched(space, 1)
    assert kinds(space) == []
    watched(space, 2)
    assert kinds(space) == []
    space["f"](2)  # adds nothing
    assert kinds(space) == []


def test_a_cache_that_was_filled_with_another_global_between_two_looks_is_not():
    space = module_with(RATED)
    kinds(space)
    watched(space, 1)
    space["RATE"] = 2
    space["f"](2)
    space["RATE"] = 1
    watched(space, 3)  # does not make it good
    assert kinds(space) == ["cache"]
    space["rated"].cache_clear()
    assert kinds(space) == []


def test_nothing_is_kept_that_was_computed_with_a_stale_cache(enabled):
    space = module_with(RATED)
    memo = nectar.memo(space["f"])
    memo(1)
    assert is_kept(memo, 1)
    space["RATE"] = 2
    assert space["rated"](5) == 10
    space["RATE"] = 1
    with pytest.warns(NectarWarning, match="cache_clear"):
        assert memo(5) == 10  # as without Nectar
    space["rated"].cache_clear()
    assert not is_kept(memo, 5)
    assert memo(5) == 5


def is_kept(memo, value):
    nectar.session.current().settle()
    return memo.check_call_in_cache(value)


def test_a_cache_that_was_filled_with_another_global_is_not():
    space = module_with(RATED)
    kinds(space)
    watched(space, 1)
    space["RATE"] = 2
    assert kinds(space) == ["cache"]
    space["RATE"] = 1  # nobody knows what was added meanwhile
    assert kinds(space) == ["cache"]
    space["rated"].cache_clear()
    assert kinds(space) == []


def test_nor_one_that_another_function_was_seen_to_use_meanwhile():
    space = module_with(RATED + "def g(n):\n    return -rated(n)\n")
    kinds(space)
    watched(space, 1)
    space["RATE"] = 2
    outcome_of(space["g"])
    space["RATE"] = 1
    assert kinds(space) == ["cache"]


def test_a_cache_that_was_filled_before_it_was_seen_is_not():
    space = module_with(RATED)
    space["f"](1)
    assert kinds(space) == ["cache"]
    space["rated"].cache_clear()
    assert kinds(space) == []


def test_unless_its_function_uses_nothing_but_itself():
    text = "@functools.cache\ndef g(n):\n    return n if n < 2 else g(n - 1) + g(n - 2)\ndef f(n):\n    return g(n)\n"
    space = module_with(text)
    space["f"](5)
    assert kinds(space) == []
    space["f"](6)
    assert kinds(space) == []


def test_a_cache_in_a_method_or_with_a_helper_is_looked_at():
    text = "def h(n):\n    return n\n@functools.lru_cache(3)\ndef g(n):\n    return h(n)\ndef f(n):\n    return g(n)\n"
    space = module_with(text)
    kinds(space)
    watched(space, 1)
    exec("def h(n):\n    return 2 * n\n", space)
    assert kinds(space) == ["cache"]


def test_caches_of_libraries_are_fine():
    urllib.parse.urlsplit("http://example.org")
    assert outcome_of(lambda url: urllib.parse.urlsplit(url).path).refusals == ()


def test_the_function_itself_has_a_fingerprint_whatever_its_cache_holds():
    space = module_with(RATED)
    fresh = nectar.fingerprint(module_with(RATED)["f"])
    space["f"](1)
    assert nectar.fingerprint(space["f"]) == fresh


def test_a_person_may_vouch_for_it():
    space = module_with(RATED)
    space["f"](1)
    nectar.pure(space["f"])
    assert kinds(space) == []
