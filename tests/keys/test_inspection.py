"""Objects of the program are looked at without running their code."""

import functools
import types

import pytest

import nectar
from nectar.keys.inspection import attributes_of, is_a
from nectar.observation.texts import texts_in

ASKED = []


class Counting:
    """Each of its hooks tells that it was asked."""

    depth = 3

    def __init__(self):
        object.__setattr__(self, "held", "text")

    def __getattribute__(self, name):
        ASKED.append(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        ASKED.append(name)
        raise AttributeError(name)

    @property
    def shown(self):
        ASKED.append("shown")
        return 1

    @property
    def __class__(self):
        ASKED.append("__class__")
        return int

    def __eq__(self, other):
        ASKED.append("==")
        return True

    def __hash__(self):
        ASKED.append("hash")
        return 1

    def __bool__(self):
        ASKED.append("bool")
        return True

    def __len__(self):
        ASKED.append("len")
        return 1

    def __iter__(self):
        ASKED.append("iter")
        return iter(())

    def __repr__(self):
        ASKED.append("repr")
        return "repr"

    def __fspath__(self):
        ASKED.append("fspath")
        return "path"


CAPTURED = Counting()
LISTED = [CAPTURED]
NAMED = {"a": CAPTURED}


def asks(n):
    return [n] * CAPTURED.depth


def asks_for_a_property(n):
    return CAPTURED.shown + n


def holds_containers(n):
    return len(LISTED), len(NAMED), n


def holds_a_default(n, held=CAPTURED):
    return n, held is None


def closes_over(held):
    return lambda n: (n, held is None)


def takes(n, held=None):
    return n


def makes(n):
    return Counting()


class Method:
    def __init__(self):
        self.held = CAPTURED

    def __call__(self, n):
        return self.held is None, n


CALLS = {
    "attribute": (asks, 1),
    "property": (asks_for_a_property, 1),
    "containers": (holds_containers, 1),
    "default": (holds_a_default, 1),
    "captured": (closes_over(CAPTURED), 1),
    "argument": (takes, 1, CAPTURED),
    "in a list": (takes, 1, [CAPTURED]),
    "in a dict": (takes, 1, {"a": (CAPTURED,)}),
    "result": (makes, 1),
    "partial": (functools.partial(takes, held=CAPTURED), 1),
    "held by an object": (Method(), 1),
}


@pytest.mark.filterwarnings("ignore::nectar.NectarWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_program_is_not_asked_more_than_it_asks_itself(name, tmp_path):
    function, *args = CALLS[name]
    ASKED.clear()
    function(*args)
    plain = list(ASKED)
    memo = nectar.memo(function)
    with nectar.reuse(home=tmp_path / "home", reserve=0):
        for _ in range(2):
            ASKED.clear()
            memo(*args)
            assert ASKED == plain


def test_texts_are_found_without_asking():
    ASKED.clear()
    assert list(texts_in([[CAPTURED], {"a": CAPTURED}])) == ["text", "text"]
    assert ASKED == []


def test_what_lies_in_an_object():
    class Slotted:
        __slots__ = ("a",)

    class Hidden:
        __dict__ = property(lambda self: ASKED.append("__dict__"))

    plain = types.SimpleNamespace(a=1)
    ASKED.clear()
    assert attributes_of(plain) is vars(plain)
    assert attributes_of(types) is vars(types)
    assert attributes_of(takes) is vars(takes)
    assert attributes_of(Slotted()) == attributes_of(Hidden()) == attributes_of(1) == {}
    assert is_a(True, int)
    assert not is_a(CAPTURED, (int, str))
    assert ASKED == []
