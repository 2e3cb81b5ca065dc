"""What libraries do that is no reason against a function: bound look-ups of dicts, generic bases, choices in sets."""

import collections
import re
import sys
import types

import pytest

from nectar.keys.atoms import choice_in_order
from nectar.keys.purity.mutators import RECEIVER, changed_arguments
from nectar.keys.setters import changes_library, changes_library_when_derived


def test_looking_up_changes_a_defaultdict_and_no_dict():
    class Filling(dict):
        def __missing__(self, key):
            self[key] = found = []
            return found

    assert changed_arguments({}.__getitem__) == ()
    assert changed_arguments({}.__setitem__) == (RECEIVER,)
    assert changed_arguments(collections.defaultdict(list).__getitem__) == (RECEIVER,)
    assert changed_arguments(Filling().__getitem__) == (RECEIVER,)


@pytest.fixture
def library():
    """A library with classes to derive from."""
    module = types.ModuleType("nt_visitors")
    text = """
import typing
T = typing.TypeVar("T")
kinds = []
class Plain(typing.Generic[T]): pass
class Registers(typing.Generic[T]):
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        kinds.append(cls)
class Mixin:
    def __init_subclass__(cls, **options):
        kinds.append(cls)
class Behind(typing.Generic[T], Mixin): pass
class Meta(type):
    def __new__(meta, name, bases, space):
        made = super().__new__(meta, name, bases, space)
        kinds.append(made)
        return made
class ByMeta(metaclass=Meta): pass
"""
    exec(text, vars(module))
    sys.modules["nt_visitors"] = module
    yield module
    del sys.modules["nt_visitors"]


def test_deriving_from_a_generic_class_registers_nothing(library):
    assert not changes_library_when_derived(library.Plain)


@pytest.mark.parametrize("name", ["Registers", "Behind", "ByMeta"])
def test_deriving_from_a_class_that_registers_is_seen(library, name):
    assert changes_library_when_derived(getattr(library, name))


def test_a_choice_of_characters_has_one_order():
    assert choice_in_order(re.compile("b|a|c")) == choice_in_order(re.compile("c|b|a")) == "a|b|c"


@pytest.mark.parametrize("pattern", ["b|ab", "b|.", "a", "(a|b)", "a||b", "a|^"])
def test_other_patterns_are_what_they_say(pattern):
    assert choice_in_order(re.compile(pattern)) == pattern


def test_where_blanks_mean_nothing_a_choice_is_what_it_says():
    assert choice_in_order(re.compile("b| |a", re.VERBOSE)) == "b| |a"
    assert choice_in_order(re.compile(b"b|a")) == b"b|a"


def test_a_native_function_in_a_class_has_no_decorators():
    """Compiled classes hold functions without attributes of their own."""

    class Keys:
        made = staticmethod(len)
        joined = classmethod(max)

    assert not changes_library(vars(Keys)["made"], Keys)
    assert not changes_library(vars(Keys)["joined"], Keys)
