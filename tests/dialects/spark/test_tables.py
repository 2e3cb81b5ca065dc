"""Tables of a Spark server's catalog, and files that a text names by their path: reused while they are the same."""

import re
import secrets
import time
from contextlib import suppress

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar
from nectar.dialects.spark import elsewhere, tables
from nectar.dialects.spark import query as queries

pytestmark = engines.only_spark
A_MOMENT = 1.1  # seconds: the server tells when a table was made to the second


@pytest.fixture(autouse=True)
def clocks_agree(monkeypatch):
    monkeypatch.setattr(tables, "_GUARD", 0.0)


@pytest.fixture
def name(new_session):
    """The name of a table that is gone after the test."""
    made = f"t_{secrets.token_hex(6)}"
    yield made
    nectar.disable()
    session = new_session()
    for each in (made, f"{made}_2"):
        session.sql(f"drop table if exists {each}")


@pytest.fixture
def later(enabled, new_session):
    """Makes a session that begins when everything that is there has been there for a while."""

    def make():
        time.sleep(A_MOMENT)
        return new_session()

    return make


@pytest.fixture
def clicks(spark, name, log):
    """A table over a folder of the test's own."""
    spark.sql(f"create table {name} using parquet location '{log}'")
    return name


def sums(spark, table):
    return spark.table(table).agg(F.sum("seconds").alias("s"), F.count("*").alias("n"))


def in_words(spark, table):
    return spark.sql(f"select sum(seconds) as s, count(*) as n from {table}")


WAYS = pytest.mark.parametrize("made", [sums, in_words])


def plainly(new_session, home, action):
    """What a program without Nectar gives, in a session of its own."""
    nectar.disable()
    try:
        return action(new_session())
    finally:
        nectar.enable(home=home, reserve=0)


def rows(frame):
    return sorted(map(tuple, frame.collect()))


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
    monkeypatch.setattr(elsewhere, "why_remembered", lambda source, began: "")
    monkeypatch.setattr(tables.Table, "why_other_files", lambda table, source: "")
    session = later()
    outcome(lambda: rows(made(session, clicks)))
    write_day(log, 3)
    assert outcome(lambda: rows(made(session, clicks)))[0][0][1] == 240  # what the server remembers
    assert outcome(lambda: rows(made(later(), clicks)))[:2][1] == "reused"  # wrongly


# other tables


DEFINED = {
    "types": ("csv", "a int, b string", "a string, b string", "select a || '!' as x, b from {t}"),
    "names": ("csv", "a int, b string", "b int, a string", "select * from {t}"),
    "lengths": ("parquet", "a int, b char(3)", "a int, b string", "select a, b || '!' as x from {t}"),
    "defaults": (
        "parquet",
        "a int, b string, c int default 1",
        "a int, b string, c int default 2",
        "select * from {t}",
    ),
    "comments": ("parquet", "a int comment 'one', b string", "a int comment 'two', b string", "select * from {t}"),
}


@pytest.mark.parametrize("what", DEFINED)
def test_a_table_that_is_defined_anew_over_the_same_files(
    spark, later, new_session, home, name, tmp_path, outcome, what
):  # fmt: skip
    form, before, after, text = DEFINED[what]
    spark.sql("select 1 as a, 'x' as b").write.format(form).save(str(tmp_path / "folder"))
    for columns in (before, after):
        spark.sql(f"drop table if exists {name}")
        spark.sql(f"create table {name} ({columns}) using {form} location '{tmp_path / 'folder'}'")
        session = later()
        found, how, why = outcome(lambda session=session: repr(session.sql(text.format(t=name)).collect()))
        assert how == "computed", why
        assert found == plainly(new_session, home, lambda plain: repr(plain.sql(text.format(t=name)).collect()))
        assert outcome(lambda session=session: repr(session.sql(text.format(t=name)).collect()))[:2] == (
            found, "reused",
        )  # fmt: skip


def test_a_default_that_only_old_rows_have(spark, later, name, outcome, tmp_path):
    """The server tells one default of a column, and knows two."""
    spark.sql("select 1 as a").write.parquet(str(tmp_path / "folder"))
    for first, then in ((5, 7), (7, 7)):
        spark.sql(f"drop table if exists {name}")
        spark.sql(f"create table {name} (a int) using parquet location '{tmp_path / 'folder'}'")
        spark.sql(f"alter table {name} add column b int default {first}")
        spark.sql(f"alter table {name} alter column b set default {then}")
        session = later()
        found, what, _ = outcome(lambda session=session: rows(session.table(name)))
        assert (found, what) == ([(1, first)], "computed")


