"""Attempts to have a result over tables of a Spark server stand for what it is not. None may succeed."""

import os
import shutil
import time

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.tables.asking import plainly, rows

import nectar
from nectar.dialects.spark import connections, looking
from nectar.dialects.spark import query as queries
from nectar.errors import EnvironmentFailure

pytestmark = engines.only_spark


@pytest.fixture
def same(later, new_session, home, outcome):
    """Whether a later session with Nectar gives what a new one without gives."""

    def check(program):
        session = later()
        found, how, _ = outcome(lambda: program(session))
        assert found == plainly(new_session, home, program), how

    return check


# texts that hide what they read


TEXTS = {
    "within a common table expression": "with x as (table {t}) select count(*) as n from x",
    "as a value": "select (table {t}_2) as n",
    "in a condition": "select a from values (1), (2) as v(a) where a = (table {t}_2)",
    "in a pipe": "select 1 as one |> as {t} |> join {t} on true |> aggregate count(*) as n",
}


@pytest.mark.parametrize("which", TEXTS)
def test_tables_that_a_text_hides(spark, later, same, clicks, log, outcome, tmp_path, which):
    spark.sql("select 1 as a").write.parquet(str(tmp_path / "one"))
    spark.sql(f"create table {clicks}_2 (a int) using parquet location '{tmp_path / 'one'}'")

    def program(session):
        return rows(session.sql(TEXTS[which].format(t=clicks)))

    session = later()
    outcome(lambda: program(session))
    write_day(log, 3)
    shutil.rmtree(tmp_path / "one")
    spark.sql("select 2 as a").write.parquet(str(tmp_path / "one"))
    same(program)


def test_a_table_that_is_called_table(spark, later, same, clicks, log, tmp_path, outcome):
    (tmp_path / "fixed").mkdir()
    write_day(tmp_path / "fixed", 1)
    spark.sql(f"create table `table` using parquet location '{tmp_path / 'fixed'}'")
    try:

        def program(session):
            return rows(session.sql(f"select count(*) as n from (table {clicks})"))

        session = later()
        outcome(lambda: program(session))
        write_day(log, 3)
        same(program)
    finally:
        spark.sql("drop table `table`")


