"""Sources that are declared to be good for a while: reused within the time, read again after it, never mixed."""

import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import relations_pb2
from tests.dialects.spark import engines

import nectar
from nectar.clock import ManualClock
from nectar.dialects.spark import validity
from nectar.dialects.spark.keying import keyed
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.validity import Validity, declared
from nectar.errors import RebuildError, SettingError, UserError
from nectar.recipes.rebuild import rebuilt
from nectar.recipes.recipe import recipes_of

HOUR = 3600.0


# what stands in the key


def jdbc(**options):
    relation = relations_pb2.Relation()
    relation.common.plan_id = 1_000_001
    relation.read.data_source.format = "jdbc"
    given = {"url": "jdbc:postgresql://db/sales", "dbtable": "orders", "user": "me", "password": "one", **options}
    for name, value in given.items():
        relation.read.data_source.options[name] = value
    return relation


@pytest.fixture
def marked(monkeypatch):
    monkeypatch.setattr(validity, "_periods", {1_000_001: HOUR})


def key_of(relation, now=10 * HOUR, **where):
    return keyed(relation, b"frame", None, Scope(), None, Validity(now, **where)).root


def filtered(relation):
    made = relations_pb2.Relation()
    made.limit.limit = 3
    made.limit.input.CopyFrom(relation)
    return made


@pytest.mark.small
def test_without_a_word_nothing_is_reused():
    assert "it reads from jdbc, and not from files" in key_of(jdbc()).refusal


@pytest.mark.small
def test_within_the_period_the_key_is_the_same_and_after_it_another(marked):
    for made in (jdbc, lambda: filtered(jdbc())):
        first = key_of(made())
        assert not first.refusal
        assert key_of(made(), now=11 * HOUR - 1).keys == first.keys
        assert key_of(made(), now=11 * HOUR).keys != first.keys
        assert key_of(made(), now=10 * HOUR - 1).keys != first.keys
        assert key_of(made(), now=11 * HOUR).program == first.program


@pytest.mark.small
def test_another_period_is_another_key(marked, monkeypatch):
    first = key_of(jdbc(), now=0.5)
    monkeypatch.setattr(validity, "_periods", {1_000_001: 2 * HOUR})
    assert key_of(jdbc(), now=0.5).keys != first.keys


@pytest.mark.small
@pytest.mark.parametrize(
    "options", [{"url": "jdbc:postgresql://other/sales"}, {"dbtable": "customers"}, {"user": "you"}, {"fetchsize": "9"}]
)
def test_whatever_says_how_a_source_is_reached_counts(marked, options):
    assert key_of(jdbc(**options)).keys != key_of(jdbc()).keys


@pytest.mark.small
def test_where_it_is_reached_from_counts(marked, monkeypatch):
    first = key_of(jdbc())
    assert key_of(jdbc(), endpoint="there:15002").keys != first.keys
    monkeypatch.setattr(validity.socket, "gethostname", lambda: "elsewhere")
    assert key_of(jdbc()).keys != first.keys


@pytest.mark.small
def test_a_password_does_not_count_and_is_shown_nowhere(marked):
    first, other = key_of(jdbc()), key_of(jdbc(password="two"))
    assert first.keys == other.keys
    assert first.text == "source jdbc orders"


@pytest.mark.small
def test_a_stream_is_never_good_for_a_while(marked):
    relation = jdbc()
    relation.read.is_streaming = True
    assert "stream" in key_of(relation).refusal


@pytest.mark.small
def test_tables_count_by_their_catalog_and_only_where_others_can_know_them(marked):
    relation = relations_pb2.Relation()
    relation.common.plan_id = 1_000_001
    relation.read.named_table.unparsed_identifier = "sales.orders"
    assert "is one of the session" in key_of(relation).refusal
    meant = lambda name: f"hive.{'.'.join(name)}"
    one = key_of(relation, table=meant)
    assert not one.refusal
    assert one.keys == key_of(relation, table=meant).keys
    assert one.keys != key_of(relation, table=lambda name: "another one").keys
    assert one.keys != key_of(relation, now=11 * HOUR, table=meant).keys


