"""Texts that libraries take for a moment which only the clock can tell, however they come there."""

import collections
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nectar
from nectar.keys import moments
from nectar.keys.call import call_of
from nectar.keys.moments import text_for_now
from nectar.keys.outcome import outcome_of
from nectar.keys.purity import tables, widths
from nectar.keys.purity.deny import WORDS_FOR_NOW

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
END = {"end": "now"}
MANY = ["2020-01-01"] * 20 + ["today"]
FINE = ["2020-01-01", "2021-05-06 10:00"]


def is_refused(function, **arguments):
    return {refusal.kind for refusal in call_of(function, arguments).refusals} == {"clock"}


def with_default(n, end="now"):
    return pd.Timestamp(end)


def with_keyword_default(n, *, end="Today"):
    return np.datetime64(end)


CAPTURED = {
    "constant": lambda n: pd.Timestamp("now"),
    "variable": lambda n: [pd.Timestamp(word) for word in ("today", "2020-01-01")],
    "list": lambda n: pd.to_datetime(["now", "2020-01-01"]),
    "dict of the module": lambda n: pd.Timestamp(END["end"]),
    "long list of the module": lambda n: pd.to_datetime(MANY),
    "default": with_default,
    "default of a keyword": with_keyword_default,
    "handed on": lambda n: list(map(pd.Timestamp, MANY)),
    "by type": lambda n: np.array(["now"], dtype="datetime64[s]"),
    "time of day": lambda n: pd.Timestamp("10:30"),
    "day without a year": lambda n: pd.to_datetime("Jan 5"),
}


@pytest.mark.parametrize("function", CAPTURED.values(), ids=CAPTURED)
def test_the_clock_is_read(function):
    assert is_refused(function, n=1)


ARGUMENTS = {
    "Timestamp": lambda when: pd.Timestamp(when),
    "to_datetime": lambda when: pd.to_datetime(when),
    "date_range": lambda when: pd.date_range(end=when, periods=2),
    "datetime64": lambda when: np.datetime64(when),
    "a helper": lambda when: helper(when),
}


def helper(when):
    return pd.Period(when, "D")