def test_variables_in_paths(later, same, tmp_path, outcome):
    for folder, text in (("data", "hello\n"), ("other", "one\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(text)

    def program(session):
        session.conf.set("mine.dir", "../other")
        return rows(session.sql(f"select * from text.`{tmp_path}/data/${{mine.dir}}`"))

    session = later()
    outcome(lambda: program(session))
    (tmp_path / "other" / "a.txt").write_text("two\n")
    same(program)


# definitions that are not told


def test_options_that_the_server_does_not_show(spark, same, name, tmp_path):
    (tmp_path / "one.csv").write_text("token\nsecret\n")
    for null in ("token", "secret"):
        spark.sql(f"drop table if exists {name}")
        options = f"options (nullValue '{null}') location '{tmp_path / 'one.csv'}'"
        spark.sql(f"create table {name} (a string) using csv {options}")
        same(lambda session: rows(session.sql(f"select coalesce(a, '-') as a from {name}")))


def test_folders_that_are_partitions_to_the_engine(spark, later, same, name, tmp_path, outcome):
    """What their names mean was decided with the settings of the session's first read."""
    dated = spark.sql("select 1 as a, timestamp'2020-01-01 10:00:00' as ts")
    dated.write.partitionBy("ts").parquet(str(tmp_path / "d"))
    spark.sql(f"create table {name} (a int) using parquet location '{tmp_path / 'd'}'")

    def program(session):
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        return rows(session.sql(f"select a, cast(ts as long) as x from {name}"))

    session = later()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    outcome(lambda: rows(session.table(name)))
    outcome(lambda: program(session))
    same(program)


# what a session remembers


@pytest.mark.parametrize("by", ["rename", "link"])
def test_a_folder_above_is_another(spark, later, same, name, tmp_path, outcome, by):
    """The session reads as many bytes of the new file as the old one had."""
    for version, count in (("v1", 2), ("v2", 5)):
        (tmp_path / version / "t").mkdir(parents=True)
        (tmp_path / version / "t" / "p.csv").write_text("".join(f"{version}{number}\n" for number in range(count)))
    put = os.rename if by == "rename" else os.symlink
    put(tmp_path / "v1", tmp_path / "now")
    spark.sql(f"create table {name} (a string) using csv location '{tmp_path / 'now' / 't'}'")
    session = later()
    outcome(lambda: rows(session.table(name)))
    os.rename(tmp_path / "now", tmp_path / "old")
    put(tmp_path / "v2", tmp_path / "now")
    outcome(lambda: rows(session.table(name)))
    same(lambda another: rows(another.table(name)))


def test_a_table_of_another_format_gets_the_name(spark, later, same, name, tmp_path, outcome):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "one.txt").write_text("a,b\nc,d\n")
    spark.sql(f"create table {name} (value string) using csv location '{tmp_path / 'd'}'")
    spark.sql(f"create table {name}_2 (value string) using text location '{tmp_path / 'd'}'")
    session = later()
    outcome(lambda: rows(session.table(name)))
    spark.sql(f"alter table {name} rename to {name}_3")
    spark.sql(f"alter table {name}_2 rename to {name}")
    try:
        outcome(lambda: rows(session.table(name)))  # still CSV to this session
        same(lambda another: rows(another.table(name)))
    finally:
        spark.sql(f"drop table {name}_3")


def test_options_of_the_first_read(spark, later, same, name, tmp_path, outcome):
    (tmp_path / "one.csv").write_text("1;2\n3;4\n")
    spark.sql(f"create table {name} (a string) using csv options (sep ';') location '{tmp_path / 'one.csv'}'")

    def program(session):
        session.conf.set("spark.sql.legacy.readFileSourceTableCacheIgnoreOptions", "true")
        return rows(session.table(name))

    session = later()
    outcome(lambda: program(session))
    spark.sql(f"alter table {name} set serdeproperties (sep = ',')")
    outcome(lambda: program(session))
    same(program)


def test_questions_do_not_make_the_server_remember(later, new_session, home, clicks, log, monkeypatch):
    plain = queries.why_altered

    def slowly(*args):  # the keeper has other things to do
        time.sleep(0.3)
        return plain(*args)

    monkeypatch.setattr(queries, "why_altered", slowly)

    def program(session):
        got = [session.table(clicks).count()]
        session.catalog.refreshTable(clicks)
        time.sleep(0.8)
        write_day(log, 3)
        got.append(session.table(clicks).count())
        (log / "day-3.parquet").unlink()
        return got

    expected = plainly(new_session, home, program)
    assert program(later()) == expected


def test_a_clock_that_is_set_back(later, clicks, outcome, monkeypatch):
    class Behind:
        """The clock of a machine that was set back by a minute."""

        def time(self):
            return time.time() - 60

        def __getattr__(self, what):
            return getattr(time, what)

    session = later()
    assert outcome(lambda: rows(session.table(clicks)))[1] == "computed"
    monkeypatch.setattr(connections, "time", Behind())
    _, what, why = outcome(lambda: rows(session.table(clicks)))
    assert (what, "the clock was set" in why) == ("uncacheable", True)


# what the server has in memory


@pytest.fixture
def cached(enabled, new_session, home, log):
    """A frame over a path that another session has cached before a file came."""
    nectar.disable()
    made = new_session().sql(f"select * from parquet.`{log}`").cache()
    assert made.count() == 240
    nectar.enable(home=home, reserve=0)
    write_day(log, 3)
    yield made
    made.unpersist()


def test_plans_that_are_shown_in_part(later, same, cached, log, outcome):
    def program(session):
        session.conf.set("spark.sql.maxPlanStringLength", "100")
        return rows(session.sql(f"select count(*) as n from parquet.`{log}`"))

    session = later()
    outcome(lambda: program(session))
    cached.unpersist()
    same(program)


def test_what_could_not_be_asked_is_not_kept(later, same, cached, log, outcome, monkeypatch):
    def program(session):
        return rows(session.sql(f"select count(*) as n from parquet.`{log}`"))

    def failing(query):
        raise EnvironmentFailure("the index is locked")

    session = later()
    with monkeypatch.context() as patch:
        patch.setattr(looking, "look_up", failing)
        outcome(lambda: program(session))
    cached.unpersist()
    same(program)
