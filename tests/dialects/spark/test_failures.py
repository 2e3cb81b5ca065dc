"""Whatever goes wrong in Nectar, a Spark program runs as it would without, and the log says once why."""

import logging

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines

import nectar
from nectar.dialects.spark import keying, looking, query, servers


def broken(*_, **__):
    raise ZeroDivisionError("a mistake")


def warnings(caplog):
    return [each for each in caplog.records if each.levelno >= logging.WARNING and each.name.startswith("nectar")]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (looking, "query_of"),
        (query, "keyed"),
        (query, "settings_of"),
        (query, "engine_of"),
        (keying, "steps_of"),
        (looking, "responses"),
        (looking, "look_up"),
        (looking, "put_in"),
        (looking, "note_cost"),
        (query.Query, "reused_parts"),
        (query.Query, "keep"),
        (query.Recording, "add"),
    ],
)
def test_a_mistake_is_logged_once_and_the_program_runs(spark, enabled, monkeypatch, caplog, module, name):
    spark.range(7).count()
    enabled.settle()
    monkeypatch.setattr(module, name, broken)
    for number in (7, 8, 8):
        assert spark.range(number).count() == number
    enabled.settle()
    assert len(warnings(caplog)) <= 1
    assert all("a mistake" in each.getMessage() for each in warnings(caplog))
    if name not in ("responses",):
        assert len(warnings(caplog)) == 1


def test_a_result_that_cannot_be_written_is_computed_again(spark, enabled, monkeypatch, outcome):
    monkeypatch.setattr(query.Query, "_write", broken)
    for _ in range(2):
        assert outcome(spark.range(7).count)[:2] == (7, "computed")


def test_a_result_that_is_gone_is_computed_again(spark, enabled, outcome, home):
    made = spark.range(100_000)
    assert outcome(made.toArrow)[1] == "computed"
    files = [
        path for path in home.rglob("*") if path.is_file() and path.stat().st_size > 100_000 and "data" in path.parts
    ]
    assert files
    for path in files:
        path.unlink()
    again, what, _ = outcome(made.toArrow)
    assert (again.num_rows, what) == (100_000, "computed")


@engines.only_sail
def test_a_server_of_which_nobody_knows_the_version_is_left_alone(spark, enabled, monkeypatch, caplog):
    monkeypatch.setattr(servers, "_started", {})
    for _ in range(2):
        assert spark.range(3).count() == 3
        part = nectar.last_run().parts[-1]
        assert part.outcome == "uncacheable"
        assert "does not tell its own version" in part.reason
    assert len(warnings(caplog)) == 1


@engines.only_sail
def test_a_server_of_a_parent_process_is_left_alone(spark, enabled, monkeypatch):
    monkeypatch.setattr(servers.os, "getpid", lambda: -1)
    assert spark.range(3).count() == 3
    assert "another process" in nectar.last_run().parts[-1].reason


@engines.only_sail
def test_a_server_in_a_cluster_is_left_alone(spark, server, enabled, monkeypatch):
    import os

    monkeypatch.setitem(servers._started, server, (os.getpid(), ("SAIL_MODE=kubernetes-cluster",)))
    assert spark.range(3).count() == 3
    assert "kubernetes-cluster" in nectar.last_run().parts[-1].reason


@engines.only_sail
def test_the_environment_of_the_server_counts(spark, server, enabled, monkeypatch, outcome):
    import os

    outcome(spark.range(3).count)
    monkeypatch.setitem(servers._started, server, (os.getpid(), ("SAIL_EXECUTION__BATCH_SIZE=1",)))
    assert outcome(spark.range(3).count)[1] == "computed"


def test_a_stream_that_is_not_read_to_its_end_keeps_nothing(spark, enabled, outcome):
    made = spark.range(300_000)
    iterator = made.toLocalIterator()
    next(iterator)
    del iterator
    enabled.settle()
    assert outcome(made.toArrow)[1] == "computed"


# servers that go, or change


def said_by(action):
    """The type and the words of what a failing action raises, without what differs each time."""
    import re

    with pytest.raises(Exception) as raised:
        action()
    words = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "", str(raised.value))
    return type(raised.value), words


