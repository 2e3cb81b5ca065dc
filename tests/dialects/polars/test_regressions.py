"""Programs that once got a wrong answer, lost an effect, waited for themselves or were not cached for no reason."""

from __future__ import annotations

import json
import threading
import time

import polars as pl
import pytest

import nectar
from nectar import session
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import Plan, traverser_of
from nectar.rewrite import choose
from nectar.rewrite.consistency import reusable

TABLE = pl.DataFrame({"a": [3, 1, 2, 2], "b": ["x", "y", "z", "x"], "c": [1.0, 0.5, 2.5, 4.0]})


@pytest.fixture
def scan(tmp_path):
    TABLE.write_parquet(tmp_path / "table.parquet")
    return pl.scan_parquet(tmp_path / "table.parquet")


@pytest.fixture
def often(monkeypatch):
    """Parts are kept at the first opportunity."""
    monkeypatch.setattr(choose, "LOOKED_UP", 0)


def _settled(session):
    assert session.settle(30)


def _is_reused(frame, session):
    frame.collect()
    _settled(session)
    frame.collect()
    return not nectar.last_run().computed


def test_a_block_within_a_block_leaves_the_outer_one_on(tmp_path):
    path = tmp_path / "numbers.parquet"
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(path)
    query = lambda: pl.scan_parquet(path).sort("a").collect()
    with nectar.reuse(home=tmp_path / "outer", reserve=0) as report:
        with nectar.reuse(off=True):
            query()
        query()
    assert len(report.parts) == 1


def test_rows_gathered_by_other_numbers_are_others(scan, enabled):
    assert scan.gather([0, 1]).collect()["a"].to_list() == [3, 1]
    _settled(enabled)
    assert scan.gather([1, 2]).collect()["a"].to_list() == [1, 2]
    assert _is_reused(scan.gather([1, 2]), enabled)


def test_a_pivot_for_other_columns_is_another(scan, enabled):
    def pivoted(columns):
        return scan.pivot("b", on_columns=columns, index="a", values="c", aggregate_function="max").collect()

    assert set(pivoted(["x", "y"]).columns) == {"a", "x", "y"}
    _settled(enabled)
    assert set(pivoted(["x", "z"]).columns) == {"a", "x", "z"}


def test_a_query_text_over_a_known_part_is_run_by_polars(scan, enabled, often):
    known = scan.group_by("b").agg(pl.col("a").max())
    known.collect()
    _settled(enabled)
    assert known.sql("select sum(a) as s from self").collect()["s"].to_list() == [6]


def test_a_schema_function_over_a_known_part_is_run_by_polars(scan, enabled, often):
    known = scan.group_by("b").agg(pl.col("a").max())
    known.collect()
    _settled(enabled)
    assert known.pipe_with_schema(lambda frame, schema: frame).collect().height == 3


@pytest.mark.parametrize("several", [False, True])
def test_arrow_files_are_known(tmp_path, enabled, several):
    for name in ("p1", "p10", "p9"):
        TABLE.with_columns(name=pl.lit(name)).write_ipc(tmp_path / f"{name}.arrow")
    frame = pl.scan_ipc(tmp_path / "p*.arrow" if several else tmp_path / "p9.arrow").filter(pl.col("a") > 1)
    before = frame.collect()
    _settled(enabled)
    assert frame.collect().equals(before)
    assert not nectar.last_run().computed
    TABLE.head(1).with_columns(name=pl.lit("p9")).write_ipc(tmp_path / "p9.arrow")
    assert frame.collect().filter(pl.col("name") == "p9").height == 1


def first_row(frame):
    return frame.head(1)


def test_python_functions_on_frames_and_groups_are_known(scan, enabled):
    assert _is_reused(scan.map_batches(first_row), enabled)
    assert _is_reused(scan.group_by("b", maintain_order=True).map_groups(first_row, schema=TABLE.schema), enabled)


def test_a_sum_and_its_maximum_come_from_one_run(scan, enabled):
    """From two runs the sums may differ in the last bit, and no row would be found."""
    sums = scan.group_by("b").agg(pl.col("c").sum().alias("total"))
    best = sums.select(pl.col("total").max())
    program = keyed(Plan.of(sums.join(best, on="total")), enabled.inputs).program
    allowed = reusable(program)
    (at_sums,) = [at for at, node in enumerate(program.nodes) if node.text.startswith("group_by")]
    assert (allowed[at_sums], allowed[program.root]) == (True, True)
    assert not any(allowed[at] for at in program.users[at_sums] if at != program.root)


def test_two_slices_of_a_join_come_from_one_run(scan, enabled):
    """Polars moves a slice into the join, whatever order was asked for."""
    joined = scan.join(scan, on="b", maintain_order="left_right")
    program = keyed(Plan.of(pl.concat([joined.head(2), joined.tail(2)])), enabled.inputs).program
    slices = [at for at, node in enumerate(program.nodes) if node.text == "slice"]
    assert len(slices) == 2
    assert not any(reusable(program)[at] for at in slices)


def test_a_function_that_changes_its_surroundings_is_run_as_it_was_given(scan, enabled, often):
    seen = []

    def noting(frame):
        seen.append(frame.height)
        return frame

    known = scan.group_by("b").agg(pl.col("a").max())
    known.collect()
    _settled(enabled)
    for times in (1, 2):
        known.map_batches(noting).collect()
        assert seen == [3] * times
    assert "noting" in nectar.last_run().why