@pytest.mark.small
def test_other_reasons_stay_reasons(marked):
    made = relations_pb2.Relation()
    made.project.input.CopyFrom(jdbc())
    made.project.expressions.add().unresolved_function.function_name = "rand"
    assert "rand" in key_of(made).refusal


@pytest.mark.small
def test_of_two_words_the_shorter_holds(monkeypatch):
    inner = jdbc()
    outer = filtered(inner)
    outer.common.plan_id = 1_000_002
    monkeypatch.setattr(validity, "_periods", {1_000_001: HOUR, 1_000_002: 100 * HOUR})
    assert key_of(outer).keys != key_of(outer, now=11 * HOUR).keys
    monkeypatch.setattr(validity, "_periods", {1_000_001: 100 * HOUR, 1_000_002: HOUR})
    assert key_of(outer).keys != key_of(outer, now=11 * HOUR).keys


# at an engine: Sail reads Arrow files, at which Nectar does not look


@pytest.fixture
def clock(enabled):
    """The time of the session: ten hours and a half after some hour began."""
    clock = ManualClock(time.time() // HOUR * HOUR + HOUR / 2)
    enabled.clock = clock
    return clock


@pytest.fixture
def source(tmp_path, spark):
    path = tmp_path / "orders.arrow"

    def write(times=1):
        table = pa.table({"page": ["a", "b", "a"], "seconds": [1 * times, 2 * times, 3 * times]})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    write()
    return lambda: spark.read.format("arrow").load(str(path)), write


def total(df):
    return df.agg(F.sum("seconds").alias("s"))


only_sail = engines.only_sail


@only_sail
@pytest.mark.small
def test_a_result_is_reused_within_the_time_and_computed_after_it(source, clock, outcome):
    frame, write = source
    assert outcome(total(frame()).collect)[1] == "uncacheable"
    asked = lambda: total(nectar.valid_for(frame(), "1h")).collect()[0].s
    assert outcome(asked)[:2] == (6, "computed")
    write(10)
    clock.move(HOUR / 2 - 1)
    assert outcome(asked)[:2] == (6, "reused")  # as somebody said that it may be
    clock.move(1)
    assert outcome(asked)[:2] == (60, "computed")
    assert outcome(asked)[:2] == (60, "reused")
    clock.move(-1)
    assert outcome(asked)[:2] == (6, "reused")  # of the hour before


@only_sail
def test_the_time_counts_for_everything_above_and_for_parts(source, clock, outcome, spark, log):
    frame, write = source

    def asked():
        orders = nectar.valid_for(frame(), "1h")
        small = orders.groupBy("page").agg(F.sum("seconds").alias("s"))
        small.cache()
        joined = spark.read.parquet(str(log)).groupBy("page").agg(F.count("*").alias("n")).join(small, "page")
        return sorted(map(tuple, joined.select("page", "s").collect()))

    assert outcome(asked)[:2] == ([("a", 4), ("b", 2)], "computed")
    kinds = [entry.kind for entry in nectar.session.current().catalog.index.entries()]
    assert "parquet" in kinds  # the part that was cached
    write(10)
    assert outcome(asked)[:2] == ([("a", 4), ("b", 2)], "reused")
    clock.move(HOUR)
    assert outcome(asked)[:2] == ([("a", 40), ("b", 20)], "computed")
    assert all(part.outcome != "reused" or "orders" not in part.name for part in nectar.last_run().parts[:-1])


@only_sail
def test_a_view_of_it_is_as_old_as_it_is(source, clock, outcome, spark):
    frame, write = source
    nectar.valid_for(frame(), "1h").createOrReplaceTempView("orders")
    asked = lambda: spark.sql("select sum(seconds) as s from orders").collect()[0].s
    assert outcome(asked)[:2] == (6, "computed")
    assert outcome(asked)[:2] == (6, "reused")
    write(10)
    assert outcome(asked)[:2] == (6, "reused")
    clock.move(HOUR)
    assert outcome(asked)[:2] == (60, "computed")


@only_sail
@pytest.mark.small
def test_files_are_looked_at_as_always(log, clock, outcome, spark):
    from tests.dialects.spark.conftest import write_day

    asked = lambda: nectar.valid_for(spark.read.parquet(str(log)), "1h").count()
    first, what, _ = outcome(asked)
    assert what == "computed"
    write_day(log, 3)
    assert outcome(asked)[:2] == (first + 120, "computed")


@only_sail
@pytest.mark.small
def test_the_frame_that_was_given_is_as_it_was(source, clock, outcome):
    frame, _ = source
    given = frame()
    assert nectar.valid_for(given, "1h").columns == given.columns
    assert outcome(total(given).collect)[1] == "uncacheable"


@only_sail
def test_such_a_result_has_a_name_and_no_way_back(source, clock, enabled):
    frame, _ = source
    saved = nectar.save(total(nectar.valid_for(frame(), "1h")), "orders")
    (entry,) = enabled.catalog.index.lookup([saved.key]).values()
    assert not entry.rebuildable
    (written,) = recipes_of(enabled.catalog, saved.key)
    assert b"orders.arrow" not in written.plan
    enabled.catalog.discard([entry])
    with pytest.raises(RebuildError, match=r"orders\.arrow, which is as it was for a while only"):
        rebuilt(enabled.catalog, saved.key, enabled.settings)


@only_sail
def test_it_is_found_by_another_process(source, tmp_path, home, enabled):
    frame, write = source
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import nectar
            from pyspark.sql import SparkSession, functions as F
            nectar.enable(home={str(home)!r}, reserve=0)
            spark = SparkSession.builder.getOrCreate()
            df = nectar.valid_for(spark.read.format("arrow").load({str(tmp_path / "orders.arrow")!r}), "1000d")
            print(df.agg(F.sum("seconds").alias("s")).collect()[0].s, nectar.last_run().parts[-1].outcome)
            """
        )
    )
    run = lambda: subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout
    assert run() == "6 computed\n"
    write(10)
    assert run() == "6 reused\n"


@pytest.mark.small
@pytest.mark.parametrize(("period", "error"), [("0s", UserError), ("-1h", SettingError), ("soon", SettingError)])
def test_a_period_is_a_time(period, error):
    with pytest.raises(error):
        declared(None, period)


# sources of the user's own, as JDBC is on Sail


@pytest.fixture
def own_source(spark):
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Orders(DataSource):
        @classmethod
        def name(cls):
            return "orders"

        def schema(self):
            return "seconds long"

        def reader(self, schema):
            return OrdersReader()

    class OrdersReader(DataSourceReader):
        def read(self, partition):
            yield (6,)

    spark.dataSource.register(Orders)
    frame = lambda: spark.read.format("orders").option("password", "canary").load()
    frame.kind = Orders
    return frame


@only_sail
def test_a_registered_source_is_reused_for_as_long_as_somebody_said(own_source, clock, outcome, home):
    assert outcome(total(own_source()).collect)[1] == "uncacheable"
    asked = lambda: total(nectar.valid_for(own_source(), "1h")).collect()[0].s
    assert outcome(asked)[:2] == (6, "computed")
    assert outcome(asked)[:2] == (6, "reused")
    clock.move(HOUR)
    assert outcome(asked)[1] == "computed"
    assert all(b"canary" not in path.read_bytes() for path in home.rglob("*") if path.is_file())


@only_sail
def test_a_source_that_has_changed_is_not_reused(own_source, clock, outcome):
    asked = lambda: total(nectar.valid_for(own_source(), "1h")).collect()[0].s
    assert outcome(asked)[1] == "computed"
    own_source.kind.schema = lambda self: "seconds int"
    _, what, why = outcome(asked)
    assert what == "uncacheable"
    assert "changed after it was registered" in why


@only_sail
def test_files_and_functions_are_reused_beside_a_registered_source(own_source, spark, log, outcome):
    asked = lambda: spark.read.parquet(str(log)).count()
    assert outcome(asked)[1] == "computed"
    assert outcome(asked)[1] == "reused"
