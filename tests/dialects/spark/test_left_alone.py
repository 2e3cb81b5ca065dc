"""Spark queries that Nectar cannot help run without it; parts that do not pay are not written; all of it is counted."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar.dialects.spark import persisted, reusing
from nectar.dialects.spark.timing import Timing, is_write
from nectar.overhead.steering import Steering
from nectar.report.run import Part


class Timer:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Engine:
    """An engine whose queries take as long as a test says."""

    seconds = 0.001
    runs = 0


@pytest.fixture
def steered(enabled, log):
    """The session with a budget, and a clock that only the test moves: looks take no time at all."""
    enabled.steering = Steering(0.02, 0.05, None, Timer(), "", age=0.0)
    enabled.steering.sites.figures["look"] = 0.005
    return enabled


@pytest.fixture
def slow(steered, monkeypatch):
    engine, plain = Engine(), Timing.computing
    seen = set()

    @contextmanager
    def computing(self):
        with plain(self):
            if self not in seen:
                seen.add(self)
                engine.runs += 1
                steered.steering.timer.now += engine.seconds
            yield

    monkeypatch.setattr(Timing, "computing", computing)
    for known in (reusing._cheap, reusing._failed, reusing._took):
        known.clear()
    return engine


def day(spark, log, least=0):
    return spark.read.parquet(str(log / "day-1.parquet")).filter(f"seconds >= {least}")


def collected(frame):
    return frame.collect()


def test_a_quick_site_is_left_alone_after_one_look(spark, log, steered, slow):
    for least in range(10):
        assert len(collected(day(spark, log, least))) == 120 - max(0, least - 1)
    assert slow.runs == 10
    assert (steered.totals.looked_at, steered.totals.alone) == (1, 9)
    assert nectar.last_run().parts == []
    assert str(nectar.last_run()) == "nectar: nothing to reuse: 1 query left alone, quicker than looking for it"
    assert "9 queries left alone" in str(steered.totals)
    (site,) = steered.steering.sites._known.values()
    assert site.name.endswith(f"test_left_alone.py:{collected.__code__.co_firstlineno + 1}")


def test_a_slow_site_is_looked_at_and_reused(spark, log, steered, slow):
    slow.seconds = 2.0
    first = collected(day(spark, log, 60))
    assert nectar.last_run().parts[0].keeping in ("being kept", "kept")
    assert steered.settle(30)
    assert collected(day(spark, log, 60)) == first
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"]
    assert slow.runs == 1
    (site,) = steered.steering.sites._known.values()
    assert (site.looks, site.hits, site.kept_now) == (2, 1, True)
    assert site.seconds == pytest.approx(2.0)
    assert steered.steering.ledger.saved == pytest.approx(2.0)


def test_nothing_is_looked_at_once_the_budget_is_used_up(spark, log, steered, slow):
    steered.steering.ledger.spend("looking up", 1000)
    slow.seconds = 2.0
    assert len(collected(day(spark, log))) == 120
    assert (steered.totals.looked_at, steered.totals.waived) == (0, 1)
    assert "1 query not looked at, to keep within the setting overhead" in str(steered.totals)


def test_what_loading_took_does_not_stop_the_first_look(spark, log, steered, slow):
    steered.steering.ledger.spend("starting", 1000)
    collected(day(spark, log))
    assert steered.totals.looked_at == 1


def test_a_quick_result_is_not_written(spark, log, steered, slow):
    collected(day(spark, log))
    (part,) = nectar.last_run().parts
    assert part.keeping.startswith("not kept: computing it took 1 ms, and what is as quick is left alone")


def test_whoever_caches_a_frame_gets_looks(spark, log, steered, slow):
    frame = day(spark, log).groupBy("page").count().cache()
    try:
        for least in range(3):
            collected(frame.filter(f"count > {least}"))
    finally:
        frame.unpersist()
    assert steered.totals.alone == 0
    assert steered.totals.looked_at >= 3
    assert not persisted.is_anything_asked_for()


def test_a_site_whose_queries_are_refused_is_left_alone_if_they_are_quick(spark, log, steered, slow):
    for _ in range(5):
        collected(day(spark, log).withColumn("r", F.rand()))
    assert (steered.totals.looked_at, steered.totals.alone) == (1, 4)


def test_what_is_left_alone_sees_what_changed(spark, log, steered, slow):
    for _ in range(3):
        assert len(collected(day(spark, log))) == 120
    (log / "day-1.parquet").write_bytes((log / "day-2.parquet").read_bytes())
    assert min(row.seconds for row in collected(day(spark, log))) == 2


def test_a_session_that_was_told_something_unheard_is_looked_at_no_more(spark, log, enabled, monkeypatch):
    """Names may mean anything then; and what looks at queries may be there the next moment."""

    def fail(self):
        raise ImportError("no")

    with monkeypatch.context() as patch:
        patch.setattr("nectar.dialects.spark.interceptor.Interceptor._loaded", fail)
        day(spark, log).createOrReplaceTempView("clicks")
    for least in (0, 60):
        day(spark, log, least).createOrReplaceTempView("clicks")
        assert len(collected(spark.table("clicks"))) == 120 - max(0, least - 1)
    assert enabled.totals.cached == enabled.totals.kept == 0
    assert enabled.totals.looked_at == 2
    assert nectar.last_run().why == "query: what looks at queries could not be loaded"


# reports


def test_failed_queries_are_counted(spark, log, steered, slow):
    for _ in range(3):
        with pytest.raises(PySparkException):
            collected(day(spark, log).select("nowhere"))
    assert steered.totals.failed == 3
    assert steered.totals.looked_at == 0
    assert str(steered.totals) == "nectar: nothing to reuse: 3 queries failed"


def test_refused_queries_are_counted_once_each(spark, log, enabled):
    for _ in range(2):
        collected(day(spark, log).withColumn("r", F.rand()))
    assert str(enabled.totals) == "nectar: 0 of 2 queries from cache, nothing kept; 2 queries cannot be kept"


def test_writes_are_counted(spark, log, enabled, tmp_path):
    day(spark, log).write.parquet(str(tmp_path / "out"))
    assert str(enabled.totals) == "nectar: nothing to reuse: 1 query not kept: its result went into a file or a table"


def test_mistakes_of_nectar_are_counted_as_queries_that_ran(spark, log, enabled, monkeypatch):
    def fail(*_):
        raise RuntimeError("no")

    monkeypatch.setattr("nectar.dialects.spark.looking.query_of", fail)
    assert len(collected(day(spark, log))) == 120
    assert enabled.totals.looked_at == 1


def test_queries_that_ran_beside_each_other_share_the_time(steered):
    first, second = Timing(steered), Timing(steered)
    with first.computing(), second.computing():
        steered.steering.timer.now += 4.0
    assert first.engine == second.engine == 4.0
    assert first.share_of(4.0) == second.share_of(4.0) == 2.0


def test_interrupted_queries_are_counted(spark, log, enabled, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("nectar.dialects.spark.streams.Recorded._next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collected(day(spark, log))
    assert str(enabled.totals) == "nectar: nothing to reuse: 1 query interrupted"


@pytest.mark.parametrize(
    ("text", "writes"), [("INSERT INTO t VALUES (1)", True), ("select 1", False), ("", False), ("merge into t", True)]
)
def test_statements_that_write(text, writes):
    from pyspark.sql.connect.proto import base_pb2

    plan = base_pb2.Plan()
    plan.command.sql_command.sql = text
    assert is_write(plan) == writes


# parts


def joined(spark, log, least):
    left, right = day(spark, log), spark.read.parquet(str(log / "day-2.parquet"))
    both = left.join(right.withColumnRenamed("seconds", "more"), "page")
    return both.filter(f"more > {least}").groupBy("page").count()


def counted(spark, log, least):
    return day(spark, log).groupBy("page").agg(F.count("*").alias("n")).filter(f"n > {least}").orderBy("page")


@pytest.fixture
def tried(monkeypatch):
    """Parts that were given to the engine to write; it is stopped each time."""
    found = []

    def write(client, relation, *_):
        found.append(relation.WhichOneof("rel_type"))
        return "it takes more time or space than it is worth"

    monkeypatch.setattr(reusing, "write", write)
    return found


def test_a_part_that_would_not_pay_is_not_tried(spark, log, steered, slow, tried, monkeypatch):
    slow.seconds = 0.06
    for least in range(6):
        collected(joined(spark, log, -least))
    assert tried == ["join"]  # it is small
    reusing._cheap.clear()
    steered.steering.sites.figures["writing"] = 1000.0  # bytes a second
    monkeypatch.setattr(reusing, "was_in_vain", lambda *_: "")
    for least in range(6):
        collected(joined(spark, log, -least))
    assert tried == ["join"]


def test_what_was_tried_in_vain_is_not_tried_by_later_processes(spark, log, steered, slow, tried):
    slow.seconds = 2.0
    for least in range(4):
        collected(counted(spark, log, -least))
    assert tried == ["aggregate"]
    reusing._cheap.clear()  # as in another process
    steered.catalog.observed._known.clear()
    for least in range(4, 8):
        collected(counted(spark, log, -least))
    assert tried == ["aggregate"]
    assert "writing parts" in steered.steering.ledger.spent


def test_what_was_tried_in_vain_is_tried_over_far_more_files(spark, log, steered, slow, tried):
    slow.seconds = 2.0
    for least in range(4):
        collected(counted(spark, log, -least))
    (log / "day-1.parquet").write_bytes(large_day())
    for least in range(4):
        collected(counted(spark, log, -least))
    assert tried == ["aggregate", "aggregate"]


def large_day():
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    rows = {"page": [os.urandom(8).hex() for _ in range(20_000)], "seconds": range(20_000), "day": [1] * 20_000}
    pa.parquet.write_table(pa.table(rows), sink)
    return bytes(sink.getvalue())


def test_a_part_may_take_no_longer_than_pays(spark, log, steered, slow):
    frame = counted(spark, log, 0)
    from nectar.dialects.spark.query import query_of

    root = frame._plan.to_proto(spark.client).root
    found = query_of(steered, spark.client, root, spark.client._nectar.scope, Part(""))
    [number] = [at for at, node in enumerate(found.keyed.program.nodes) if node.text == "aggregate"]
    reusing._took[found.keyed.program.nodes[number].key] = 2.0
    limits = reusing._limits(found, number)
    assert limits.seconds == 3.0
    assert limits.size == steered.steering.paying(2.0, reusing._SLOWER) < reusing._EXPECTED


def test_a_part_that_pays_is_written_and_reused(spark, log, steered, slow, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)  # the engine itself is quick
    slow.seconds = 5.0
    for least in range(4):
        assert len(collected(counted(spark, log, least))) == 3
    assert "aggregate" in [part.name.split(" ")[0] for part in nectar.last_run().parts if part.outcome == "reused"]


# processes


@engines.only_sail
def test_what_a_process_has_learned_is_there_for_the_next(tmp_path, log):
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
        "for least in range(3):\n    rows = spark.read.parquet(sys.argv[1]).filter(f'seconds > {least}').collect()\n"
        "print(len(rows), 'nectar.dialects.spark.looking' in sys.modules)\n"
    )
    home = tmp_path / "home"
    environment = {**os.environ, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0", "NECTAR_OVERHEAD": "2%"}
    environment.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", "nectar.cli", "run", "main.py", str(log / "day-1.parquet")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "118 True\n"
    (memory,) = (home / "programs").iterdir()
    found = json.loads(memory.read_text())
    assert [*found["sites"]] == [f"{script}:5"]
    assert found["sites"][f"{script}:5"][0] > 0
    assert found["sums"]["looking up"] > 0
    environment |= {"NECTAR_OVERHEAD": "0%", "NECTAR_OVERHEAD_FLOOR": "0ms"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "118 False\n", "nothing was looked at, and nothing was loaded for it"
    assert "no query" not in done.stderr