def test_options_of_a_table_count(spark, later, name, tmp_path, outcome):
    (tmp_path / "one.csv").write_text("1,2\n3,4\n")
    found = []
    for header in ("true", "false"):
        spark.sql(f"drop table if exists {name}")
        spark.sql(
            f"create table {name} (a int, b int) using csv options (header {header}) location '{tmp_path / 'one.csv'}'"
        )
        session = later()
        found.append(outcome(lambda session=session: rows(session.table(name)))[0])
        assert outcome(lambda session=session: rows(session.table(name)))[:2] == (found[-1], "reused")
    assert found == [[(3, 4)], [(1, 2), (3, 4)]]


def two_folders(spark, tmp_path):
    for which in (1, 2):
        spark.sql(f"select {which} as a").write.parquet(str(tmp_path / str(which)))


def altered(other, name, tmp_path):
    other.sql(f"alter table {name} set location '{tmp_path / '2'}'")


def made_anew(other, name, tmp_path):
    other.sql(f"drop table {name}")
    other.sql(f"create table {name} (a int) using parquet location '{tmp_path / '2'}'")


@pytest.mark.parametrize("change", [altered, made_anew])
def test_a_table_that_another_session_moves(spark, later, new_session, name, tmp_path, outcome, change):
    """A session goes on to read it where it was; what it gives must not stand for what it is."""
    two_folders(spark, tmp_path)
    spark.sql(f"create table {name} (a int) using parquet location '{tmp_path / '1'}'")
    session = later()
    assert rows(session.table(name)) == [(1,)]
    change(spark, name, tmp_path)
    plain, what, _ = outcome(lambda: rows(session.table(name)))
    assert (plain, what) == ([(1,)], "uncacheable")
    another = later()
    assert outcome(lambda: rows(another.table(name)))[:2] == ([(2,)], "computed")
    assert outcome(lambda: rows(session.table(name)))[:2] == ([(1,)], "uncacheable")


@pytest.mark.parametrize("define", [
    lambda s, t: s.table(t).createOrReplaceTempView("v"),
    lambda s, t: s.sql(f"create or replace temp view v as select * from {t}").collect(),
])  # fmt: skip
def test_a_view_of_a_table_that_moves(spark, later, name, tmp_path, outcome, define):
    two_folders(spark, tmp_path)
    spark.sql(f"create table {name} (a int) using parquet location '{tmp_path / '1'}'")
    session = later()
    define(session, name)
    before, what, _ = outcome(lambda: rows(session.table("v")))
    assert (before, what) == ([(1,)], "computed")
    session.sql(f"alter table {name} set location '{tmp_path / '2'}'")
    nectar.disable()
    plain = rows(session.table("v"))
    nectar.enable(home=tmp_path / "home", reserve=0)
    assert rows(session.table("v")) == plain
    another = later()
    define(another, name)
    assert outcome(lambda: rows(another.table("v")))[:2] == ([(2,)], "computed")


def test_a_name_means_another_table_in_another_database(spark, later, name, outcome):
    spark.sql(f"create database db_{name}")
    try:
        spark.range(2).write.saveAsTable(name)
        spark.range(3).write.saveAsTable(f"db_{name}.{name}")
        session = later()
        for base, count in (("default", 2), (f"db_{name}", 3), ("default", 2)):
            session.catalog.setCurrentDatabase(base)
            assert len(outcome(lambda: rows(session.table(name)))[0]) == count
            assert outcome(lambda: len(rows(session.table(name))))[:2] == (count, "reused")
    finally:
        spark.sql(f"drop database db_{name} cascade")


@WAYS
def test_a_view_of_the_session_stands_before_the_table(later, clicks, log, outcome, made):
    session = later()
    table, _, _ = outcome(lambda: rows(made(session, clicks)))
    session.read.parquet(str(log)).filter("day = 1").createOrReplaceTempView(clicks)
    view, what, _ = outcome(lambda: rows(made(session, clicks)))
    assert (what, view[0][1]) == ("computed", 120)
    session.catalog.dropTempView(clicks)
    assert outcome(lambda: rows(made(session, clicks)))[:2] == (table, "reused")


def test_a_view_that_was_made_while_nectar_was_off(later, home, clicks, log, outcome):
    session = later()
    outcome(lambda: rows(sums(session, clicks)))
    nectar.disable()
    session.read.parquet(str(log)).filter("day = 1").createOrReplaceTempView(clicks)
    nectar.enable(home=home, reserve=0)
    assert rows(sums(session, clicks))[0][1] == 120
    assert nectar.last_run().parts[-1].outcome == "uncacheable"


# what is not followed


def refused(outcome, action):
    for _ in range(2):
        _, what, why = outcome(action)
        assert what == "uncacheable", why
    return why


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
        assert "is no table" in refused(outcome, lambda: session.table(f"v_{clicks}").count())
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


