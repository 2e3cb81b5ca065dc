"""What a namespace held under some names."""

import pytest

from nectar.keys.held import Held


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "x"), ("x", "y")])
def test_it_is_still_there(names):
    space = {"a": [1], "b": [2], "c": [3]}
    held = Held(space, names)
    assert held.is_still_in(space)
    space["c"] = [4]
    space["d"] = [5]
    assert held.is_still_in(space)


@pytest.mark.parametrize(
    "change",
    [
        lambda space: space.update(a=[1]),  # equal, but another
        lambda space: space.pop("a"),
        lambda space: space.update(x=None),
        lambda space: (space.pop("c"), space.update(x=1)),  # as many as before
    ],
)
def test_it_is_not(change):
    space = {"a": [1], "b": [2], "c": [3]}
    held = Held(space, ("a", "b", "x"))
    change(space)
    assert not held.is_still_in(space)


def test_namespaces_of_classes():
    space = type("Cls", (), {"a": 1})
    held = Held(vars(space), ("a", "b"))
    assert held.is_still_in(vars(space))
    space.b = 2
    assert not held.is_still_in(vars(space))
