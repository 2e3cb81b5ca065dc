"""Namespaces, accessors and methods that the application puts onto classes of data libraries."""

import contextlib
import warnings

import pytest

import nectar
from nectar.errors import UncacheableError
from nectar.keys.call import call_of
from nectar.keys.outcome import outcome_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@contextlib.contextmanager
def put_onto(cls, name, value):
    missing = object()
    before = vars(cls).get(name, missing)
    setattr(cls, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(cls, name)
        else:
            setattr(cls, name, before)


def accessor(rate):
    """A class as people register it, and what it uses."""
    space = {"RATE": rate, "__name__": "nt_made"}
    exec(
        "class Money:\n    def __init__(self, of):\n        self.of = of\n"
        "    def in_euros(self):\n        return self.of * RATE\n",
        space,
    )
    return space["Money"]


def in_euros(frame):
    return frame["a"].nt_money.in_euros()


REGISTERED = {
    "pandas series": (pd.Series, pd.api.extensions.register_series_accessor, pd.DataFrame({"a": [1]})),
    "pandas frame": (pd.DataFrame, pd.api.extensions.register_dataframe_accessor, pd.DataFrame({"a": [1]})),
    "pandas index": (pd.Index, pd.api.extensions.register_index_accessor, pd.DataFrame({"a": [1]})),
    "polars series": (pl.Series, pl.api.register_series_namespace, pl.DataFrame({"a": [1]})),
    "polars frame": (pl.DataFrame, pl.api.register_dataframe_namespace, pl.DataFrame({"a": [1]})),
    "polars expression": (pl.Expr, pl.api.register_expr_namespace, 1),
}


@pytest.mark.parametrize("name", REGISTERED)
def test_what_is_registered_counts_by_the_name_that_code_asks_for(name):
    cls, register, argument = REGISTERED[name]
    digests, calls = [], []
    for rate in (1, 2, 1):
        with put_onto(cls, "nt_money", None), warnings.catch_warnings(action="ignore"):
            register("nt_money")(accessor(rate))
            digests.append(outcome_of(in_euros).digest)
            calls.append(call_of(in_euros, {"frame": argument}).digest)
    cls._accessors.discard("nt_money")
    assert digests[0] == digests[2] != digests[1]
    assert calls[0] == calls[2] != calls[1]


def test_methods_that_are_put_or_replaced_count():
    def total(frame):
        return frame["a"].nt_total() + frame["a"].cumsum().iloc[0]

    plain = nectar.fingerprint(total)
    with put_onto(pd.Series, "nt_total", lambda series: 1):
        one = nectar.fingerprint(total)
    with put_onto(pd.Series, "nt_total", lambda series: 2):
        two = nectar.fingerprint(total)
    with put_onto(pd.Series, "cumsum", lambda series: series):
        replaced = nectar.fingerprint(total)
    assert len({plain, one, two, replaced}) == 4
    assert nectar.fingerprint(total) == plain


def test_a_name_that_is_a_text_or_computed_may_be_that_of_an_accessor():
    def by_text(frame):
        return getattr(frame, "nt_total")()  # noqa: B009 - what it is about

    def computed(frame, name):
        return getattr(frame, name)()

    for function in (by_text, computed):
        before = nectar.fingerprint(function)
        with put_onto(pl.DataFrame, "nt_total", lambda frame: 1):
            assert nectar.fingerprint(function) != before


def test_what_an_accessor_does_is_looked_at():
    with put_onto(pl.Series, "nt_lines", lambda series: open("x").read()):
        with pytest.raises(UncacheableError, match="file"):
            nectar.fingerprint(lambda frame: frame["a"].nt_lines())
        nectar.fingerprint(lambda frame: frame["a"].sum())


def test_others_do_not_count():
    before = nectar.fingerprint(in_euros)
    with put_onto(pd.Series, "nt_other", lambda series: 1):
        assert nectar.fingerprint(in_euros) == before


def test_code_that_an_argument_brings_counts_too():
    def applied(function, frame):
        return function(frame)

    frame = pl.DataFrame({"a": [1]})
    arguments = {"function": lambda frame: frame.nt_total(), "frame": frame}
    before = call_of(applied, arguments).digest
    with put_onto(pl.DataFrame, "nt_total", lambda frame: 1):
        assert call_of(applied, arguments).digest != before