# what the server has in memory


CACHED = {
    "a statement": lambda session, table: session.sql(f"cache table {table}").collect(),
    "the catalog": lambda session, table: session.catalog.cacheTable(table),
}


@pytest.mark.parametrize("how", CACHED)
def test_a_session_that_has_cached_a_table_sees_it_as_it_was(later, clicks, outcome, how):
    session = later()
    CACHED[how](session, clicks)
    answer, what, why = outcome(lambda: rows(sums(session, clicks)))
    assert (answer[0][1], what) == (240, "uncacheable")
    assert "cached tables" in why
    session.catalog.uncacheTable(clicks)


@WAYS
def test_what_another_session_has_cached_is_not_kept(later, new_session, home, clicks, log, outcome, made):
    def cache(session):
        session.catalog.cacheTable(clicks)
        return session.table(clicks).count()

    assert plainly(new_session, home, cache) == 240
    write_day(log, 3)
    session = later()
    for _ in range(2):
        answer, what, why = outcome(lambda: rows(made(session, clicks)))
        assert (answer[0][1], what) == (240, "uncacheable")  # as without Nectar
        assert "from other files" in why
    session.sql(f"uncache table {clicks}")


def test_a_frame_over_a_table_that_is_cached_stays_as_it_was(later, new_session, home, clicks, log, outcome):
    def program(session):
        frame = session.table(clicks).filter("seconds > 0").cache()
        before = frame.count()
        write_day(log, 3)
        after = frame.count()
        frame.unpersist()
        (log / "day-3.parquet").unlink()
        return before, after

    expected = plainly(new_session, home, program)
    assert outcome(lambda: program(later()))[0] == expected == (240, 240)


def test_the_cache_of_another_session_is_left_alone(later, new_session, home, clicks, log, outcome):
    nectar.disable()
    other = new_session()
    cached = other.table(clicks).filter("seconds > 0").cache()
    assert cached.count() == 240
    nectar.enable(home=home, reserve=0)
    write_day(log, 3)
    assert outcome(lambda: rows(sums(later(), clicks)))[0][0][1] == 360
    assert cached.count() == 240
    cached.unpersist()


# changes while it runs


def keeping():
    return nectar.last_run().parts[-1].keeping


def test_a_table_that_is_altered_while_it_runs_is_not_kept(spark, later, clicks, outcome, monkeypatch):
    plain, asked = queries.why_altered, []

    def altered(connection, found):
        if not asked:
            spark.sql(f"alter table {clicks} set tblproperties ('now' = 'another')")
        asked.append(1)
        return plain(connection, found)

    monkeypatch.setattr(queries, "why_altered", altered)
    session = later()
    outcome(lambda: rows(sums(session, clicks)))
    assert "altered while it ran" in keeping()
    assert outcome(lambda: rows(sums(session, clicks)))[1] == "computed"
    assert outcome(lambda: rows(sums(session, clicks)))[1] == "reused"


def test_a_table_that_is_gone_when_it_has_run_is_not_kept(spark, later, clicks, outcome, monkeypatch):
    plain = queries.why_altered

    def gone(connection, found):
        spark.sql(f"drop table {clicks}")
        return plain(connection, found)

    monkeypatch.setattr(queries, "why_altered", gone)
    session = later()
    outcome(lambda: rows(sums(session, clicks)))
    assert "is not known" in keeping()


# paths in texts


def counted(session, log):
    return rows(session.sql(f"select count(*) as n from parquet.`{log}`"))


def test_files_by_their_path_in_a_text(later, log, outcome):
    session = later()
    assert outcome(lambda: counted(session, log))[:2] == ([(240,)], "computed")
    assert outcome(lambda: counted(session, log))[:2] == ([(240,)], "reused")
    write_day(log, 3)
    assert outcome(lambda: counted(session, log))[1] == "uncacheable"
    another = later()
    assert outcome(lambda: counted(another, log))[:2] == ([(360,)], "computed")
    assert outcome(lambda: counted(later(), log))[:2] == ([(360,)], "reused")


def test_a_frame_of_another_session_is_not_taken_for_a_path(later, new_session, home, log, outcome):
    nectar.disable()
    other = new_session()
    cached = other.sql(f"select * from parquet.`{log}`").cache()
    assert cached.count() == 240
    nectar.enable(home=home, reserve=0)
    write_day(log, 3)
    session = later()
    old, what, _ = outcome(lambda: counted(session, log))
    assert (old, what) == ([(240,)], "computed")  # as without Nectar
    assert "has cached a part" in keeping()
    cached.unpersist()
    assert outcome(lambda: counted(later(), log))[0] == [(360,)]


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
