"""What several ask for at the same time is computed once: the others wait, and none of them for ever."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar.catalog.state import Granted, Taken
from nectar.dialects.spark import looking, streams
from nectar.model.entry import Reservation

SOURCE = str(Path(nectar.__file__).parents[1])
SECONDS = 60.0  # until a test gives up


def frame(spark, n=5):
    return spark.range(n).agg(F.sum("id").alias("s"))


@pytest.fixture
def claims(monkeypatch):
    """The queries that were claimed, as they are claimed."""
    made, plain = [], looking.claim

    def claim(query):
        made.append(query)
        return plain(query)

    monkeypatch.setattr(looking, "claim", claim)
    return made


def is_free(session, query):
    """Whether somebody else may compute a query now."""
    answer = session.catalog.reserve(query.keyed.root.key, 1.0)
    if isinstance(answer, Granted):
        session.catalog.release(answer.reservation)
    return not isinstance(answer, Taken)


def held_elsewhere(session, key, seconds=SECONDS):
    """Another process computes a key, and says so."""
    asked = Reservation(key, "of-another", "another-machine:1", session.clock.now() + seconds)
    assert isinstance(session.catalog.index.reserve(asked, session.clock.now()), Granted)
    return asked


def test_whoever_asks_meanwhile_gets_what_comes_of_it(spark, new_session, enabled, claims):
    begun, may_end = threading.Event(), threading.Event()
    plain = streams.Recorded._next

    def slowly(self):
        begun.set()
        assert may_end.wait(SECONDS)
        return plain(self)

    other = new_session()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(streams.Recorded, "_next", slowly)
        first = pool.submit(lambda: (frame(spark).collect(), nectar.last_run().parts[-1].outcome))
        assert begun.wait(SECONDS)
        second = pool.submit(lambda: (frame(other).collect(), nectar.last_run().parts[-1].outcome))
        while len(claims) < 2:
            time.sleep(0.01)
        assert not second.done()
        may_end.set()
        rows, what = first.result(SECONDS)
        assert what == "computed"
        assert second.result(SECONDS) == (rows, "reused")
    assert is_free(enabled, claims[0])


def test_what_another_process_has_made_meanwhile_is_taken(spark, new_session, enabled, claims, outcome, monkeypatch):
    """Also where parts were known already, which nobody needs any more."""
    expected, _, _ = outcome(lambda: frame(spark).collect())
    plain = looking.look_up

    def too_early(query):
        plain(query)
        query.forget_known()

    monkeypatch.setattr(looking, "look_up", too_early)
    assert outcome(lambda: frame(new_session()).collect())[:2] == (expected, "reused")


def test_a_computation_that_fails_lets_others_try(spark, new_session, enabled, claims):
    def broken(n):
        raise ValueError("on purpose")

    made = spark.range(3).select(F.udf(broken, "long")("id").alias("n"))
    with pytest.raises(Exception, match="on purpose"):
        made.collect()
    assert is_free(enabled, claims[0])


def test_a_result_that_is_not_kept_lets_others_try(spark, enabled, claims, monkeypatch):
    monkeypatch.setattr(type(enabled.catalog), "worth_keeping", lambda *_: "not kept: too cheap")
    frame(spark).collect()
    enabled.settle()
    assert "too cheap" in nectar.last_run().parts[-1].keeping
    assert is_free(enabled, claims[0])


def test_names_that_change_meanwhile_let_others_try(spark, enabled, claims, monkeypatch):
    from nectar.dialects.spark.query import Query

    monkeypatch.setattr(Query, "names_changed", property(lambda self: "they changed"))
    frame(spark).collect()
    enabled.settle()
    assert is_free(enabled, claims[0])


def test_a_stream_that_nobody_reads_to_its_end_lets_others_try(spark, enabled, claims):
    rows = spark.range(300_000).select("id", F.lpad(F.col("id").cast("string"), 100, "x").alias("t")).toLocalIterator()
    next(rows)
    assert claims[0].reservation is not None
    assert not enabled.reservations._held  # nobody renews it: it ends by itself
    rows.close()
    deadline = time.monotonic() + SECONDS
    while not is_free(enabled, claims[0]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_free(enabled, claims[0])


def test_a_stream_that_is_read_while_the_same_is_asked_for(spark, enabled):
    """By the one who would wait for itself."""
    made = spark.range(300_000).select("id", F.lpad(F.col("id").cast("string"), 100, "x").alias("t"))
    rows = made.toLocalIterator()
    next(rows)
    assert len(made.collect()) == 300_000
    assert sum(1 for _ in rows) == 299_999


def test_nobody_waits_longer_than_a_reservation_lasts(spark, enabled, claims, outcome, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(type(enabled.catalog), "worth_keeping", lambda *_: "not kept: too cheap")
        outcome(lambda: frame(spark).collect())
    held_elsewhere(enabled, claims[0].keyed.root.key, seconds=1.0)
    assert not is_free(enabled, claims[0])
    assert outcome(lambda: frame(spark).collect())[1] == "computed"


def test_with_refresh_nobody_waits(home, new_session, monkeypatch, claims):
    nectar.enable(home=home, reserve=0, refresh=True)
    frame(new_session()).collect()
    assert claims[0].reservation is None
    nectar.disable()


@engines.only_sail
def test_two_processes_compute_once(tmp_path):
    program = tmp_path / "main.py"
    program.write_text(
        textwrap.dedent(f"""
        import sys, time
        import nectar
        nectar.enable(home={str(tmp_path / "home")!r}, reserve=0)
        from pyspark.sql import SparkSession, functions as F

        @nectar.pure
        def slow(n):
            with open({str(tmp_path / "calls")!r}, "a") as file:
                file.write("one\\n")
            time.sleep(3)
            return n + 1

        spark = SparkSession.builder.getOrCreate()
        spark.range(2).count()
        print("ready", flush=True)
        sys.stdin.readline()
        rows = spark.range(1).select(F.udf(slow, "long")("id").alias("n")).collect()
        print(rows[0].n, nectar.last_run().parts[-1].outcome)
    """)
    )
    command = [sys.executable, str(program)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    for each in both:
        assert each.stdout.readline().strip() == "ready"
    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    said = sorted(each.communicate(timeout=SECONDS)[0].strip() for each in both)
    assert said == ["1 computed", "1 reused"]
    assert (tmp_path / "calls").read_text().splitlines() == ["one"]
