"""Delta tables on Sail grow by their files: what is new is read, and the answer is that of plain Sail."""

import os
import random

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.incremental.conftest import answered
from tests.dialects.spark.incremental.delta_tables import Table, data_in, goes_on, grown, pages
from tests.dialects.spark.incremental.random_parts import program, rows

pytestmark = engines.only_sail

PROGRAMS = 200 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 20
CHUNK = 10
EVENTS = 7
FAULT = "Physical input schema should be the same"  # of Sail, where it counts by what a log says; parts go without


@pytest.fixture
def table(plain, tmp_path):
    return Table(plain, str(tmp_path / "clicks"))


PROGRAMS_OF_PARTS = {
    "groups": lambda df: df.groupBy("page").agg(F.sum("n"), F.avg("n"), F.count_distinct("n")),
    "rows": lambda df: df.filter("n > 3").withColumn("m", F.col("n") * 2),
    "a sort": lambda df: df.filter("n > 3").orderBy("id"),
    "the first": lambda df: df.orderBy(F.desc("n"), "id").limit(5),
    "distinct rows": lambda df: df.select("page", "n").distinct(),
    "more after it": lambda df: df.groupBy("page").count().filter("count > 1").orderBy("page"),
    "all": lambda df: df.agg(F.count("*"), F.max("id")),
}


@pytest.mark.small
@pytest.mark.parametrize("what", PROGRAMS_OF_PARTS)
def test_what_is_new_is_read(compared, table, what):
    grown(compared, table, lambda spark: PROGRAMS_OF_PARTS[what](table.read(spark)))


@pytest.mark.small
@pytest.mark.parametrize("by", [["page"], ["page", "n"]])
def test_partitions_are_those_of_the_log(compared, table, by):
    grown(compared, table, pages(table), by=by)


def test_values_of_partitions_that_no_path_can_have(compared, table):
    grown(compared, table, pages(table), by=["page"])
    for value in ("a b/%é", "x=y", ":", "#?", "\\", "ü%20"):
        before = table.files
        table.write(table.plain.createDataFrame([(value, 1, 5)], "page string, id long, n long"))
        assert data_in(compared(pages(table))) == table.files - before


@pytest.mark.small
def test_what_was_replaced_is_not_counted(compared, table):
    grown(compared, table, pages(table))
    table.write(table.plain.range(3).selectExpr("id", "'a' as page", "id as n"), mode="overwrite")
    compared(pages(table))
    before = table.files
    table.append()
    compared(pages(table))
    table.append()
    assert not data_in(compared(pages(table))) & before


MERGE = (
    "merge into {t} using (select 5L as id, 'z' as page, 1L as n) u on {t}.id = u.id "
    "when matched then update set n = 99 when not matched then insert *"
)
STATEMENTS = [
    "delete from {t} where id % 100 = 7",
    "delete from {t} where id >= 100 and id < 200",
    "update {t} set n = n + 100 where id = 205",
    MERGE,
    "insert into {t} select id + 10000, page, n from {t}",
]


@pytest.mark.small
@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(compared, table, text):
    grown(compared, table, pages(table))
    table.say(text)
    compared(pages(table))
    before = table.files
    table.append()
    read = compared(pages(table))
    assert data_in(read) >= table.files - before


def test_part_of_it_is_replaced(compared, table):
    grown(compared, table, pages(table), by=["page"])
    made = table.plain.range(3).selectExpr("id", "'a' as page", "id as n")
    table.write(made, mode="overwrite", replaceWhere="page = 'a'")
    compared(pages(table))
    table.append()
    compared(pages(table))


@pytest.mark.small
def test_a_log_that_was_shortened(compared, table):
    """After ten versions Sail sums them up in a file; then the others may be deleted."""
    for _ in range(13):
        table.append()
    assert compared(pages(table)) is None
    for version in range(10):
        os.unlink(table.commit(version))
    table.append()
    compared(pages(table))
    before = table.files
    table.append()
    assert data_in(compared(pages(table))) == table.files - before


def test_versions_that_are_asked_for(compared, table):
    for _ in range(6):
        table.append()
    assert compared(pages(table, versionAsOf=1)) is None
    compared(pages(table, versionAsOf=2))
    assert len(data_in(compared(pages(table, versionAsOf=3)))) == 1
    assert compared(pages(table, versionAsOf=2)) is None  # it is known as it is
    assert len(data_in(compared(pages(table)))) == 2
    compared(pages(table, versionAsOf=0))


@pytest.mark.parametrize("spelled", ["1 ", "01", "+1", "1_0", "-1", "１", "", "99", "1.0"])
def test_versions_that_are_spelled_oddly(compared, table, spelled):
    for _ in range(12):
        table.append(rows=5)
    for version in ("2", "3", spelled, spelled):
        compared(pages(table, versionAsOf=version))


def test_a_column_that_comes_later(compared, table):
    grown(compared, table, pages(table))
    more = table.plain.range(3).selectExpr("id", "'a' as page", "id as n", "'new' as extra")
    table.write(more, mergeSchema="true")
    compared(pages(table))
    compared(lambda spark: table.read(spark).filter("id < 3"))
    table.append()
    compared(lambda spark: table.read(spark).filter("id < 3"))


def test_names_of_columns_that_are_not_those_of_the_files(compared, table):
    table.append(**{"delta.columnMapping.mode": "name"})
    table.append()
    assert any(
        "columnMapping" in line["protocol"].get("readerFeatures", ()) for line in table.lines(0) if "protocol" in line
    )
    compared(pages(table))
    goes_on(compared, table, pages(table))


def test_two_tables_joined(compared, table, tmp_path):
    other = Table(table.plain, str(tmp_path / "other"))
    other.write(table.plain.createDataFrame([("a", 1), ("b", 2)], "page string, weight long"))
    made = lambda spark: table.read(spark).join(other.read(spark), "page").groupBy("weight").agg(F.sum("n"))
    grown(compared, table, made)
    other.write(table.plain.createDataFrame([("c", 3)], "page string, weight long"))
    compared(made)


def test_two_versions_of_one_joined(compared, table):
    for _ in range(3):
        table.append()
    made = lambda spark: table.read(spark).join(table.read(spark, versionAsOf=0), "id", "left_anti").agg(F.count("*"))
    for _ in range(4):
        compared(made)
        table.append()


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_histories(compared, plain, tmp_path, first):
    put_together = 0
    for seed in range(first, first + CHUNK):
        r = random.Random(f"table {seed}")
        table = Table(plain, str(tmp_path / str(seed)))
        by = r.choice([(), (), ("k",), ("n", "k")])
        for _ in range(2):
            table.write(_some(plain, r), by=by)
        for _ in range(EVENTS):
            made = program(table.read, seed)
            if FAULT not in str(answered(made, plain)):
                put_together += compared(made) is not None
            _event(table, r)
    assert put_together >= CHUNK


def _some(plain, r):
    made = rows(r)
    while not made.num_rows:
        made = rows(r)
    return plain.createDataFrame(made)


def _event(table, r):
    """Something happens to a table; mostly rows come."""
    what = r.choice(["append"] * 5 + ["overwrite", "delete", "update", "part"])
    if what == "append":
        table.write(_some(table.plain, r))
    elif what == "overwrite":
        table.write(_some(table.plain, r), mode="overwrite")
    elif what == "delete":
        table.say(f"delete from {{t}} where n = {r.randrange(12)}")
    elif what == "update":
        table.say(f"update {{t}} set x = 9.5 where n % 5 = {r.randrange(5)}")
    else:
        table.write(_some(table.plain, r).filter("k = 'a'"), mode="overwrite", replaceWhere="k = 'a'")
