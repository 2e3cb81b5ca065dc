"""Whatever goes wrong in Nectar, a Spark program runs as it would without, and the log says once why."""

import logging

import pytest

pytest.importorskip("pyspark.sql.connect.session", reason="Spark is not installed: make test-sail")
pytest.importorskip("pysail", reason="Sail is not installed: make test-sail")

import nectar
from nectar.dialects.spark import interceptor, keying, query, servers


def broken(*_, **__):
    raise ZeroDivisionError("a mistake")


def warnings(caplog):
    return [each for each in caplog.records if each.levelno >= logging.WARNING and each.name.startswith("nectar")]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (interceptor, "query_of"),
        (query, "keyed"),
        (query, "circumstances_of"),
        (query, "engine_of"),
        (keying, "steps_of"),
        (interceptor, "responses"),
        (interceptor, "look_up"),
        (interceptor, "put_in"),
        (interceptor, "note_cost"),
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


def test_a_server_elsewhere_is_left_alone(spark, enabled, monkeypatch):
    monkeypatch.setattr(servers, "_started", {})
    assert spark.range(3).count() == 3
    part = nectar.last_run().parts[-1]
    assert part.outcome == "uncacheable"
    assert "not one of this process" in part.reason


def test_a_server_of_a_parent_process_is_left_alone(spark, enabled, monkeypatch):
    monkeypatch.setattr(servers.os, "getpid", lambda: -1)
    assert spark.range(3).count() == 3
    assert "another process" in nectar.last_run().parts[-1].reason


def test_a_server_in_a_cluster_is_left_alone(spark, server, enabled, monkeypatch):
    import os

    monkeypatch.setitem(servers._started, server, (os.getpid(), ("SAIL_MODE=kubernetes-cluster",)))
    assert spark.range(3).count() == 3
    assert "kubernetes-cluster" in nectar.last_run().parts[-1].reason


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
