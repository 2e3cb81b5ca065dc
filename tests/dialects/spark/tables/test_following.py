"""Tables of a Spark server are reused while they are the same, and computed when they are not."""

import re
import time
from contextlib import suppress

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.tables.asking import in_words, plainly, refused, rows, sums

import nectar
from nectar.dialects.spark import elsewhere, tables

pytestmark = engines.only_spark
WAYS = pytest.mark.parametrize("made", [sums, in_words])


# the same


@WAYS
def test_a_table_is_reused_by_any_session(later, clicks, outcome, made):
    session = later()
    first, what, _ = outcome(lambda: rows(made(session, clicks)))
    assert (what, first[0][1]) == ("computed", 240)
    assert outcome(lambda: rows(made(session, clicks))) == (first, "reused", "")
    assert outcome(lambda: rows(made(later(), clicks)))[:2] == (first, "reused")
    assert outcome(lambda: rows(made(session, f"spark_catalog.default.{clicks}")))[0] == first


def test_a_table_of_the_servers_own_folder(spark, later, name, outcome):
    spark.range(5).write.saveAsTable(name)
    session = later()
    assert outcome(lambda: rows(session.table(name)))[1] == "computed"
    assert outcome(lambda: rows(session.table(name)))[:2] == ([(n,) for n in range(5)], "reused")


def test_a_join_of_tables_and_files(later, clicks, log, tmp_path, outcome):
    other = tmp_path / "other"
    other.mkdir()
    write_day(other, 1)

    def program(session):
        days = session.read.parquet(str(other)).select("day").distinct()
        return rows(session.table(clicks).join(days, "day").groupBy("day").count())

    session = later()
    first, what, _ = outcome(lambda: program(session))
    assert what == "computed"
    assert outcome(lambda: program(session))[:2] == (first, "reused")
    write_day(other, 2)
    again, what, _ = outcome(lambda: program(session))
    assert (what, len(again)) == ("computed", 2)


def test_several_tables_are_asked_for_at_once(spark, later, name, outcome, monkeypatch):
    spark.range(5).write.saveAsTable(name)
    spark.range(3).write.saveAsTable(f"{name}_2")
    session = later()
    plain, under_way, most = tables.table_of, [], []

    def asked(connection, table):
        under_way.append(table)
        most.append(len(under_way))
        time.sleep(0.5)
        found = plain(connection, table)
        under_way.remove(table)
        return found

    monkeypatch.setattr(elsewhere, "table_of", asked)
    text = f"select count(*) as n from {name} join {name}_2 using (id)"
    assert outcome(lambda: rows(session.sql(text)))[:2] == ([(3,)], "computed")
    assert max(most) == 2
    assert outcome(lambda: rows(session.sql(text)))[:2] == ([(3,)], "reused")


def test_one_of_several_tables_that_is_not_there(later, clicks, outcome):
    session = later()
    with pytest.raises(Exception, match="nobody_has_this"):
        session.table(clicks).join(session.table("nobody_has_this"), "day").collect()
    assert nectar.last_run().parts[-1].outcome == "uncacheable"


def test_a_view_over_a_table(later, clicks, outcome):
    def defined_by_a_frame(session):
        session.table(clicks).filter("day = 1").createOrReplaceTempView("v")

    def defined_by_a_text(session):
        session.sql(f"create or replace temp view v as select * from {clicks} where day = 1").collect()

    for define in (defined_by_a_frame, defined_by_a_text):
        for expected in ("computed", "reused"):
            session = later()
            define(session)
            value, what, why = outcome(lambda session=session: session.table("v").count())
            assert (value, what) == (120, expected), why


# other rows


@WAYS
def test_rows_that_a_program_inserts(later, clicks, outcome, made):
    session = later()
    first, _, _ = outcome(lambda: rows(made(session, clicks)))
    session.sql(f"insert into {clicks} values ('z', 1000, 9)")
    after, what, why = outcome(lambda: rows(made(session, clicks)))
    assert (what, after) == ("uncacheable", [(first[0][0] + 1000, 241)])
    assert "since the session began" in why
    another = later()
    assert outcome(lambda: rows(made(another, clicks)))[:2] == (after, "computed")
    assert outcome(lambda: rows(made(another, clicks)))[:2] == (after, "reused")


CHANGES = {
    "a file comes": lambda log: write_day(log, 3),
    "a file is rewritten": lambda log: write_day(log, 1, times=2),
    "a file goes": lambda log: (log / "day-2.parquet").unlink(),
}


