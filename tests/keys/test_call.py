"""Fingerprints of calls: the function and its arguments are one object graph."""

import copy
import pathlib
from itertools import product

import numpy as np
import pytest

from nectar.errors import UnencodableError
from nectar.keys import call as call_module
from nectar.keys.call import call_of, program_of
from nectar.keys.outcome import forget, outcome_of

MISSING = object()


class Point:
    def __init__(self, x):
        self.x = x

    def size(self):
        return abs(self.x)


class Twin:
    def __init__(self, x):
        self.x = x

    def size(self):
        return abs(self.x)


def size(point):
    return point.size() if isinstance(point, Point) else -1


def default(value=MISSING):
    return 0 if value is MISSING else 1


def apply(function, value):
    return function(value)


def digest(called, /, **arguments):
    return call_of(called, arguments).digest


def test_equal_arguments_give_one_call_and_others_another():
    assert digest(size, point=Point(1)) == digest(size, point=Point(1))
    assert digest(size, point=Point(1)) != digest(size, point=Point(2))
    assert digest(apply, function=abs, value=1) != digest(apply, function=abs, value=1.0)
    assert digest(apply, function=abs, value=1) != digest(apply, function=abs, value=True)
    assert digest(apply, function=abs, value=0.0) != digest(apply, function=abs, value=-0.0)


ATOMS = [
    0, 1, -1, True, False, None, 0.0, -0.0, 1.0, float("inf"), float("nan"), "", "1", "1.0", b"", b"1", "None",
    "0x1p+0", 2**64, -(2**64), "a" * 300, b"a" * 300, (1.0).hex(), (0.0).hex(), "\ud800",
]  # fmt: skip


def pair(a, b):
    return a, b


def test_a_call_that_is_remembered_is_the_one_that_would_be_made():
    """Of arguments that are nothing but their values the fingerprint is remembered, with that of the function."""
    made = {}
    for number, (a, b) in enumerate(product(ATOMS, ATOMS)):
        forget()
        made[number] = call_of(pair, {"a": a, "b": b})
    assert len({call.digest for call in made.values()}) == len(ATOMS) ** 2
    forget()
    for _ in range(2):
        for number, (a, b) in enumerate(product(ATOMS, ATOMS)):
            assert call_of(pair, {"a": a, "b": b})[:4] == made[number][:4]
    assert call_of(pair, {"b": 1, "a": 2}).digest != call_of(pair, {"a": 2, "b": 1}).digest
    assert call_of(pair, {"a": 1, "b": 2}, b"extra").digest != call_of(pair, {"a": 1, "b": 2}).digest


def test_a_call_that_is_remembered_knows_of_other_code(monkeypatch):
    before = [digest(scaled, x=3) for _ in range(3)]
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert digest(scaled, x=3) not in before
    monkeypatch.undo()
    assert digest(scaled, x=3) == before[0]


FACTOR = 2


def scaled(x):
    return FACTOR * x


def is_marked(x, y):
    return x is y


def test_arguments_that_are_compared_by_identity_are_looked_at_each_time():
    one, other = "x y" * 3, " ".join(["x y" * 3])
    for _ in range(3):
        assert digest(is_marked, x=one, y=one) != digest(is_marked, x=one, y="".join(list(other)))


def test_few_calls_of_a_function_are_remembered():
    for number in range(1000):
        digest(scaled, x=number)
    assert len(outcome_of(scaled).findings[call_module._CALLS]) <= call_module._MOST_CALLS
    forget()
    for argument in (2**5000, "a" * 5000, b"a" * 5000):
        digest(scaled, x=argument)
    digest(of_table, x=1)
    assert not outcome_of(scaled).findings.get(call_module._CALLS)
    assert not outcome_of(of_table).findings.get(call_module._CALLS), "each would hold what a walk over the table met"


TABLE = [[number] for number in range(2000)]


def of_table(x):
    return TABLE[x]


def test_an_argument_that_is_what_the_function_captured_is_told_from_its_like():
    assert digest(size, point=Point(1)) != digest(size, point=Twin(1))
    assert digest(default, value=MISSING) != digest(default, value=object())
    assert digest(default) != digest(default, value=object())


def test_arguments_that_share_are_told_from_copies():
    shared = [1]
    assert digest(apply, function=shared, value=shared) != digest(apply, function=shared, value=copy.copy(shared))


def test_code_reached_through_an_argument_counts(monkeypatch):
    before = digest(apply, function=Point.size, value=Point(1)), digest(size, point=Point(1))
    monkeypatch.setattr(Point, "size", lambda self: self.x + 1)
    after = digest(apply, function=Point.size, value=Point(1)), digest(size, point=Point(1))
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_callback_that_looks_at_names_makes_names_count():
    def named(cls):
        return cls.__name__

    def hands_over(callback):
        return callback(Point)

    was = Point.__name__
    before = digest(hands_over, callback=named)
    try:
        Point.__name__ = "Other"
        assert digest(hands_over, callback=named) != before
    finally:
        Point.__name__ = was


def test_parameters_of_a_callback_count_where_it_is_called_by_keyword():
    def by_name(callback):
        return callback(x=1, y=2)

    assert digest(by_name, callback=lambda x, y: x) != digest(by_name, callback=lambda y, x: y)


def test_impure_callbacks_are_refused():
    import time

    call = call_of(apply, {"function": lambda value: value + time.time(), "value": 1})
    assert [refusal.kind for refusal in call.refusals] == ["clock"]


def test_arguments_that_read_files_are_refused_where_code_asks_them_to():
    def reads(path):
        return path.open().read()

    def joins(path):
        return str(path / "x")

    where = pathlib.Path("/etc/hostname")
    assert {refusal.kind for refusal in call_of(reads, {"path": where}).refusals} == {"file"}
    assert call_of(joins, {"path": where}).refusals == ()


def test_a_program_is_what_all_calls_have_in_common():
    one, other = call_of(size, {"point": Point(1)}), call_of(size, {"point": Point(2)})
    assert one.program == other.program == program_of(size)
    assert program_of(size) != program_of(default)
    assert program_of(size, b"version 2") != program_of(size)


def test_settings_of_a_library_count_where_an_argument_brings_it():
    def twice(value):
        return value * 2

    before = digest(twice, value=np.arange(3))
    with np.errstate(all="raise"):
        assert digest(twice, value=np.arange(3)) != before
    assert digest(twice, value=np.arange(3)) == before


def test_what_has_no_bytes_says_which_argument():
    with pytest.raises(UnencodableError, match="value"):
        call_of(apply, {"function": abs, "value": (number for number in range(3))})


def test_the_walk_knows_objects_by_number_in_every_process():
    call = call_of(size, {"point": Point(1)})
    number = call.walk.number_of(Point)
    assert number is not None
    assert call.walk.numbered(number) is Point
    assert call_of(size, {"point": Point(1)}).walk.number_of(Point) == number
