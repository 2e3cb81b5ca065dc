"""Python functions in plans: by what they compute, of every kind; and those that are refused."""

import random
import sys
import time

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar import session
from nectar.catalog.keeper import Keeper
from nectar.dialects.spark.query import Query

pytestmark = pytest.mark.small
FACTOR = 2
CALLED = "mine" if engines.ENGINE == "sail" else "A"  # in Spark functions of its own go before those of a session


def twice(n):
    return FACTOR * n


def numbers(spark):
    return spark.range(6).withColumn("k", F.col("id") % 2)


def per_group(frame):
    return frame.assign(id=frame["id"] * FACTOR)


def per_batch(batches):
    for batch in batches:
        yield batch.assign(id=batch["id"] * FACTOR)


def per_arrow(batches):
    yield from batches


def both(left, right):
    return left.assign(id=left["id"] * FACTOR + len(right))


KINDS = {
    "udf": lambda df: df.select(F.udf(twice, "long")("id")),
    "pandas_udf": lambda df: df.select(F.pandas_udf(twice, "long")("id")),
    "mapInPandas": lambda df: df.mapInPandas(per_batch, "id long, k long"),
    "mapInArrow": lambda df: df.mapInArrow(per_arrow, "id long, k long"),
    "applyInPandas": lambda df: df.groupBy("k").applyInPandas(per_group, "id long, k long"),
    "cogroup": lambda df: df.groupBy("k").cogroup(df.groupBy("k")).applyInPandas(both, "id long, k long"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_function_is_reused(spark, outcome, kind):
    first, what, _ = outcome(lambda: sorted(KINDS[kind](numbers(spark)).collect()))
    assert what == "computed"
    again, what, why = outcome(lambda: sorted(KINDS[kind](numbers(spark)).collect()))
    assert (again, what) == (first, "reused"), why


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mapInArrow"])
def test_what_a_function_captures_counts(spark, outcome, kind, monkeypatch):
    first, _, _ = outcome(lambda: sorted(KINDS[kind](numbers(spark)).collect()))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5)
    changed, what, _ = outcome(lambda: sorted(KINDS[kind](numbers(spark)).collect()))
    assert what == "computed"
    assert changed != first


def test_the_same_function_under_another_name_is_another_column(spark, outcome):
    def one(n):
        return n + 1

    def two(n):
        return n + 1

    assert outcome(lambda: spark.range(2).select(F.udf(one, "long")("id")).columns)[0] == ["one(id)"]
    outcome(lambda: spark.range(2).select(F.udf(one, "long")("id")).collect())
    rows, what, _ = outcome(lambda: spark.range(2).select(F.udf(two, "long")("id")).collect())
    assert what == "computed"
    assert rows[0].__fields__ == ["two(id)"]


def test_the_type_of_a_result_counts(spark, outcome):
    made = [spark.range(2).select(F.udf(twice, kind)("id").alias("n")) for kind in ("long", "double", "string")]
    assert [outcome(each.collect)[1] for each in made] == ["computed"] * 3


def clock(n):
    return n + time.time()


def chance(n):
    return n + random.random()


@pytest.mark.parametrize(("function", "reason"), [(clock, "clock"), (chance, "random")])
def test_functions_that_are_not_their_arguments_are_refused(spark, outcome, function, reason):
    _, what, why = outcome(spark.range(2).select(F.udf(function, "double")("id")).collect)
    assert what == "uncacheable"
    assert reason in why


def test_a_function_declared_nondeterministic_is_refused(spark, outcome):
    _, what, why = outcome(spark.range(2).select(F.udf(twice, "long").asNondeterministic()("id")).collect)
    assert what == "uncacheable"
    assert "nondeterministic" in why


def test_foreach_is_done_each_time(spark, outcome):
    for _ in range(2):
        _, what, why = outcome(lambda: spark.range(2).foreachPartition(lambda rows: None))
        assert what == "uncacheable"
        assert "foreach" in why


def test_functions_registered_while_nectar_is_off_are_known_when_it_is_back(spark, enabled, home):
    made = spark.createDataFrame([("a",)], ["t"]).select(F.upper("t").alias("u"))
    assert made.collect()[0].u == "A"
    nectar.disable()
    spark.udf.register("upper", lambda text: "mine")
    nectar.enable(home=home, reserve=0)
    assert made.collect()[0].u == CALLED
    assert nectar.last_run().parts[-1].outcome == "uncacheable"


def test_a_function_that_nobody_saw_is_refused(spark, outcome):
    from nectar.dialects.spark import functions

    functions.uninstall()
    _, what, why = outcome(spark.range(2).select(F.udf(lambda n: n + 41, "long")("id")).collect)
    assert what == "uncacheable"
    assert "not seen" in why


def last():
    return nectar.last_run().parts[-1]


@pytest.fixture
def later(enabled, monkeypatch):
    """Keeps what was computed so far; nothing is kept before that, however long the program takes."""
    waiting = []
    monkeypatch.setattr(Keeper, "submit", lambda _, work, *more: waiting.append(work))

    def keep():
        while waiting:
            waiting.pop(0)()

    return keep


def test_the_variable_of_a_loop_moves_on_and_each_turn_is_kept(spark, later):
    for expected in ("computed", "reused"):
        found = []
        for rate in (2, 3, 5):
            made = F.udf(lambda n: n * rate, "long")  # noqa: B023 - as people write it
            found.append((spark.range(3).select(made("id").alias("n")).collect()[2].n, last().outcome))
        later()
        assert found == [(4, expected), (6, expected), (10, expected)]


def test_what_a_program_changes_right_after_a_query_does_not_matter(spark, later):
    added = [1]
    for expected in ("computed", "reused"):
        rows = spark.range(2).select(F.udf(lambda n: n + len(added), "long")("id").alias("n")).collect()
        assert ([row.n for row in rows], last().outcome) == ([1, 2], expected)
        added.append(2)
        later()
        added.pop()


@pytest.mark.parametrize("kind", ["by value", "by name", "of a class"])
def test_what_changes_while_a_query_runs_is_noticed(spark, later, monkeypatch, kind):
    class Rates:
        usual = 2

    added = [1]
    made = {"by value": lambda n: n + len(added), "by name": twice, "of a class": lambda n: n * Rates.usual}[kind]

    def keep(query, plain=Query.keep):
        added.append(2)
        Rates.usual = 3
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 7)
        plain(query)

    monkeypatch.setattr(Query, "keep", keep)
    spark.range(2).select(F.udf(made, "long")("id")).collect()
    assert last().keeping == "not kept: a function changed while it ran"


def test_what_is_heavy_to_look_at_is_looked_at_later(spark, later):
    many = {str(n): [n] for n in range(30_000)}
    spark.range(2).select(F.udf(lambda n: many[str(n)][0], "long")("id")).collect()
    part = last()
    assert part.keeping == "being kept"
    many["more"] = [0]
    later()
    assert part.keeping == "not kept: a function changed while it ran"


def test_lineage_names_the_functions_that_were_sent(spark, later):
    def one(n):
        return n + 1

    def two(n):
        return n + 2

    chosen = one
    spark.range(2).select(F.udf(lambda n: chosen(n), "long")("id")).collect()
    part = last()
    chosen = two
    later()
    assert part.keeping == "kept"
    with session.current().looking() as catalog:
        told = str(catalog.index.trace_results([bytes.fromhex(part.key)], "upstream"))
    assert "<locals>.one" in told
    assert "<locals>.two" not in told
