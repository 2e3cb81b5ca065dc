"""Names of a Spark server that stand for something else than before."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.tables.asking import in_words, keeping, plainly, rows, sums

import nectar
from nectar.dialects.spark import query as queries

pytestmark = engines.only_spark
WAYS = pytest.mark.parametrize("made", [sums, in_words])


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


# changes while it runs


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
