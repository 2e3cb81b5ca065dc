"""Functions that remember their results: what they remember may be out of date in this process."""

import functools
import urllib.parse

import nectar
from nectar.keys.outcome import outcome_of

RATE = 1


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


def test_a_cache_that_was_empty_when_first_seen_is_fine():
    space = module_with(RATED)
    assert kinds(space) == []
    space["f"](1)
    assert kinds(space) == []
    space["f"](2)
    assert kinds(space) == []


def test_a_cache_that_was_filled_with_another_global_is_not():
    space = module_with(RATED)
    kinds(space)
    space["f"](1)
    space["RATE"] = 2
    assert kinds(space) == ["cache"]
    space["RATE"] = 1  # nobody knows what was added meanwhile
    assert kinds(space) == ["cache"]
    space["rated"].cache_clear()
    assert kinds(space) == []


def test_nor_one_that_another_function_was_seen_to_use_meanwhile():
    space = module_with(RATED + "def g(n):\n    return -rated(n)\n")
    kinds(space)
    space["f"](1)
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


def test_a_cache_in_a_method_or_with_a_helper_is_looked_at():
    text = "def h(n):\n    return n\n@functools.lru_cache(3)\ndef g(n):\n    return h(n)\ndef f(n):\n    return g(n)\n"
    space = module_with(text)
    kinds(space)
    space["f"](1)
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
