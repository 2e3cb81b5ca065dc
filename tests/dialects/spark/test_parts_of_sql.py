"""Texts and views as parts of plans: taken from the store only where nobody could rely on the order of their rows."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import nectar

SORTED = "select * from s order by seconds desc, page"
COUNTED = "select page, sum(seconds) as seconds from s group by page"


def by_view(spark, log, text):
    spark.read.parquet(str(log)).createOrReplaceTempView("s")
    spark.sql(f"create or replace temp view v as {text}")
    return spark.table("v")


def by_text(spark, log, text):
    spark.read.parquet(str(log)).createOrReplaceTempView("s")
    return spark.sql(text)


def over_frame(spark, log, text):
    return spark.sql(text.replace(" s ", " {s} "), s=spark.read.parquet(str(log)))


WAYS = {"view": by_view, "text": by_text, "frame": over_frame}


def parts_of(outcome, action):
    found = outcome(action)[0]
    return found, [part.outcome for part in nectar.last_run().parts]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_sorted_is_not_taken_as_a_part(spark, log, outcome, home, way):
    made = WAYS[way](spark, log, SORTED)
    made.cache()
    for number in (2, 3, 4):
        rows, parts = parts_of(outcome, made.limit(number).collect)
        assert parts == ["computed"]
        assert [row.seconds for row in rows] == [121, 120, 120, 119][:number]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_sorted_is(spark, log, outcome, home, way):
    made = WAYS[way](spark, log, COUNTED)
    made.cache()
    outcome(made.filter("page = 'a'").collect)
    rows, parts = parts_of(outcome, made.filter("page = 'b'").collect)
    assert parts == ["reused", "computed"]
    nectar.disable()
    assert made.filter("page = 'b'").collect() == rows