@WAYS
@pytest.mark.parametrize("change", CHANGES)
def test_files_that_change_unseen_by_the_server(later, new_session, home, clicks, log, outcome, made, change):
    session = later()
    first, _, _ = outcome(lambda: rows(made(session, clicks)))
    CHANGES[change](log)
    with suppress(Exception):  # the server may look for the file that is gone
        rows(made(session, clicks))  # as without Nectar, old or new
        assert nectar.last_run().parts[-1].outcome == "uncacheable"
    another = later()
    expected = plainly(new_session, home, lambda plain: rows(made(plain, clicks)))
    assert expected != first
    assert outcome(lambda: rows(made(another, clicks)))[:2] == (expected, "computed")
    assert outcome(lambda: rows(made(another, clicks)))[:2] == (expected, "reused")


@WAYS
def test_without_looking_at_times_an_old_answer_would_be_kept(later, clicks, log, outcome, made, monkeypatch):
    monkeypatch.setattr(elsewhere, "why_remembered", lambda source, connection: "")
    monkeypatch.setattr(tables.Table, "why_other_files", lambda table, source: "")
    session = later()
    outcome(lambda: rows(made(session, clicks)))
    write_day(log, 3)
    assert outcome(lambda: rows(made(session, clicks)))[0][0][1] == 240  # what the server remembers
    assert outcome(lambda: rows(made(later(), clicks)))[:2][1] == "reused"  # wrongly


# what is not followed


def test_a_table_that_the_session_has_made_is_refused(spark, clicks, outcome, monkeypatch):
    monkeypatch.setattr(tables, "_GUARD", 2.0)  # as it is: the server tells the second
    assert "made after the session began" in refused(outcome, lambda: rows(sums(spark, clicks)))


def test_partitions_of_the_catalog_are_refused(spark, later, name, outcome):
    spark.range(4).withColumn("p", F.col("id") % 2).write.partitionBy("p").saveAsTable(name)
    session = later()
    assert "partitions" in refused(outcome, lambda: rows(session.table(name)))


def test_views_of_the_catalog_are_refused(spark, later, clicks, outcome):
    spark.sql(f"create view v_{clicks} as select * from {clicks}")
    session = later()
    try:
        assert "nor a table" in refused(outcome, lambda: session.table(f"v_{clicks}").count())
    finally:
        spark.sql(f"drop view v_{clicks}")


def test_options_of_a_read_are_refused(later, clicks, outcome):
    made = later().read.option("mergeSchema", "true").table(clicks)
    assert "options" in refused(outcome, lambda: rows(made))


def test_names_that_nobody_has_are_the_programs_error(spark, new_session, home):
    def message(session):
        with pytest.raises(Exception) as raised:
            session.table("nobody_has_this").collect()
        return str(raised.value).split(";")[0]

    assert message(spark) == plainly(new_session, home, message)


# what a program sees


@pytest.mark.parametrize("text", [
    "select seconds / (day - day) as x from {t}",
    "select nothing_like_it from {t}",
    "select cast(page as int) as x from {t} -- at the end",
])  # fmt: skip
def test_errors_are_those_of_the_program(later, new_session, home, clicks, text):
    def message(session):
        with pytest.raises(Exception) as raised:
            session.sql(text.format(t=clicks)).collect()
        return type(raised.value), re.sub(r"#\d+", "#", str(raised.value).split("JVM stacktrace")[0])

    assert message(later()) == plainly(new_session, home, message)


@WAYS
def test_columns_and_types_are_the_same(later, new_session, home, clicks, made):
    expected = plainly(new_session, home, lambda plain: (made(plain, clicks).schema, made(plain, clicks).toArrow()))
    session = later()
    for _ in range(2):
        assert (made(session, clicks).schema, made(session, clicks).toArrow()) == expected


# parts, and getting results back


def test_parts_over_tables_follow_them(later, clicks, log, outcome, monkeypatch):
    monkeypatch.setattr("nectar.dialects.spark.reusing.LEAST_PLANS", 0)

    def program(session, least):
        days = session.table(clicks).groupBy("day").agg(F.sum("seconds").alias("s"))
        return rows(days.filter(F.col("s") > least))

    session = later()
    for least in range(5):
        assert len(outcome(lambda least=least: program(session, least))[0]) == 2
    assert "reused" in [part.outcome for part in nectar.last_run().parts]
    write_day(log, 3)
    assert len(outcome(lambda: program(later(), -1))[0]) == 3


def test_explanations_name_the_table(later, clicks):
    text = str(nectar.explain(sums(later(), clicks)))
    assert f"table {clicks}" in text


def test_a_server_of_another_machine_may_have_another_clock(later, clicks, outcome, monkeypatch):
    session = later()
    outcome(lambda: rows(sums(session, clicks)))
    monkeypatch.setattr(elsewhere.sight, "is_at_home", lambda connection: False)
    assert "the clock of the server" in refused(outcome, lambda: rows(sums(session, clicks)))
