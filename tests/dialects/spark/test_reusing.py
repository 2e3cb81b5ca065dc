"""Parts of plans: kept when they are asked for often, put in place of what they stand for, and nothing else changes."""

import datetime
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import Window
from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.random_programs import answer

import nectar
from nectar.dialects.spark import looking, persisted, reusing
from nectar.dialects.spark.query import query_of
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.servers import Engine
from nectar.dialects.spark.writing import Limits
from nectar.errors import StoreFailure
from nectar.report.run import Part


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Parts are kept however little they took."""
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    reusing._cheap.clear()
    reusing._failed.clear()


def pages(spark, log):
    clicks = spark.read.parquet(str(log))
    return clicks.groupBy("page").agg(F.sum("seconds").alias("total"), F.count("*").alias("n"))


def names_reused():
    return [part.name for part in nectar.last_run().reused]


def plainly(frame, home):
    nectar.disable()
    try:
        return answer(frame)
    finally:
        nectar.enable(home=home, reserve=0)


def asked_for(enabled, frame):
    """The frame is part of queries often enough to be kept."""
    for number in range(4):
        frame.filter(F.lit(number) >= 0).collect()
        nectar.session.current().settle()


@pytest.mark.small
def test_a_part_that_is_asked_for_often_is_kept_and_reused(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)
    kinds = [entry.kind for entry in enabled.catalog.index.entries()]
    assert kinds.count("parquet") == 1
    query = part.filter("total > 0").select("page", (F.col("total") / F.col("n")).alias("mean"))
    found = answer(query)
    assert nectar.last_run().parts[-1].outcome == "computed"
    assert any(name.startswith("aggregate of read parquet") for name in names_reused())
    assert found == plainly(query, home)


@pytest.mark.small
def test_a_whole_result_is_a_part_of_others(spark, log, enabled, home):
    part = pages(spark, log)
    part.collect()
    enabled.settle()
    query = part.filter("total > 0")
    found = answer(query)
    assert len(names_reused()) == 1
    assert found == plainly(query, home)


@pytest.mark.small
def test_another_session_finds_the_part(spark, log, enabled, home, new_session):
    asked_for(enabled, pages(spark, log))
    other = new_session()
    query = pages(other, log).select(F.max("total").alias("most"))
    found = answer(query)
    assert len(names_reused()) == 1
    assert found == plainly(query, home)


def test_a_result_over_parts_is_itself_reused(spark, log, enabled):
    asked_for(enabled, pages(spark, log))
    query = pages(spark, log).filter("n > 3")
    first = query.collect()
    enabled.settle()
    assert query.collect() == first
    assert nectar.last_run().parts[-1].outcome == "reused"


@pytest.mark.small
def test_changed_files_are_read_again(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)
    write_day(log, 1, times=3)
    query = part.filter("total > 0")
    found = answer(query)
    assert names_reused() == []
    assert found == plainly(query, home)


def test_a_file_that_changes_while_a_part_is_computed_is_noticed(spark, log, enabled, monkeypatch):
    part = pages(spark, log)
    for number in range(2):
        part.filter(F.lit(number) >= 0).collect()
    plain_write = reusing.write

    def write(*args):
        try:
            return plain_write(*args)
        finally:
            write_day(log, 1, times=5)

    monkeypatch.setattr(reusing, "write", write)
    part.filter(F.lit(9) >= 0).collect()
    enabled.settle()
    assert [entry.kind for entry in enabled.catalog.index.entries()].count("parquet") == 0
    assert all(not each.staged for each in enabled.catalog.store.locations())


@pytest.mark.small
def test_a_part_that_is_gone_is_computed(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)
    for found in list(enabled.catalog.store.locations()):
        enabled.catalog.store.delete(found.location)
    query = part.filter("total > 1")
    found = answer(query)
    assert found == plainly(query, home)
    assert len(found[2]) == 3


def test_what_took_little_is_not_worth_a_part(spark, log, enabled, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 10**6)
    part = pages(spark, log)
    part.collect()
    asked_for(enabled, part)
    assert names_reused() == []
    assert all(entry.kind == "arrow" for entry in enabled.catalog.index.entries())


def test_a_part_comes_from_its_own_files_and_functions(spark, log, enabled, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write_day(other, 1)
    part = pages(spark, log)
    beside = spark.read.parquet(str(other)).withColumn("more", F.udf(lambda n: n + 1, "long")("seconds"))
    for number in range(4):
        part.join(beside.filter(F.lit(number) >= 0), "page").collect()
    enabled.settle()
    kept = {entry.about.split(" ")[0]: entry for entry in enabled.catalog.index.entries() if entry.kind == "parquet"}
    lineage = enabled.catalog.index.trace_results([kept["aggregate"].key], "upstream")
    assert "other" not in str(lineage)
    assert "clicks" in str(lineage)


@pytest.mark.parametrize("limit", ["size", "time"])
def test_a_part_that_takes_too_much_is_stopped(spark, log, enabled, home, monkeypatch, limit):
    if limit == "size":
        monkeypatch.setattr(reusing, "_EXPECTED", 1000)
        monkeypatch.setattr(reusing, "_LARGER", 0)
    else:
        monkeypatch.setattr(reusing, "_limits", lambda *_: Limits(seconds=0.01))
    pairs = spark.read.parquet(str(log)).crossJoin(spark.range(10_000))
    many = pairs.groupBy("id", "seconds").agg(F.count("*").alias("n"))
    query = many.filter("seconds > 7").select(F.count("*").alias("n"))
    expected = plainly(query, home)
    for number in range(4):
        assert answer(query.withColumn("number", F.lit(number)).drop("number"))[2] == expected[2]
    nectar.session.current().settle()
    catalog = nectar.session.current().catalog
    assert all(entry.kind == "arrow" for entry in catalog.index.entries())
    assert all(not each.staged for each in catalog.store.locations())
    assert catalog.index.leases() == []


def test_a_part_that_cannot_be_computed_by_itself_is_tried_once(spark, log, enabled, home, monkeypatch):
    part = pages(spark, log)
    tried = []

    def fail(*args):
        tried.append(args)
        raise StoreFailure("no")

    monkeypatch.setattr(reusing, "write", fail)
    asked_for(enabled, part)
    asked_for(enabled, part.filter("n > 1"))
    assert len(tried) == 1
    assert enabled.catalog.index.leases() == []


def test_a_part_may_take_what_queries_with_it_took(spark, log, enabled):
    part = pages(spark, log)
    query = part.filter("n > 1")
    query.collect()
    found = query_of(enabled, spark.client, query._plan.to_proto(spark.client).root, Scope(), Part(""))
    [number] = [at for at, node in enumerate(found.keyed.program.nodes) if node.text == "aggregate"]
    node = found.keyed.program.nodes[number]
    took = reusing._took[node.key]
    assert 0 < took < 60
    assert reusing._limits(found, number) == Limits(reusing._EXPECTED, 2 * took + 1)
    reusing._took.clear()
    assert reusing._limits(found, number).seconds == 31
    persisted.ask_for(node.program)
    assert reusing._limits(found, number).seconds == math.inf
    persisted.ask_no_more(node.program)


def test_what_a_plan_reads_is_not_evicted(spark, log, enabled, home, monkeypatch):
    part = pages(spark, log)
    asked_for(enabled, part)
    query = part.filter("total > 1")
    expected = plainly(query, home)
    plain_check = reusing.schema_by_engine

    def evicting(*args):
        catalog = nectar.session.current().catalog
        catalog.discard([entry for entry in catalog.index.entries() if entry.kind == "parquet"])
        return plain_check(*args)

    monkeypatch.setattr(reusing, "schema_by_engine", evicting)
    assert answer(query) == expected
    assert len(names_reused()) == 1


def test_leases_end_with_the_query(spark, log, enabled):
    part = pages(spark, log)
    asked_for(enabled, part)
    part.filter("total > 1").collect()
    assert len(names_reused()) == 1
    enabled.settle()
    assert enabled.catalog.index.leases() == []


@pytest.mark.small
def test_a_plan_that_the_engine_does_not_take_runs_as_it_was_given(spark, log, enabled, home, monkeypatch):
    part = pages(spark, log)
    asked_for(enabled, part)
    query = part.filter("total > 1")
    expected = plainly(query, home)

    def refuse(*_):
        raise ValueError("no")

    monkeypatch.setattr(reusing, "schema_by_engine", refuse)
    assert answer(query) == expected
    assert names_reused() == []


def test_a_query_that_fails_over_parts_runs_as_it_was_given(spark, log, enabled, home, monkeypatch):
    """The engine finds out when it runs: here, a file that is not what it was."""
    part = pages(spark, log)
    asked_for(enabled, part)
    query = part.filter("total > 1")
    expected = plainly(query, home)
    monkeypatch.setattr(reusing, "schema_by_engine", lambda *_: None)
    plain_replace = reusing._replace

    def broken(query, number):
        entry, relation = query.known[number]
        files = relation.project.input.read.data_source.paths
        for at, path in enumerate(files):
            (home / "broken.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
            files[at] = str(home / "broken.parquet")
        plain_replace(query, number)

    monkeypatch.setattr(reusing, "_replace", broken)
    for _ in range(2):
        assert answer(query) == expected
        nectar.session.current().settle()
    assert nectar.session.current().catalog.index.leases() == []


def test_a_query_that_fails_by_itself_says_the_same(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)

    def fail(n):
        raise ValueError("a mistake of the user")

    query = part.select(F.udf(fail, "long")("total"))
    with pytest.raises(Exception, match="a mistake of the user") as under_nectar:
        query.collect()
    nectar.disable()
    with pytest.raises(Exception, match="a mistake of the user") as plain:
        query.collect()
    assert type(under_nectar.value) is type(plain.value)
    assert str(under_nectar.value) == str(plain.value)


# attacks


def attack(enabled, home, frames, make):
    """Frames are kept; a query made of them gives the same with and without Nectar; what was reused."""
    for frame in frames:
        asked_for(enabled, frame)
    query = make(*frames)
    expected = plainly(query, home)
    assert answer(query) == expected
    return names_reused()


@pytest.mark.small
def test_columns_of_a_certain_frame(spark, log, enabled, home):
    part = pages(spark, log)
    other = pages(spark, log).filter("n > 1").groupBy("page").agg(F.max("total").alias("total"))
    attack(enabled, home, [part, other], lambda a, b: a.join(b, a.page == b.page).select(a.page, b.total, a.total))


def test_a_column_of_a_frame_below_the_part(spark, log, enabled, home):
    inner = spark.read.parquet(str(log)).groupBy("page", "day").agg(F.sum("seconds").alias("total"))
    attack(enabled, home, [inner.distinct()], lambda a: a.select(inner.page, "total"))


def test_a_sort_by_a_column_that_is_hidden_in_the_part(spark, log, enabled, home):
    few = pages(spark, log).select("page").distinct()
    attack(enabled, home, [few], lambda a: a.orderBy("page"))
    hiding = pages(spark, log).withColumn("total", -F.col("total")).select("page")
    hiding.collect()
    enabled.settle()
    query = hiding.orderBy("total")
    nectar.disable()
    expected = query.collect()
    nectar.enable(home=home, reserve=0)
    assert query.collect() == expected
    assert names_reused() == []


def test_qualifiers_above_an_alias_that_is_also_a_column(spark, log, enabled, home):
    part = pages(spark, log).select(F.struct(F.lit(7).alias("total")).alias("a"), "total", "page").distinct().alias("a")
    attack(enabled, home, [part], lambda a: a.select("a.total"))


@pytest.mark.small
def test_the_order_of_sorted_rows(spark, log, enabled, home):
    ordered = spark.read.parquet(str(log)).groupBy("seconds").count().orderBy(F.desc("seconds"))
    asked_for(enabled, ordered)
    query = ordered.limit(5)
    nectar.disable()
    plain = query.collect()
    nectar.enable(home=home, reserve=0)
    assert query.collect() == plain
    assert ordered.filter("seconds > 3").collect() == ordered.filter("seconds > 3").collect()
    assert [row.seconds for row in ordered.select("seconds").collect()] == sorted(
        (row.seconds for row in ordered.collect()), reverse=True
    )


@pytest.mark.small
def test_functions_that_see_partitions(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)

    def sizes(frames):
        import pandas as pd

        yield pd.DataFrame({"n": [sum(len(frame) for frame in frames)]})

    part.mapInPandas(sizes, "n long").collect()
    assert names_reused() == []
    for above in (
        part.sample(0.5, 3), part.select(F.rand(3)), part.select(F.monotonically_increasing_id()),
        part.select(F.spark_partition_id()),
    ):  # fmt: skip
        above.collect()
        assert names_reused() == []


def test_parts_below_what_depends_on_the_moment(spark, log, enabled, home):
    part = pages(spark, log)
    asked_for(enabled, part)
    for above in (F.current_timestamp(), F.current_date(), F.current_user()):
        query = part.withColumn("now", above)
        rows = query.drop("now").collect()
        seen = query.collect()
        assert len(names_reused()) == 1
        assert nectar.last_run().parts[-1].outcome == "uncacheable"
        assert "()" in nectar.last_run().parts[-1].reason
        assert sorted(row[:3] for row in seen) == sorted(tuple(row) for row in rows)
    first, second = (part.select(F.current_timestamp()).first()[0] for _ in range(2))
    assert first < second


@engines.only_sail  # Spark's own come first
def test_nothing_below_a_registered_function_is_a_part(spark, log, enabled):
    part = pages(spark, log)
    asked_for(enabled, part)
    spark.udf.register("abs", lambda n: 7, "long")
    assert part.select(F.abs("total"), F.current_date()).collect()[0][0] == 7
    assert names_reused() == []


def test_windows_and_functions_are_parts(spark, log, enabled, home):
    clicks = spark.read.parquet(str(log))
    ranked = clicks.withColumn("rank", F.row_number().over(Window.partitionBy("page").orderBy("seconds", "day")))
    names = attack(enabled, home, [ranked], lambda a: a.filter("rank <= 2").groupBy("page").agg(F.sum("seconds")))
    assert len(names) == 1


def test_times_are_shown_as_without_parts(spark, tmp_path, enabled, home):
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    times = pa.array([noon, noon, None], pa.timestamp("us", tz="Asia/Tokyo"))
    pq.write_table(pa.table({"t": times, "n": [1, 2, 3]}), tmp_path / "times.parquet")
    part = spark.read.parquet(str(tmp_path / "times.parquet")).groupBy("t").agg(F.sum("n").alias("n"))
    names = attack(enabled, home, [part], lambda a: a.select(F.hour("t").alias("h"), F.col("t").cast("string"), "n"))
    assert len(names) == 1


def test_duplicate_names_and_nullability(spark, log, enabled, home):
    left, right = pages(spark, log), pages(spark, log).withColumn("one", F.lit(1))
    both = left.join(right, left.page == right.page)
    names = attack(enabled, home, [both], lambda a: a.select(F.count("*").alias("n"), F.min("one").alias("one")))
    assert len(names) == 1


def test_a_fickle_part_in_two_places_is_not_answered_from_two_runs(spark, log, enabled, home):
    some = spark.read.parquet(str(log)).groupBy("seconds").count().limit(5)
    asked_for(enabled, some)
    query = some.select("seconds").intersect(some.filter("seconds >= 0").select("seconds"))
    for _ in range(3):
        assert query.count() <= 5


def test_subqueries(spark, log, enabled, home):
    part, other = pages(spark, log), spark.read.parquet(str(log)).groupBy("page").agg(F.max("seconds").alias("most"))
    attack(enabled, home, [part, other], lambda a, b: a.filter(F.col("total") > b.select(F.max("most")).scalar()))
    attack(
        enabled, home, [part, other],
        lambda a, b: a.filter(b.filter((b.page == F.col("page").outer()) & (b.most > 100)).exists()),
    )  # fmt: skip


@pytest.mark.parametrize("text", [False, True])
def test_ties_that_were_numbered_in_another_run_do_not_meet_those_of_this_one(spark, log, enabled, text):
    number = F.row_number().over(Window.partitionBy("day").orderBy("day"))
    if text:
        number = F.expr("row_number() over (partition by day order by day)")
    numbered = spark.read.parquet(str(log)).withColumn("number", number)
    first, rest = numbered.filter("number = 1"), numbered.filter("number > 1")
    first.collect()
    enabled.settle()
    keys = ["page", "seconds", "day"]
    assert first.select(keys).union(rest.select(keys)).distinct().count() == 240
    assert names_reused() == []


def test_union_and_set_operations_over_parts(spark, log, enabled, home):
    part = pages(spark, log)
    names = attack(enabled, home, [part], lambda a: a.union(a).unionByName(a.filter("n > 5")).exceptAll(a))
    assert len(names) == 1


def test_a_frame_joined_with_itself(spark, log, enabled, home):
    part = pages(spark, log)
    attack(
        enabled, home, [part],
        lambda a: a.alias("x").join(a.alias("y"), F.col("x.page") < F.col("y.page")).select("x.page", "y.total"),
    )  # fmt: skip


def test_answers_of_every_action(spark, log, enabled, home, capsys):
    part = pages(spark, log)
    asked_for(enabled, part)
    query = part.filter("total > 0").withColumn("x", F.col("total") / 2)
    actions = [
        lambda: sorted(query.collect()), lambda: query.toPandas().sort_values("page").to_dict("list"),
        lambda: query.toPandas().dtypes.to_dict(), lambda: str(query.toArrow().schema), query.count,
        lambda: sorted(query.toLocalIterator()), lambda: sorted(query.head(9)), lambda: sorted(query.take(9)),
        lambda: (query.orderBy("page").show(), capsys.readouterr().out)[1],
    ]  # fmt: skip
    found = []
    for action in actions:
        found.append(action())
        assert names_reused(), found
    nectar.disable()
    assert found == [action() for action in actions]


OVER_PARTS = {
    "describe": lambda df: df.describe().collect(),
    "summary": lambda df: df.summary("min", "max").collect(),
    "crosstab": lambda df: df.crosstab("page", "n").collect(),
    "cov": lambda df: df.stat.cov("total", "n"),
    "corr": lambda df: df.stat.corr("total", "n"),
    "tail": lambda df: sorted(df.tail(9)),
    "isEmpty": lambda df: df.isEmpty(),
    "dropDuplicates": lambda df: df.dropDuplicates(["n"]).count(),
    "pivot": lambda df: df.groupBy("n").pivot("page").sum("total").collect(),
    "rollup": lambda df: df.rollup("page").agg(F.sum("total")).collect(),
    "fillna": lambda df: df.fillna(0).dropna().replace("a", "z").collect(),
    "to": lambda df: df.to(df.schema).collect(),
    "repartition": lambda df: df.repartition(3).coalesce(1).collect(),
    "explode": lambda df: df.select("page", F.explode(F.array("total", "n"))).collect(),
    "applyInPandas": lambda df: df.groupBy("page").applyInPandas(lambda f: f, df.schema).collect(),
    "cross join": lambda df: df.crossJoin(df.select("n")).collect(),
    "udf": lambda df: df.select(F.udf(lambda n: n + 1, "long")("total").alias("t")).collect(),
}


@pytest.mark.parametrize("name", OVER_PARTS)
def test_what_is_done_over_parts(spark, log, enabled, home, name):
    part = pages(spark, log)
    asked_for(enabled, part)
    run = OVER_PARTS[name]

    def answered():
        found = run(part)
        return sorted(map(repr, found)) if isinstance(found, list) else repr(found)

    under_nectar = answered()
    reused = names_reused()
    nectar.disable()
    assert under_nectar == answered()
    assert reused


def test_what_the_engine_did_not_take_stands_in_no_plan(spark, log, enabled, monkeypatch):
    """Nor in those that put together what is known of its files."""
    part = pages(spark, log)
    asked_for(enabled, part)
    query = part.filter("total > 1")
    seen = []

    def grow(query, server):
        seen.append(dict(query.known))

    monkeypatch.setattr(looking, "grow", grow)
    query.collect()
    assert len(names_reused()) == len(seen[-1]) == 1
    found = query_of(enabled, spark.client, query._plan.to_proto(spark.client).root, Scope(), Part(""))
    reusing._failed[found.keyed.root.key] = 0.0
    enabled.settle()
    nectar.disable()
    nectar.enable(home=enabled.settings.home, reserve=0, refresh=False)
    catalog = nectar.session.current().catalog
    catalog.discard([entry for entry in catalog.index.entries() if entry.key == found.keyed.root.key])
    query.collect()
    assert seen[-1] == {}
    assert names_reused() == []


def test_two_texts_over_a_view_that_two_runs_may_give_differently(spark, log, enabled):
    """One of them must not come from another run than the other."""
    spark.read.parquet(str(log)).groupBy("seconds").count().limit(5).createOrReplaceTempView("some")
    spark.table("some").createOrReplaceTempView("same")
    first = spark.sql("select seconds from some")
    first.collect()
    enabled.settle()
    for name in ("some", "same"):
        other = spark.sql(f"select seconds from {name} where seconds >= 0")
        first.intersect(other).collect()
        assert names_reused() == []


def test_two_texts_over_a_view_that_is_always_the_same(spark, log, enabled):
    spark.read.parquet(str(log)).filter("seconds > 3").createOrReplaceTempView("some")
    first = spark.sql("select page, count(*) as n from some group by page")
    first.collect()
    enabled.settle()
    first.join(spark.sql("select page, max(seconds) as most from some group by page"), "page").collect()
    assert len(names_reused()) == 1


def test_servers_that_do_not_see_the_store_get_plans_as_they_are(spark, log, enabled, monkeypatch):
    part = pages(spark, log)
    asked_for(enabled, part)
    monkeypatch.setattr(Engine, "shares_files", False)
    part.filter("total > 2").collect()
    assert names_reused() == []
