"""Every way to run a query goes through Nectar, and gives what Polars gives."""

import asyncio
import threading

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import collecting

ENGINES = ["auto", "in-memory", "streaming"]


@pytest.fixture
def lf(log):
    return pl.scan_parquet(f"{log}/*.parquet").group_by("page").agg(pl.col("seconds").sum()).sort("page")


@pytest.fixture
def expected(lf):
    """What plain Polars gives; asked for before Nectar is enabled."""
    return lf.collect()


@pytest.fixture
def known(expected, enabled, lf):
    """Nectar is on, and the query is known."""
    lf.collect()
    session.current().settle()
    return session.current()


def reused():
    return len(nectar.last_run().reused), len(nectar.last_run().computed)


@pytest.mark.parametrize("engine", ENGINES)
def test_collect(expected, enabled, lf, engine):
    assert_frame_equal(lf.collect(engine=engine), expected)
    assert reused() == (0, 1)
    session.current().settle()
    assert_frame_equal(lf.collect(engine=engine), expected)
    assert reused() == (1, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_known_part_is_a_source(known, lf, expected, engine):
    assert_frame_equal(lf.filter(pl.col("page") > "a").collect(engine=engine), expected.filter(pl.col("page") > "a"))
    assert reused() == (1, 1)


def test_collect_all(known, lf, expected):
    both = pl.collect_all([lf, lf.head(1)])
    assert_frame_equal(both[0], expected)
    assert_frame_equal(both[1], expected.head(1))
    assert nectar.last_run().reused


def test_collect_async(known, lf, expected):
    assert_frame_equal(asyncio.run(_awaited(lf)), expected)


async def _awaited(lf):
    return await lf.collect_async()


def test_collect_async_of_several(known, lf, expected):
    async def awaited():
        return await pl.collect_all_async([lf, lf.head(2)])

    first, second = asyncio.run(awaited())
    assert_frame_equal(first, expected)
    assert_frame_equal(second, expected.head(2))


def test_an_async_query_that_fails_raises_what_polars_raises(known, lf):
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        asyncio.run(_awaited(lf.select("nope")))


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, BaseException, ValueError])
def test_whatever_a_function_raises_an_async_query_ends(enabled, lf, raised):
    def stop(column):
        raise raised(3)

    stopped = lf.select(pl.col("page").map_batches(stop, return_dtype=pl.String))

    async def ended(awaitable):
        done, _ = await asyncio.wait([asyncio.ensure_future(awaitable)], timeout=60)
        return [isinstance(each.exception(), Exception) for each in done]

    async def one():
        return await stopped.collect_async()

    async def several():
        return await pl.collect_all_async([stopped, stopped.head(1)])

    assert asyncio.run(ended(one())) == [raised is ValueError], "as plain Polars: others are no frame, and no error"
    assert asyncio.run(ended(several())) == [True]


def test_in_the_background(known, lf, expected):
    assert_frame_equal(lf.head(2).collect(background=True).fetch_blocking(), expected.head(2))


def test_batches(known, lf, expected):
    assert_frame_equal(pl.concat(list(lf.head(2).collect_batches())), expected.head(2))


@pytest.mark.parametrize("form", ["parquet", "ipc", "csv", "ndjson"])
def test_sinks(known, lf, expected, tmp_path, form):
    getattr(lf, f"sink_{form}")(tmp_path / "out")
    assert_frame_equal(getattr(pl, f"read_{form}")(tmp_path / "out"), expected)


def test_from_threads_at_once(expected, enabled, lf):
    frames = []
    threads = [threading.Thread(target=lambda: frames.append(lf.collect())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(frames) == 6
    for frame in frames:
        assert_frame_equal(frame, expected)


def test_a_query_within_a_query(expected, enabled, lf):
    def inner(frame):
        return frame.with_columns(total=pl.lit(lf.collect()["seconds"].sum(), dtype=pl.Int64))

    outer = lf.map_batches(inner, schema={"page": pl.String, "seconds": pl.Int64, "total": pl.Int64})
    assert outer.collect()["total"].to_list() == [expected["seconds"].sum()] * 3


def test_errors_are_those_of_polars(log, enabled):
    wrong = pl.scan_parquet(f"{log}/*.parquet").select(pl.col("nope"))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nope") as raised:
        wrong.collect()
    nectar.disable()
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as plain:
        wrong.collect()
    assert str(raised.value) == str(plain.value)


def test_errors_call_functions_as_polars_does(log, enabled):
    def fail(value):
        raise ValueError("bad.()")

    wrong = pl.scan_parquet(f"{log}/*.parquet").select(pl.col("seconds").map_elements(fail, return_dtype=pl.Int64))
    with pytest.raises(ValueError) as raised:
        wrong.collect()
    nectar.disable()
    with pytest.raises(ValueError) as plain:
        wrong.collect()
    assert str(raised.value) == str(plain.value)
    assert "python_udf" in str(plain.value)


def test_whatever_fails_in_nectar_the_query_runs(expected, enabled, lf, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(collecting, "prepared", fail)
    assert_frame_equal(lf.collect(), expected)
    assert "out of order" in nectar.last_run().why


def test_whatever_fails_while_keeping_the_query_has_its_result(expected, enabled, lf, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(collecting, "keep", fail)
    assert_frame_equal(lf.collect(), expected)


def test_disabled_means_plain_polars(known, lf, expected):
    before = nectar.last_run()
    nectar.disable()
    assert_frame_equal(lf.collect(), expected)
    assert nectar.last_run() is before


def test_a_block(expected, lf, home):
    for parts in ((0, 1), (1, 0)):
        with nectar.reuse(home=home, reserve=0) as run:
            assert_frame_equal(lf.collect(), expected)
        assert (len(run.reused), len(run.computed)) == parts


def test_large_frames_in_memory_are_left_alone(enabled):
    frame = pl.DataFrame({"a": range(200_000)})
    assert frame.lazy().select(pl.col("a").sum()).collect().item() == 19_999_900_000
    (part,) = nectar.last_run().parts
    assert part.outcome == "uncacheable"
    assert "in memory" in part.reason


def test_a_block_within_a_block_leaves_the_outer_one_on(log, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_chosen", None)
    query = lambda: pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").sum())
    with nectar.reuse(home=tmp_path / "outer", reserve=0) as report:
        query().collect()
        with nectar.reuse(off=True):
            query().collect()
        session.current().settle()
        query().collect()
    assert [part.outcome for part in report.parts] == ["computed", "reused"]