@pytest.fixture
def impatient(monkeypatch):
    """Clients that try a call once."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    plain = DefaultPolicy.__init__
    monkeypatch.setattr(DefaultPolicy, "__init__", lambda self, **given: plain(self, **{**given, "max_retries": 0}))


def with_and_without(prepared, home):
    """What a program hears with Nectar, and without."""
    heard = []
    for under in (True, False):
        nectar.enable(home=home, reserve=0) if under else nectar.disable()
        heard.append(said_by(prepared()))
    nectar.disable()
    return heard


def test_a_server_that_is_not_there_is_told_as_without_nectar(enabled, home, impatient, caplog):
    from pyspark.sql.connect.session import SparkSession

    def prepared():
        session = SparkSession(f"sc://127.0.0.1:{engines._free_port()}")
        return lambda: session.range(3).count()

    under, plain = with_and_without(prepared, home)
    assert under == plain
    assert len(warnings(caplog)) == 1
    assert "cannot be asked" in warnings(caplog)[0].getMessage()


@pytest.fixture
def own_engine():
    """A server that a test may kill."""
    started = engines.Sail() if engines.ENGINE == "sail" else engines.Spark()
    yield started
    started.inner.stop() if engines.ENGINE == "sail" and started.inner.running else started.stop()


def kill(engine):
    engine.inner.stop() if engines.ENGINE == "sail" else engine.kill()


def test_a_server_that_goes_between_two_queries(enabled, home, impatient, own_engine, caplog):
    from pyspark.sql.connect.session import SparkSession

    nectar.disable()
    plain = SparkSession(own_engine.address)
    assert plain.range(3).count() == 3
    nectar.enable(home=home, reserve=0)
    session = SparkSession(own_engine.address)
    assert session.range(3).count() == 3
    nectar.session.current().settle()
    assert session.range(3).count() == 3
    assert nectar.last_run().parts[-1].outcome == "reused"
    kill(own_engine)
    under = said_by(lambda: session.range(3).count())
    assert under == said_by(lambda: plain.range(3).count())
    assert len(warnings(caplog)) == 1


@engines.only_spark  # Sail in this process finishes what it has begun
def test_a_query_that_the_server_does_not_live_to_finish(enabled, home, impatient, own_engine):
    import threading
    import time

    from pyspark.sql import functions as F
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.types import LongType

    def slow(n):
        time.sleep(0.2)
        return n

    nectar.pure(slow)
    session = SparkSession(own_engine.address)
    made = session.range(400, numPartitions=1).select(F.udf(slow, LongType())("id"))
    assert session.range(3).count() == 3
    stopper = threading.Timer(3, kill, [own_engine])
    stopper.start()
    kind, words = said_by(made.collect)
    stopper.join()
    assert kind.__module__.startswith("pyspark.")
    assert "nectar" not in words.lower()
    assert nectar.last_run().parts[-1].outcome in ("failed", "uncacheable")
    assert nectar.last_run().parts[-1].keeping == ""


@engines.only_spark
def test_a_server_that_was_started_again_has_forgotten_the_session(enabled, home, own_engine, caplog):
    from pyspark.sql.connect.session import SparkSession

    nectar.disable()
    plain = SparkSession(own_engine.address)
    assert plain.range(3).count() == 3
    nectar.enable(home=home, reserve=0)
    session = SparkSession(own_engine.address)
    assert session.range(3).count() == 3
    nectar.session.current().settle()
    own_engine.kill()
    own_engine.start()
    assert said_by(lambda: session.range(3).count()) == said_by(lambda: plain.range(3).count())
    assert len(warnings(caplog)) == 1
    anew = SparkSession(own_engine.address)
    assert anew.range(3).count() == 3
    assert nectar.last_run().parts[-1].outcome == "reused"


def test_another_version_of_the_client_has_results_of_its_own(spark, outcome, monkeypatch):
    from nectar.dialects.spark import circumstances

    outcome(spark.range(3).count)
    monkeypatch.setattr(circumstances, "_versions", lambda: ("another",))
    assert outcome(spark.range(3).count)[1] == "computed"


@engines.only_spark
def test_another_version_of_the_server_has_results_of_its_own(spark, outcome, monkeypatch):
    from nectar.dialects.spark.connections import Connection

    outcome(spark.range(3).count)
    monkeypatch.setattr(Connection, "version", lambda self: "9.9.9")
    assert outcome(spark.range(3).count)[1] == "computed"


def test_a_function_that_cannot_be_read_is_told_once(spark, outcome, caplog):
    import random

    from pyspark.sql import functions as F

    def lucky_number(n):
        return n + random.randrange(10)

    made = spark.range(2).select(F.udf(lucky_number, "long")("id"))
    for _ in range(2):
        assert outcome(lambda: len(made.collect()))[:2] == (2, "uncacheable")
    assert len(warnings(caplog)) == 1
    assert "lucky_number" in warnings(caplog)[0].getMessage()


@engines.only_spark
def test_a_place_that_the_server_does_not_see_is_told_once(spark, log, enabled, monkeypatch, caplog):
    from nectar.dialects.spark import sight

    monkeypatch.setattr(sight, "is_neighbour", lambda endpoint: False)
    monkeypatch.setattr(sight, "_is_shared", lambda connection, folder: False)
    for _ in range(2):
        assert spark.read.parquet(str(log)).count() == 240
        assert nectar.last_run().parts[-1].outcome == "uncacheable"
    assert len(warnings(caplog)) == 1
    assert "does not see the files of this machine" in warnings(caplog)[0].getMessage()


def test_a_catalog_that_cannot_be_opened_is_told_once(new_session, monkeypatch, tmp_path, caplog):
    (tmp_path / "home").write_text("a file, where the folder of the store should be")
    monkeypatch.setattr(nectar.session, "_chosen", None)
    monkeypatch.setattr(nectar.session, "_disabled", False)
    nectar.enable(home=tmp_path / "home", reserve=0)
    try:
        session = new_session()
        for _ in range(2):
            assert session.range(3).count() == 3
    finally:
        nectar.disable()
    assert len(warnings(caplog)) == 1
    assert "nothing is reused or kept" in warnings(caplog)[0].getMessage()
