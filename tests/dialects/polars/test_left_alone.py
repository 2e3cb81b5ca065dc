"""Queries that Nectar cannot help run without it, until they become slow."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import polars as pl
import pytest
from polars.lazyframe import engine_config
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars.incremental import advance
from nectar.overhead import allowance, process
from nectar.overhead.steering import Steering
from nectar.report.totals import RunTotals
from nectar.rewrite.cost import Rates
from nectar.store.inputs import local
from nectar.store.inputs.mounts import SystemMounts


class Timer:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Slow:
    """An engine whose queries take as long as a test says."""

    def __init__(self, inner, timer):
        self._inner, self._timer, self.seconds, self.runs = inner, timer, 0.001, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def collect(self, *arguments, **options):
        self._timer.now += self.seconds
        self.runs += 1
        return self._inner.collect(*arguments, **options)


@pytest.fixture
def steered(log, enabled):
    """The session with a budget, and a clock that only the test moves: looks take no time at all."""
    enabled.steering = Steering(0.02, 0.05, None, Timer(), "", age=0.0)
    enabled.steering.sites.figures["look"] = 0.005
    return enabled


@pytest.fixture
def engine(steered, monkeypatch):
    installed = engine_config._ENGINE_BY_NAME["auto"]
    slow = Slow(installed.inner, steered.steering.timer)
    monkeypatch.setattr(installed, "inner", slow)
    return slow


@pytest.fixture
def old_files(monkeypatch):
    """All files were there long before this process began, on a disk."""
    monkeypatch.setattr(process, "began", lambda: time.time() + 400)
    monkeypatch.setattr(SystemMounts, "kind", lambda self, path, device, now: "ext4")


def day(log, least=0):
    return pl.scan_parquet(log / "day-1.parquet").filter(pl.col("seconds") >= least)


def collected(lf):
    return lf.collect()


def outcomes():
    return [part.outcome for part in nectar.last_run().parts]


def test_a_quick_site_is_left_alone_after_one_look(steered, engine, log):
    for least in range(50):
        assert collected(day(log, least)).height == 120 - max(0, least - 1)
    assert engine.runs == 50
    assert steered.totals.looked_at == 1
    assert steered.totals.alone == 49
    assert outcomes() == []
    assert str(nectar.last_run()) == "nectar: nothing to reuse: 1 query left alone, quicker than looking for it"
    assert "49 queries left alone" in str(steered.totals)


def test_whoever_names_the_engine_gets_a_look(steered, engine, log):
    for least in range(5):
        nectar.collect(day(log, least))
    assert steered.totals.looked_at == 5
    assert steered.totals.alone == 0


def test_a_quick_site_that_becomes_slow_is_reused_from_its_second_slow_run(steered, engine, log, old_files):
    expected = day(log, 60).collect(engine="in-memory")
    for least in range(30):
        collected(day(log, least))
    engine.seconds = 2.0
    ran = engine.runs
    assert_frame_equal(collected(day(log, 60)), expected)
    assert nectar.last_run().parts[0].keeping in ("being kept", "kept")
    assert steered.settle(30)
    assert_frame_equal(collected(day(log, 60)), expected)
    assert outcomes() == ["reused"]
    assert engine.runs == ran + 1


def show(lf):
    """What many programs have: all of their queries stand at its line."""
    return lf.collect()


def test_slow_queries_through_the_function_that_runs_quick_ones_too(steered, engine, log, old_files):
    """They were kept, and in no later run looked for: tiny ones had made their line a quick one."""

    def program():
        engine.seconds = 0.001
        for least in range(3):
            show(day(log, least))
        engine.seconds = 2.0
        show(day(log, 60))
        return nectar.last_run()

    program()
    assert steered.settle(30)
    (entry,) = enabled_entries(steered, 2.0)
    assert entry.seconds == pytest.approx(2.0)
    ran = engine.runs
    assert [part.outcome for part in program().parts] == ["reused"]
    assert engine.runs <= ran + 3


def enabled_entries(enabled, least):
    return [entry for entry in enabled.catalog.index.entries() if entry.seconds >= least]


def test_parts_that_are_found_count_for_their_site_by_what_they_save(steered, engine, tmp_path, monkeypatch):
    """Where nothing but parts was found, as with files that are added to, looks used to end with the budget."""
    monkeypatch.setattr(advance.rates, "of", lambda catalog: Rates(starting=0.0, opening=0.0, merging=0.0))
    steered.steering.is_free = True
    for count in range(1, 5):
        pl.DataFrame({"page": ["a", "b"], "seconds": [count, 1]}).write_parquet(tmp_path / f"{count:02}.parquet")
        collected(pl.scan_parquet(tmp_path / "*.parquet").group_by("page").agg(pl.col("seconds").sum()))
        assert steered.settle(30)
    assert set(outcomes()) == {"reused", "computed"}
    (site,) = [each for each in steered.steering.sites._known.values() if each.hits]
    saved = sum(part.saved for part in nectar.last_run().parts)
    assert 0.0 < site.hits < 2.0
    assert steered.steering.ledger.saved >= saved > 0.0


@pytest.mark.parametrize(
    "query",
    ["function", "folder", "changed", "refused", "other files", "memory", "series", "hidden series", "relative"],
)
def test_what_ran_alone_is_not_kept_unless_its_key_is_certain(steered, engine, log, monkeypatch, old_files, query):
    if query == "changed":
        monkeypatch.setattr(process, "began", time.time)
    monkeypatch.chdir(log)
    frames = {
        "function": lambda: day(log).with_columns(pl.col("page").map_elements(str.upper, return_dtype=pl.String)),
        "folder": lambda: pl.scan_parquet(log / "*.parquet"),
        "changed": lambda: day(log),
        "refused": lambda: day(log).with_columns(pl.col("seconds").shuffle()),
        "other files": lambda: used,
        "memory": lambda: day(log).join(pl.LazyFrame({"page": ["a", "b"]}), on="page"),
        "series": lambda: day(log).filter(pl.col("page").is_in(pl.Series(["a"] * 50).implode())),
        "hidden series": lambda: day(log).with_columns(v=pl.concat_list(pl.col("seconds").cum_sum() + pl.Series([1]))),
        "relative": lambda: pl.scan_parquet("day-1.parquet"),
    }
    used = pl.scan_parquet(log / "*.parquet").filter(pl.col("seconds") > 3)
    used.collect_schema()
    for _ in range(30):
        collected(frames[query]())
    engine.seconds = 2.0
    if query == "other files":
        (log / "day-3.parquet").write_bytes((log / "day-1.parquet").read_bytes())
    collected(frames[query]())
    (part,) = nectar.last_run().parts
    assert steered.settle(30)
    assert part.keeping.startswith("not kept") or part.outcome == "uncacheable"
    assert not part.kept


def test_a_file_that_is_put_in_place_while_a_query_runs_alone(steered, engine, log, tmp_path, monkeypatch):
    """The key would be that of the new file, the result that of the old one."""
    new = tmp_path / "new.parquet"
    pl.DataFrame({"page": ["z"], "seconds": [99], "day": [9]}).write_parquet(new)
    for _ in range(30):
        collected(day(log))
    monkeypatch.setattr(local, "_UNWRITTEN", 0)
    monkeypatch.setattr(SystemMounts, "kind", lambda self, path, device, now: "ext4")
    began = time.time() + 2.5  # everything up to now is old, what comes is not
    monkeypatch.setattr(process, "began", lambda: began)
    time.sleep(max(0.0, began + 0.1 - time.time()))
    engine.seconds = 2.0
    plain = engine._inner.collect

    def replaced_meanwhile(*arguments, **options):
        found = plain(*arguments, **options)
        os.replace(new, log / "day-1.parquet")
        return found

    monkeypatch.setattr(engine, "_inner", type("E", (), {"collect": staticmethod(replaced_meanwhile), "name": "x"}))
    assert collected(day(log)).height == 120
    assert nectar.last_run().parts[0].keeping.startswith("not kept")
    monkeypatch.undo()
    assert steered.settle(30)
    assert collected(day(log)).height == 1


def test_errors_are_those_of_polars(steered, engine, log):
    for _ in range(3):
        with pytest.raises(pl.exceptions.ColumnNotFoundError):
            collected(day(log).select("nowhere"))
        collected(day(log))


def test_sinks_and_several_queries_are_left_alone_too(steered, engine, log, tmp_path):
    for number in range(10):
        day(log, number).sink_parquet(tmp_path / "out.parquet")
        assert pl.read_parquet(tmp_path / "out.parquet").height == 120 - max(0, number - 1)
    for number in range(10):
        first, second = pl.collect_all([day(log, number), day(log, number + 50)])
        assert (first.height, second.height) == (120 - max(0, number - 1), 71 - number)
    assert steered.totals.alone >= 18
    assert "went into a file" in str(steered.totals) or steered.totals.alone == 30


def test_queries_that_are_awaited_belong_to_where_they_are_awaited(steered, engine, log):
    async def main():
        return [await day(log, number).collect_async() for number in range(10)]

    assert [each.height for each in asyncio.run(main())] == [120 - max(0, number - 1) for number in range(10)]
    assert [site.name.rpartition("/")[2].split(":")[0] for site in steered.steering.sites._known.values()] == [
        "test_left_alone.py"
    ]
    assert steered.totals.alone == 9


def test_failed_queries_are_counted(log, enabled):
    with pytest.raises(pl.exceptions.InvalidOperationError):
        day(log).with_columns(pl.col("page").cast(pl.Int64)).collect()
    assert enabled.totals.failed == 1
    assert "1 query failed" in str(enabled.totals)


@pytest.mark.parametrize("is_looked_at", [True, False])
@pytest.mark.parametrize("collect", [collected, lambda lf: pl.collect_all([lf]), lambda lf: lf.sink_csv("x")])
def test_interrupted_queries_are_counted(log, steered, engine, monkeypatch, collect, is_looked_at):
    def stop(*_, **__):
        raise KeyboardInterrupt

    steered.steering.is_free = is_looked_at
    if not is_looked_at:
        steered.steering.ledger.spend("starting", 100.0)
    monkeypatch.setattr(engine, "_inner", SimpleNamespace(collect=stop, collect_all=stop, sink_csv=stop, name="x"))
    with pytest.raises(KeyboardInterrupt):
        collect(day(log))
    assert str(steered.totals) == "nectar: nothing to reuse: 1 query interrupted"


def test_a_query_that_is_interrupted_twice_at_once_is_counted(log, steered, engine, monkeypatch):
    """Of one Ctrl-C, Polars makes two: the second strikes where the first is handled."""
    count, struck = RunTotals.count_failed, []

    def strike(self, *arguments, **options):
        if not struck:
            struck.append(True)
            raise KeyboardInterrupt
        count(self, *arguments, **options)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunTotals, "count_failed", strike)
    monkeypatch.setattr(engine, "_inner", SimpleNamespace(collect=stop, name="x"))
    steered.steering.ledger.spend("starting", 100.0)
    with pytest.raises(KeyboardInterrupt):
        collected(day(log))
    assert str(steered.totals) == "nectar: nothing to reuse: 1 query interrupted"


def test_a_query_that_fails_is_told_alike_in_all_runs(log, steered, engine):
    told = []
    for is_free in (True, False):
        steered.steering.is_free = is_free
        with pytest.raises(pl.exceptions.ColumnNotFoundError):
            collected(day(log).select("nowhere"))
        told.append(str(steered.totals))
    assert told == ["nectar: nothing to reuse: 1 query failed", "nectar: nothing to reuse: 2 queries failed"]


def test_what_a_process_has_learned_is_there_for_the_next(tmp_path, log):
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nimport polars as pl\nfor number in range(40):\n"
        "    frame = pl.scan_parquet(sys.argv[1]).filter(pl.col('seconds') > number).collect()\n"
        "print(frame.height)\n"
    )
    home = tmp_path / "home"
    environment = {**os.environ, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0", "NECTAR_OVERHEAD": "2%"}
    command = [sys.executable, "-m", "nectar.cli", "run", "main.py", str(log / "day-1.parquet")]
    for runs in (1, 2):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "81\n"
        (memory,) = (home / "programs").iterdir()
        (name,) = found = json.loads(memory.read_text())["sites"]
        assert name == f"{script}:4"
        assert found[name][0] > 0, runs


@pytest.mark.parametrize("error", [ImportError, RecursionError, RuntimeError])
def test_what_looks_at_queries_cannot_be_loaded(enabled, log, monkeypatch, tmp_path, error):
    def fail(*_):
        raise error("no")

    monkeypatch.setattr("nectar.dialects.polars.engine._loaded", fail)
    assert day(log).collect().height == 120
    assert [each.height for each in pl.collect_all([day(log), day(log, 60)])] == [120, 61]
    day(log).sink_parquet(tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").height == 120


def test_a_home_that_was_deleted_stays_so(tmp_path, log, monkeypatch):
    with nectar.reuse(home=tmp_path / "gone", reserve=0) as run:
        day(log).collect()
    assert run.parts
    shutil.rmtree(tmp_path / "gone")
    for steering in list(session._steerings.values()):
        steering.remember()
    assert not (tmp_path / "gone").exists()


def test_failed_sinks_are_counted(enabled, log, tmp_path):
    with pytest.raises(OSError):
        day(log).sink_parquet(tmp_path / "nowhere" / "out.parquet")
    assert enabled.totals.failed == 1


def test_a_block_tells_what_was_left_alone_beside_its_parts(steered, engine, log):
    with session.running() as report:
        for least in range(5):
            collected(day(log, least))
    assert str(report).endswith("; 4 queries left alone, quicker than looking for them")


def test_what_nectar_writes_is_no_query_of_the_program(steered, engine, log):
    """A small result is written by Polars, through the same engine as the files of the program."""
    engine.seconds = 2.0
    collected(day(log, 60))
    assert steered.settle(30)
    (part,) = nectar.last_run().parts
    assert part.keeping == "kept"
    assert (steered.totals.looked_at, steered.totals.kept) == (1, 1)
    assert (steered.totals.alone, steered.totals.waived, steered.totals.unkept) == (0, 0, {})
    assert len(steered.steering.sites._known) == 1


@pytest.mark.parametrize("two", [False, True])
def test_a_new_file_that_there_is_no_time_to_read_is_not_read_by_us(steered, engine, log, monkeypatch, two):
    """Such as a log of gigabytes that is written to all the time, of which a query wants the first lines."""
    monkeypatch.setattr(allowance, "_SPEED", 1000.0)
    read, digest = [], local._digest
    monkeypatch.setattr(local, "_digest", lambda fd, size, *more: read.append(size) or digest(fd, size, *more))
    lf = day(log).head(3)
    if two:
        old = pl.scan_parquet(log / "day-2.parquet")
        lf = pl.concat([lf, old.head(3)])
    assert collected(lf).height == (6 if two else 3)
    (part,) = nectar.last_run().parts
    assert part.outcome == "uncacheable"
    assert "day-1.parquet, too much to be known by its content" in part.reason
    assert read == []


def test_queries_that_ran_beside_each_other_save_no_more_than_the_time_that_passed(log, enabled, monkeypatch):
    """Each of eight queries took as long as all of them: finding them saves that once."""
    installed = engine_config._ENGINE_BY_NAME["auto"]
    plain, started, ended = installed.inner.collect, threading.Barrier(4), threading.Barrier(4)
    timer = Timer()
    monkeypatch.setattr(enabled, "steering", Steering(timer=timer))

    def beside(*arguments, **options):
        if started.wait(60) == 0:
            timer.now += 8.0
        ended.wait(60)
        return plain(*arguments, **options)

    monkeypatch.setattr(installed, "inner", type("E", (), {"collect": staticmethod(beside), "name": "x"}))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda least: day(log, least).collect(), range(4)))
    assert enabled.settle(30)
    entries = [entry.seconds for entry in enabled.catalog.index.entries()]
    assert len(entries) == 4
    assert sum(entries) == pytest.approx(8.0)
