"""What a program registers with abstract classes counts where isinstance() or a match statement asks."""

import collections.abc
import numbers
import os

import pytest

from nectar.keys.abstract import registered_by_others
from nectar.keys.api import fingerprint


def is_number(x):
    return isinstance(x, numbers.Number)


def is_path(x):
    return isinstance(x, os.PathLike)


def matched(x):
    match x:
        case [*_]:
            return "sequence"
    return "other"


@pytest.mark.parametrize(("function", "abstract"), [(is_number, numbers.Number), (is_path, os.PathLike)])
def test_classes_that_a_program_registers_count(function, abstract):
    before = fingerprint(function)
    known = registered_by_others(abstract)
    made = type("Own", (), {})
    abstract.register(made)
    assert fingerprint(function) != before
    assert registered_by_others(abstract) == known | {made}


def test_classes_of_python_count_where_python_does_not_register_them():
    class Abstract(numbers.Number):
        pass

    Abstract.register(str)
    assert registered_by_others(Abstract) == {str}
    usual = (numbers.Integral, numbers.Real, numbers.Complex)
    assert not any(int in registered_by_others(each) or float in registered_by_others(each) for each in usual)
    for name in collections.abc.__all__:
        found = registered_by_others(getattr(collections.abc, name))
        assert not any(each.__module__ in ("builtins", "collections") for each in found), name


def test_what_a_match_statement_takes_for_a_sequence_counts():
    class Own:
        pass

    before = fingerprint(Own)
    collections.abc.Sequence.register(Own)
    assert matched(Own()) == "sequence"
    assert fingerprint(Own) != before
