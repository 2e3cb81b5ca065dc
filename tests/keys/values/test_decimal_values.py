"""Signals that decimals have raised before count where code asks for them, and nowhere else."""

import decimal

import pytest

import nectar
from nectar.keys.api import fingerprint


@pytest.fixture
def context():
    with decimal.localcontext() as found:
        found.clear_flags()
        yield found


def is_exact(a):
    return decimal.Decimal(a) / 4, not decimal.getcontext().flags[decimal.Inexact]


def is_exact_here(a):
    with decimal.localcontext() as inner:
        return decimal.Decimal(a) / 4, bool(inner.flags[decimal.Inexact])


def quarter(a):
    return decimal.Decimal(a) / 4


def start_again(a):
    decimal.getcontext().clear_flags()
    return decimal.Decimal(a)


@pytest.mark.parametrize("function", [is_exact, is_exact_here])
def test_signals_raised_before_count_for_code_that_asks(function, context, enabled):
    memo = nectar.memo(function)
    first = memo(1)
    context.flags[decimal.Inexact] = True
    assert memo(1) == function(1) != first
    context.clear_flags()
    assert memo(1) == first


def test_a_function_that_takes_signals_back_is_not_kept_where_there_were_any(context, enabled):
    memo = nectar.memo(start_again)
    context.flags[decimal.Inexact] = True
    memo(1)
    nectar.session.current().settle()
    context.flags[decimal.Inexact] = True
    memo(1)
    assert not context.flags[decimal.Inexact]


def test_signals_of_a_context_that_is_handed_over_count(context, enabled):
    memo = nectar.memo(lambda given: bool(given.flags[decimal.Inexact]))
    assert memo(context) is False
    context.flags[decimal.Inexact] = True
    assert memo(context) is True


def test_other_code_does_not_mind_signals(context):
    before = fingerprint(quarter)
    context.flags[decimal.Inexact] = True
    assert fingerprint(quarter) == before