def test_a_function_that_reads_the_clock_is_not_cached_but_what_it_gets_is(scan, enabled, often):
    def dated(frame):
        return frame.with_columns(a=pl.lit(time.perf_counter_ns()))

    known = scan.group_by("b").agg(pl.col("a").max())
    known.collect()
    _settled(enabled)
    first, second = (known.map_batches(dated).collect()["a"][0] for _ in range(2))
    assert first != second
    assert len(nectar.last_run().reused) == 1


def test_bytes_of_people_are_never_taken_for_functions(scan, enabled):
    odd = scan.select("a", wide=pl.lit(2**103 + 5), raw=pl.lit(b"\x00ab\x80\x05."))
    assert _is_reused(odd, enabled)


def test_empty_bytes_are_known(scan, enabled):
    assert _is_reused(scan.select("a", pl.lit(b"").alias("z")), enabled)


def test_nothing_stays_reserved_when_a_part_is_kept_on_the_way(scan, enabled, often):
    scan.group_by("b").agg(pl.col("a").max()).filter(pl.col("a") > 1).collect()
    scan.group_by("b").agg(pl.col("a").max()).with_columns(z=1).collect()
    _settled(enabled)
    assert not enabled.reservations._held


def test_a_cross_join_under_a_filter_keeps_its_rows(scan, enabled, often):
    pairs = scan.join(scan, how="cross")
    pairs.collect()
    _settled(enabled)
    found = pairs.filter(pl.col("a") == pl.col("a_right")).collect()
    assert found.height == 6


@pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "write_csv"])
@pytest.mark.parametrize("together", [False, True])
def test_a_frame_that_remembers_fewer_files_does_not_answer_for_all(tmp_path, enabled, write, together):
    """What is kept for two files must not have been made from the one that the frame has seen before."""
    folder = tmp_path / "files"
    folder.mkdir()
    scan = {"write_parquet": pl.scan_parquet, "write_ipc": pl.scan_ipc, "write_csv": pl.scan_csv}[write]
    getattr(pl.DataFrame({"a": [1]}), write)(folder / "p1")

    def highest():
        return scan(folder / "p*").select(pl.col("a").max())

    old = highest()
    nectar.disable()
    old.collect()
    nectar.enable(home=enabled.settings.home, reserve=0)
    getattr(pl.DataFrame({"a": [5]}), write)(folder / "p2")
    pl.collect_all([old]) if together else old.collect()
    assert session.current().settle(30)
    assert highest().collect().item() == 5


def test_looking_at_files_does_not_stop_other_threads(tmp_path):
    """Otherwise it waits for ever if a thread that runs a Python function in Polars is needed to look at them."""
    wide = pl.DataFrame({f"c{number}": range(2000) for number in range(200)})
    for number in range(3):
        wide.write_csv(tmp_path / f"{number}.csv")
    frame = pl.scan_csv(tmp_path / "*.csv", infer_schema_length=None)
    moments, done = [], threading.Event()

    def ticking():
        while not done.is_set():
            moments.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=ticking)
    ticker.start()
    begun = time.perf_counter()
    traverser_of(frame)
    ended = time.perf_counter()
    done.set()
    ticker.join()
    assert any(begun + (ended - begun) * 0.2 < moment < ended - (ended - begun) * 0.2 for moment in moments)


def test_a_frame_from_memory_may_be_changed_before_it_is_written(enabled, log):
    """A result that waits to be written is handed to the next caller, who may do with it as he likes."""
    gate = threading.Event()
    enabled.keeper.submit(lambda: gate.wait(30))
    query = lambda: pl.scan_parquet(f"{log}/*.parquet").group_by("page").agg(pl.len()).sort("page")
    first = query().collect()
    expected = first.clone()
    first[0, "len"] = 0
    second = query().collect()
    assert second.equals(expected)
    second[0, "len"] = 1
    second.insert_column(0, pl.Series("new", [1, 2, 3]))
    assert query().collect().equals(expected)
    gate.set()
    assert enabled.settle(30)
    assert query().collect().equals(expected)
    with nectar.reuse(home=enabled.settings.home) as report:
        assert query().collect().equals(expected)
    assert [part.outcome for part in report.parts] == ["reused"]


def test_a_part_that_fails_by_itself_does_not_fail_the_whole(tmp_path, enabled):
    """Polars leaves out a column that the whole does not need, and which cannot be read with the type it was given."""
    path = tmp_path / "log.ndjson"
    rows = [{"k": 1, "f": None}] * 100 + [{"k": 2, "f": -2.25}] * 3
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    query = lambda: pl.scan_ndjson(path, infer_schema_length=50).group_by("k").agg(pl.col("f").sum())
    expected = query().select(pl.len()).collect(engine=nectar.PolarsEngine("auto").inner)
    for least in range(4):
        assert query().select(pl.len() + least).collect().item() == expected.item() + least
        assert enabled.settle(30)
    with pytest.raises(pl.exceptions.ComputeError):
        query().collect()


def test_a_declared_dependency_of_a_function_that_travels_by_value_counts(enabled, tmp_path):
    """Polars pickles such a function, and a copy of it is what is keyed."""
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)

    def outcome(version):
        def change(x):
            return x + 1

        nectar.depends_on(change, version)
        pl.scan_parquet(path).with_columns(pl.col("a").map_elements(change, return_dtype=pl.Int64)).collect()
        enabled.settle()
        return [part.outcome for part in nectar.last_run().parts]

    assert outcome("one") == ["computed"]
    assert outcome("two") == ["computed"]
    assert outcome("one") == ["reused"]
