"""Context variables of libraries: those that stand in keys may be read."""

import contextvars
import sys
import warnings

import pytest
from tests.observation.installed import forget, install

import nectar

PDF = """
    from contextvars import ContextVar
    from dataclasses import dataclass, replace
    import time

    @dataclass(frozen=True)
    class Configuration:
        longest: int = 3
    CURRENT_CONFIGURATION = ContextVar("configuration", default=Configuration())
    def get_configuration():
        return CURRENT_CONFIGURATION.get()
    def overwrite_configuration(longest):
        CURRENT_CONFIGURATION.set(replace(get_configuration(), longest=longest))
"""
READER = """
    from pypdf._configuration import get_configuration, overwrite_configuration
    import time

    def extract(given):
        return given[: get_configuration().longest]
    def extract_longer(given):
        overwrite_configuration(get_configuration().longest + 1)
        return extract(given)
    def stamped(given):
        return extract(given) if given != "now" else time.time()
    def dated(given):
        return extract(given), time.time()
"""


@pytest.fixture
def pdf(tmp_path, monkeypatch):
    """A library whose configuration lies in a context variable, and in keys."""
    if "pypdf" in sys.modules:
        pytest.skip("the real one is loaded")
    files = {"pypdf/__init__.py": READER, "pypdf/_configuration.py": PDF}
    yield install(tmp_path, monkeypatch, "pypdf", files)
    forget("pypdf")


def of_library(library, name):
    """A function of the application that calls one of the library."""
    space = {"__name__": "program", "library": library}
    exec(f"def program(given):\n    return library.{name}(given)", space)
    return space["program"]


def configuration_of(library):
    """The class and the variable of the configuration; by no name, or this would be a program that changes it."""
    held = [*vars(sys.modules[f"{library.__name__}._configuration"]).values()]
    variable = next(each for each in held if isinstance(each, contextvars.ContextVar))
    return type(variable.get()), variable


def is_kept(function):
    memo = nectar.memo(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo("abcdef")
    nectar.session.current().settle()
    return memo.check_call_in_cache("abcdef")


def test_a_context_variable_that_stands_in_keys_may_be_read(pdf, enabled):
    assert is_kept(of_library(pdf, "extract"))
    assert is_kept(of_library(pdf, "stamped"))
    assert not is_kept(of_library(pdf, "dated"))


def test_and_another_value_of_it_is_another_key(pdf, enabled):
    memo = nectar.memo(of_library(pdf, "extract"))
    configuration, variable = configuration_of(pdf)
    held = [memo("abcdef")]
    token = variable.set(configuration(2))
    held += [memo("abcdef")]
    variable.reset(token)
    assert [*held, memo("abcdef")] == ["abc", "ab", "abc"]


def test_a_call_that_sets_it_is_not_kept(pdf, enabled):
    assert contextvars.copy_context().run(lambda: not is_kept(of_library(pdf, "extract_longer")))
