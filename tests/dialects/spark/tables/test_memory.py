"""What a Spark server has in memory, and files that a text names by their path."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.tables.asking import in_words, keeping, plainly, rows, sums

import nectar

pytestmark = engines.only_spark
WAYS = pytest.mark.parametrize("made", [sums, in_words])


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


def test_also_through_a_view_of_it(later, clicks, outcome):
    session = later()
    session.table(clicks).createOrReplaceTempView("v")
    assert outcome(lambda: rows(sums(session, "v")))[1] == "computed"
    session.catalog.cacheTable(clicks)
    _, what, why = outcome(lambda: rows(sums(session, "v")))
    assert (what, "cached tables" in why) == ("uncacheable", True)
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
