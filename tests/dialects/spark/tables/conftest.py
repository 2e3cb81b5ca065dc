"""Tables of a Spark server, and sessions that begin when they have been there for a while."""

import secrets
import time

import pytest

import nectar

A_MOMENT = 1.1  # seconds: the server tells when a table was made to the second


@pytest.fixture(autouse=True)
def clocks_agree(monkeypatch):
    pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)
    from nectar.dialects.spark import tables

    monkeypatch.setattr(tables, "_GUARD", 0.0)


@pytest.fixture
def name(new_session):
    """The name of a table that is gone after the test."""
    made = f"t_{secrets.token_hex(6)}"
    yield made
    nectar.disable()
    session = new_session()
    for each in (made, f"{made}_2"):
        session.sql(f"drop table if exists {each}")


@pytest.fixture
def later(enabled, new_session):
    """Makes a session that begins when everything that is there has been there for a while."""

    def make():
        time.sleep(A_MOMENT)
        return new_session()

    return make


@pytest.fixture
def clicks(spark, name, log):
    """A table over a folder of the test's own."""
    spark.sql(f"create table {name} using parquet location '{log}'")
    return name
