"""What a result depends on though neither the function nor its arguments name it counts as it does in plain Python."""

import ctypes
import datetime
import gc
import sys
import textwrap
import warnings
import weakref
from multiprocessing import shared_memory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.compute as pc
import pytest
from PIL import Image

import nectar
from nectar.errors import NectarWarning


def outcome():
    return nectar.last_run().parts[-1].outcome


def twice(memo, *arguments):
    """What a call gives, and whether a second one is reused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NectarWarning)
        first = memo(*arguments)
        nectar.session.current().settle()
        again = memo(*arguments)
    return first, again, outcome() == "reused"


@nectar.memo
def shown(series):
    return str(series.to_numpy() / 3)


@nectar.memo
def inverse(series):
    return (1.0 / (series.to_numpy() * 0.0)).tolist()


@nectar.memo
def table_of(series):
    return series.to_pandas().to_string()  # and not str(), which asks how large the terminal is


SERIES = pl.Series([1.0, 2.0])


def test_how_numpy_prints_counts_for_arrays_that_frames_give(enabled):
    assert twice(shown, SERIES)[2]
    with np.printoptions(precision=2):
        assert shown(SERIES) == "[0.33 0.67]"
    assert shown(SERIES) == "[0.33333333 0.66666667]"
    assert outcome() == "reused"


def test_how_numpy_treats_errors_counts_for_arrays_that_frames_give(enabled):
    with np.errstate(divide="ignore"):
        assert twice(inverse, SERIES)[2]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        inverse(SERIES)


def test_a_function_that_numpy_calls_about_errors_is_called_each_time(enabled):
    called = []
    before = np.seterrcall(lambda *about: called.append(about))
    try:
        with np.errstate(divide="call"):
            first, again, reused = twice(inverse, SERIES)
        assert first == again
        assert not reused
        assert len(called) == 2
    finally:
        np.seterrcall(before)


def test_options_of_pandas_count_for_frames_that_others_make(enabled):
    SERIES.to_pandas().to_string()  # parts of pandas are imported by the first one of a process
    assert twice(table_of, SERIES)[2], nectar.last_run().details()
    with pd.option_context("display.float_format", "{:.3f}".format):
        assert "1.000" in table_of(SERIES)
    with pd.option_context("display.precision", 3):
        assert "0.3333" not in table_of(SERIES / 3)
    assert "0.333333" in table_of(SERIES / 3)


def test_how_polynomials_are_printed_counts(enabled):
    text = nectar.memo(lambda last: str(np.polynomial.Polynomial([1, 2, last])))
    assert twice(text, 3)[2]
    usual = text(3)
    np.polynomial.set_default_printstyle("ascii")
    try:
        assert text(3) != usual
    finally:
        np.polynomial.set_default_printstyle("unicode")


def test_warnings_that_are_errors_are_raised(enabled):
    logarithm = nectar.memo(lambda n: float(np.log(np.zeros(n)).sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert twice(logarithm, 3)[2]
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            logarithm(3)
        warnings.simplefilter("error", (DeprecationWarning, RuntimeWarning))
        with pytest.raises(RuntimeWarning):
            logarithm(3)


# arguments


@nectar.memo
def listed(numbers):
    return list(numbers)


MADE_OF_NUMBERS = ([0, 8, 16], [0.0, 8.0, 16.0], [(n, 0) for n in range(40)], [0j, 8 + 0j, 16 + 0j])


@pytest.mark.parametrize("members", MADE_OF_NUMBERS, ids=lambda members: type(members[0]).__name__)
@pytest.mark.parametrize("kind", [set, frozenset])
def test_the_order_of_numbers_in_a_set_counts(enabled, kind, members):
    one, other = kind(members), kind(members[::-1])
    assert one == other
    assert list(one) != list(other)
    assert twice(listed, one) == (list(one), list(one), True)
    assert listed(other) == list(other)
    assert listed(kind(members)) == list(one)
    assert outcome() == "reused"


def test_texts_in_sets_have_no_order(enabled):
    size = nectar.memo(lambda words: len(words))
    assert twice(size, {"a", "b", "c"})[2]
    size({"c", "b", "a"})
    assert outcome() == "reused"


def test_numbers_that_are_put_into_a_set_again_are_looked_at_again(enabled):
    numbers = {0, 8, 16}
    function = nectar.memo(lambda: list(numbers))
    assert twice(function)[2]
    numbers.remove(0)
    numbers.add(0)
    assert function() == list(numbers)


def test_flags_of_columns_count_where_somebody_asks_for_them(enabled):
    flags = nectar.memo(lambda series: series.flags)
    series = pl.Series([1, 2, 3])
    assert twice(flags, series)[2]
    assert flags(series.set_sorted())["SORTED_ASC"]
    total = nectar.memo(lambda series: series.sum())
    assert twice(total, series)[2]
    total(series.set_sorted())
    assert outcome() == "reused"


TEXT = "ab" * 30


@nectar.memo
def is_text(given):
    return given is TEXT


@nectar.memo
def are_one(first, second):
    return first is second


def test_equal_texts_may_be_two_objects(enabled):
    copy = "".join(list(TEXT))
    assert twice(is_text, TEXT) == (True, True, True)
    assert twice(is_text, copy) == (False, False, True)
    assert twice(are_one, TEXT, TEXT) == (True, True, True)
    assert twice(are_one, TEXT, copy) == (False, False, True)


OTHER_TEXT = "".join(list(TEXT))


@nectar.memo
def which(given):
    return "first" if given is TEXT else "second" if given is OTHER_TEXT else "none"


@nectar.memo
def of_a_pair(pair):
    return pair[0] is pair[1]


def _are_one(first, second):
    return first is second


@nectar.memo
def handed_on(pair):
    return _are_one(pair[0], pair[1])


@nectar.memo
def of_all(*given):
    first, second = given
    return first is second


def test_equal_texts_may_be_two_objects_wherever_they_lie(enabled):
    for given, expected in ((TEXT, "first"), (OTHER_TEXT, "second"), ("".join(list(TEXT)), "none")):
        assert twice(which, given)[:2] == (expected, expected)
    for memo in (of_a_pair, handed_on):
        assert twice(memo, (TEXT, TEXT))[:2] == (True, True)
        assert twice(memo, (TEXT, OTHER_TEXT))[:2] == (False, False)
    assert twice(of_all, TEXT, TEXT)[:2] == (True, True)
    assert twice(of_all, TEXT, OTHER_TEXT)[:2] == (False, False)


class Day(datetime.date):
    pass


class Hour(datetime.timedelta):
    pass


@nectar.memo
def tag_of(value):
    return value.tag


@pytest.mark.parametrize("make", [lambda: Day(2020, 1, 1), lambda: Hour(1)])
def test_attributes_of_dates_count(enabled, make):
    for tag in ("one", "two"):
        value = make()
        value.tag = tag
        assert twice(tag_of, value) == (tag, tag, True)


class View:
    __array_interface__ = np.arange(3).__array_interface__


ADDRESSED = np.arange(3, dtype=np.int64)


def at_address(address):
    return list((ctypes.c_int64 * 3).from_address(address))


def through_interface(view):
    return np.asarray(view).tolist()


def in_shared_memory(name):
    block = shared_memory.SharedMemory(name)
    try:
        return bytes(block.buf[:1])
    finally:
        block.close()


def test_memory_that_is_known_by_its_address_is_read_each_time(enabled):
    assert not twice(nectar.memo(at_address), ADDRESSED.ctypes.data)[2]
    assert not twice(nectar.memo(through_interface), View())[2]
    block = shared_memory.SharedMemory(create=True, size=8)
    try:
        assert not twice(nectar.memo(in_shared_memory), block.name)[2]
    finally:
        block.close()
        block.unlink()


# what goes away


class Thing:
    pass


@pytest.mark.parametrize(
    "refer",
    [
        lambda thing: (lambda ref: lambda: ref() is None)(weakref.ref(thing)),
        lambda thing: (lambda held: lambda: not held)(weakref.WeakSet([thing])),
        lambda thing: (lambda held: lambda: not len(held))(weakref.WeakValueDictionary(a=thing)),
    ],
    ids=["reference", "set", "values"],
)
def test_nectar_keeps_nothing_alive_that_a_program_lets_go(enabled, refer):
    thing = Thing()
    seen = weakref.ref(thing)
    is_gone = refer(thing)
    gc.disable()  # as a program that waits for no collector sees it
    try:
        asked = nectar.memo(is_gone)
        assert twice(asked) == (False, False, False)
        del thing
        assert seen() is None
        assert asked()
    finally:
        gc.enable()


# draws


def test_draws_that_tables_do_not_name_otherwise_are_not_kept(enabled):
    first, again, reused = twice(nectar.memo(lambda n: pc.random(n).to_pylist()), 4)
    assert not reused
    assert first != again
    picture = Image.linear_gradient("L").resize((16, 16))
    assert not twice(nectar.memo(lambda image: image.effect_spread(9).tobytes()), picture)[2]


# results


def test_attributes_on_frames_are_not_lost_in_a_process_that_has_seen_no_frame(program):
    text = """
    import json, pandas, polars, warnings, nectar
    warnings.simplefilter("ignore")

    @nectar.memo
    def tagged(make):
        frame = pandas.DataFrame({"a": [1]}) if make == "pandas" else polars.DataFrame({"a": [1]})
        frame.tag = "x"
        return frame

    print(json.dumps([tagged(kind).tag for kind in ("pandas", "polars") for _ in range(2)]))
    """
    program.write(tags=textwrap.dedent(text))
    assert program.told("tags") == ["x", "x", "x", "x"]


def test_errors_with_a_traceback_are_not_kept(enabled):
    def caught(n):
        try:
            return 1 / n
        except ZeroDivisionError as error:
            return error

    memo = nectar.memo(caught)
    _, again, reused = twice(memo, 0)
    assert not reused
    assert again.__traceback__ is not None


def test_dates_with_attributes_come_back_with_them(enabled):
    def tagged():
        day = Day(2020, 1, 1)
        day.tag = "x"
        return day

    first, again, _ = twice(nectar.memo(tagged))
    assert first.tag == again.tag == "x"


# what is seen while a module is imported


def test_what_modules_do_while_they_are_imported_is_not_remembered_against_a_function(enabled, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nt_draws.py").write_text("import random\nrandom.random()\n")

    @nectar.memo
    def length(text):
        import nt_draws  # noqa: F401

        return len(text)

    for _ in range(3):
        assert length("abc") == 3
        nectar.session.current().settle()
    assert outcome() == "reused"
    del sys.modules["nt_draws"]


# what libraries keep


def test_the_order_of_choices_in_a_pattern_of_a_library_counts(enabled, monkeypatch):
    import configparser
    import re

    @nectar.memo
    def sections(text):
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        return parser.sections()

    for choices, expected in (("ab|abc", ["ab"]), ("abc|ab", ["abc"])):
        monkeypatch.setattr(configparser.RawConfigParser, "SECTCRE", re.compile(rf"\[(?P<header>{choices})"))
        assert twice(sections, "[abc]\n")[:2] == (expected, expected)


def test_only_the_hash_that_an_object_of_a_library_keeps_of_itself_is_left_out():
    from nectar.keys.instances import _is_hash

    hashing = type("Hashing", (), {"__hash__": lambda self: self._hash, "__module__": "toolz"})
    assert not _is_hash("_hash", "sha256=aa", hashing)  # a text is data
    assert not _is_hash("_hash", 3, type("Plain", (), {}))  # an integer that no __hash__ reads
    assert not _is_hash("_hash", 3, type("Own", (), {"__hash__": lambda self: self._hash}))  # of the application