@pytest.mark.parametrize("when", ["now", "today", ["now"], {"a": ["NOW"]}, ("x", ("today",)), "12:30", "5 March"])
@pytest.mark.parametrize("function", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_clock_is_read_if_the_argument_says_so(function, when):
    assert is_refused(function, when=when)


@pytest.mark.parametrize("when", ["2020-01-01", FINE, {"a": ["nowhere"]}, 5, "10:30 2020-01-01"])
@pytest.mark.parametrize("function", ARGUMENTS.values(), ids=ARGUMENTS)
def test_and_is_not_if_it_does_not(function, when):
    assert call_of(function, {"when": when}).refusals == ()


pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
COLUMNS = {
    "list": list,
    "deque": collections.deque,
    "series": pd.Series,
    "series with gaps": lambda texts: pd.Series([*texts, None]),
    "series of objects": lambda texts: pd.Series(texts, dtype=object),
    "series of texts": lambda texts: pd.Series(texts, dtype="string[python]"),
    "series of Arrow": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "index": pd.Index,
    "several indexes": lambda texts: pd.MultiIndex.from_arrays([texts, range(len(texts))]),
    "categories": pd.Categorical,
    "frame": lambda texts: pd.DataFrame({"n": 1, "at": texts}),
    "array of objects": lambda texts: np.array(texts, dtype=object),
    "array of texts": np.array,
    "array of bytes": lambda texts: np.array(texts, dtype="S"),
    "every second of an array": lambda texts: np.repeat(np.array(texts), 2)[::2],
    "array of records": lambda texts: np.array([(each, 1) for each in texts], dtype=[("at", "U12"), ("n", int)]),
    "text of numpy": lambda texts: np.str_(texts[-1]),
    "Arrow": pa.array,
    "dictionary of Arrow": lambda texts: pa.array(texts).dictionary_encode(),
    "table of Arrow": lambda texts: pa.table({"n": range(len(texts)), "at": texts}),
    "Polars": pl.Series,
    "lists of Polars": lambda texts: pl.Series([[each] for each in texts]),
    "categories of Polars": lambda texts: pl.Series(texts).cast(pl.Categorical),
    "frame of Polars": lambda texts: pl.DataFrame({"n": 1, "at": texts}),
}


@pytest.mark.parametrize("length", [1, 100])
@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_the_clock_is_read_if_a_column_says_so(make, length):
    dates = ["2020-01-01"] * length
    for text in ("now", "10:30"):
        column = make([*dates, text])
        assert is_refused(lambda when: pd.to_datetime(when), when=column)
        assert is_refused(lambda n: pd.to_datetime(column), n=1)  # noqa: B023 - called at once
        assert call_of(lambda when: len(when), {"when": column}).refusals == ()
    assert call_of(lambda when: pd.to_datetime(when), {"when": make([*dates, "5 May 2020"])}).refusals == ()


@given(st.from_regex(moments._for_now(), fullmatch=True))
def test_no_text_for_now_names_a_year(text):
    assert re.search(moments.WITH_YEAR, text) is None


RULE = "8h"
WIDTHS = {
    "rule of a resampling": lambda n: pd.to_datetime("2020-01-01") and pd.Series([n]).resample("4h"),
    "keyword": lambda n: pd.date_range("2020-01-01", periods=n, freq="12h"),
    "global": lambda n: pd.Series([pd.Timestamp("2020-01-01")]).dt.floor(RULE),
    "one of two": lambda n: pd.Timestamp("2020-01-01").floor("4h" if n else "8h"),
    "Timedelta": lambda n: pd.Timestamp("2020-01-01") + pd.Timedelta("4h"),
    "group": lambda n: pd.date_range("2020-01-01", periods=n).groupby(pd.Grouper(freq="4h")),
}


@pytest.mark.parametrize("function", WIDTHS.values(), ids=WIDTHS)
def test_hours_that_are_widths_are_no_moments(function, monkeypatch):
    monkeypatch.setattr(widths, "_may_be_own", lambda name, version: False)  # which other tests of this process are
    assert outcome_of(function).refusals == ()


def with_default_width(n, rule="4h"):
    return pd.Timestamp(rule).floor("4h")


class Grid:
    def ceil(self, when):
        return pd.Timestamp(when)


MOMENTS = {
    "handed to pandas": lambda n: pd.to_datetime("4h"),
    "handed to both": lambda n: (pd.Series([n]).resample("4h"), pd.Timestamp("4h")),
    "by a variable": lambda n: [pd.Timestamp(each) for each in [RULE]] + [pd.Series([n]).resample(RULE)],
    "elsewhere in the call": lambda n: pd.Timestamp(pd.Series([n]).resample("1D", origin="4h")),
    "in an inner function": lambda n: (lambda: pd.Timestamp("4h"))() or pd.Series([n]).resample("4h"),
    "given back": lambda n: pd.Timestamp(n).floor("4h") and "4h",
    "default": with_default_width,
    "method of the program": lambda n: Grid().ceil("4h"),
    "name of a frame": lambda n: pd.Timestamp(n).truncate("4h"),
}


@pytest.mark.parametrize("function", MOMENTS.values(), ids=MOMENTS)
def test_hours_that_may_be_moments_are(function):
    assert is_refused(function, n=1)


def test_words_are_words_where_nothing_takes_them_for_moments():
    assert outcome_of(lambda n: {"now": 1, "today": n}).refusals == ()
    assert call_of(lambda word: word.upper(), {"word": "now"}).refusals == ()


@pytest.mark.parametrize(
    "text", ["now", " NOW ", "Today", "9:05", "09:05:01.5", "9:05 pm", "Mar 5", "December", "5. may"]
)
def test_texts_for_now(text):
    assert text_for_now([1, "x", (2, frozenset({text}))]) == text


@pytest.mark.parametrize("text", ["", "nowadays", "2020-01-01", "row 5", "10:3", "May 2020", "123", "5 cm"])
def test_other_texts(text):
    assert text_for_now([text]) is None


def test_every_module_whose_functions_take_words_for_now_is_taken_in():
    for name, functions in WORDS_FOR_NOW.items():
        module = pytest.importorskip(name) if name in {"dateutil.parser"} else sys.modules.get(name)
        if module is None:
            continue
        tables.refresh()
        for each in functions.split():
            assert id(getattr(module, each)) in tables.takes_words_for_now, (name, each)


@pytest.mark.parametrize(
    "text",
    [
        "now",
        "Today",
        " now ",
        "10:30",
        "10:30 UTC",
        "10:30:05.5 pm",
        "5 pm",
        "5pm",
        "monday",
        "Mon",
        "tuesday 10:30",
        "Jan 5",
        "5 January",
        "5. Jan",
        "jan",
        "12",
        "10h30",
        "10h",
        "at 10:30",
        "3rd of March",
        "10:30 +02:00",
        "10:30Z",
        "Friday, 5 May",
        "Sept 3",
        "10:30 CEST",
        "yesterday",
    ],
)
def test_texts_that_mean_something_else_tomorrow(text):
    assert text_for_now([text]) == text


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01",
        "2021-05-06 10:00",
        "marketing",
        "decimal",
        "UTC",
        "ABC",
        "col1",
        "10 items",
        "%H:%M",
        "Jan 5 2020",
        "2020",
        "5/6/2021",
        "monthly",
        "sunny",
        "a",
        "at",
        "of",
        "D",
        "Europe/Berlin",
        "thursdayish",
        "satellite",
        "sun2",
        "20240102",
        "",
        "12:30-13:30x",
        "z",
        "+02:00",
    ],
)
def test_texts_that_mean_the_same_every_day(text):
    assert text_for_now([text]) is None


def test_a_setting_that_looks_like_a_moment_is_none(monkeypatch):
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    series = pd.Series([1.0, 2.0], index=pd.date_range("2024-01-01", periods=2))
    nectar.fingerprint(lambda x: pl.DataFrame({"a": series.rolling("2D").sum().to_numpy()}))
