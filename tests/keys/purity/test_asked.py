"""Calls that ask something of the process by what they are given."""

import sys
import warnings

import pytest

import nectar


def recorded(text):
    with warnings.catch_warnings(record=True) as found:
        warnings.warn(text, stacklevel=1)
    return len(found)


def ignored(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(text, stacklevel=1)
    return len(text)


def not_recorded(text):
    with warnings.catch_warnings(record=False):
        return len(text)


@pytest.mark.parametrize(("function", "differs"), [(recorded, True), (ignored, False), (not_recorded, False)])
def test_filters_count_where_warnings_are_recorded(function, differs):
    found = set()
    for action in ("ignore", "always"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            found.add(nectar.fingerprint(function))
    assert len(found) == 1 + differs


def depth_of_nested():
    def depth(at=0):
        try:
            return depth(at + 1)
        except Exception:
            return at

    return depth()


def falls_back(values):
    try:
        return repr(values)
    except RecursionError:
        return "too deep"


def nested_without_recursion(values):
    def double(value):
        return 2 * value

    return [double(each) for each in values]


@pytest.mark.parametrize(
    ("function", "differs"), [(depth_of_nested, True), (falls_back, True), (nested_without_recursion, False)]
)
def test_the_recursion_limit_counts_where_code_may_reach_it(function, differs):
    limit = sys.getrecursionlimit()
    found = {nectar.fingerprint(function)}
    try:
        sys.setrecursionlimit(limit + 500)
        found.add(nectar.fingerprint(function))
    finally:
        sys.setrecursionlimit(limit)
    assert len(found) == 1 + differs
