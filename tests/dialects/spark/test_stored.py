"""Results as relations: rows, names, types, nullability and metadata are those of the result."""

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
from tests.dialects.spark import engines

import nectar
from nectar.catalog.service import Kept
from nectar.dialects.spark import stored
from nectar.dialects.spark.manners import SAIL, SPARK
from nectar.dialects.spark.stored import relation_of
from nectar.dialects.spark.writing import is_same_schema, schema_by_engine, types_by_engine, write

KEY = bytes(range(32))
MANNER = SAIL if engines.ENGINE == "sail" else SPARK
SCHEMA = T.StructType(
    [
        T.StructField("flag", T.BooleanType(), False),
        T.StructField("byte", T.ByteType()),
        T.StructField("short", T.ShortType()),
        T.StructField("int", T.IntegerType()),
        T.StructField("long", T.LongType(), False),
        T.StructField("float", T.FloatType()),
        T.StructField("double", T.DoubleType()),
        T.StructField("decimal", T.DecimalType(12, 2)),
        T.StructField("text", T.StringType()),
        T.StructField("binary", T.BinaryType()),
        T.StructField("date", T.DateType()),
        T.StructField("stamp", T.TimestampType()),
        T.StructField("ntz", T.TimestampNTZType()),
        T.StructField("list", T.ArrayType(T.LongType(), False)),
        T.StructField("map", T.MapType(T.StringType(), T.LongType(), False)),
        T.StructField(
            "struct", T.StructType([T.StructField("x", T.LongType(), False), T.StructField("y", T.StringType())])
        ),
    ]
)
ROWS = [
    (True, 1, 2, 3, 4, 0.5, float("nan"), Decimal("1.25"), "a", b"\x00", datetime.date(1582, 1, 1),
     datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), datetime.datetime(1900, 1, 1), [1, 2], {"k": 1}, (1, "y")),
    (False, None, None, None, -4, -0.0, float("inf"), None, "", None, None, None, None, [], {}, (2, None)),
]  # fmt: skip


def with_nulls_within(kind):
    """The type, in which whatever is within a column may be null."""
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(with_nulls_within(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(kind.keyType, with_nulls_within(kind.valueType))
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(each.name, with_nulls_within(each.dataType)) for each in kind.fields])
    return kind


def relation_from(spark, frame):
    return frame._plan.plan(spark.client)


class Given(LogicalPlan):
    """A plan that is a relation."""

    def __init__(self, relation):
        super().__init__(None)
        self.relation = relation

    def plan(self, session):
        return self.relation


def frame_of(spark, relation):
    return DataFrame(Given(relation), spark)


def written(spark, frame):
    """The entry of a frame that the engine has written, or why it is none."""
    catalog = nectar.session.current().catalog
    with catalog.handover(KEY, 1000) as place:
        seconds = write(spark.client, relation_from(spark, frame), place, manner=MANNER)
        if isinstance(seconds, str):
            return seconds
        kept = catalog.keep(KEY, KEY, place, table=True, seconds=seconds)
    assert isinstance(kept, Kept)
    return kept.entry


def recorded(spark, frame, enabled):
    """The entry of a frame whose rows passed the client."""
    frame.collect()
    part = nectar.last_run().parts[-1]
    enabled.settle()
    key = bytes.fromhex(part.key)
    return enabled.catalog.index.lookup([key])[key]


def relation_for(enabled, entry):
    with enabled.catalog.open(entry) as result:
        relation = relation_of(result, 4711, MANNER)
    assert not isinstance(relation, str), relation
    assert relation.common.plan_id == 4711
    return relation


def rows(frame):
    return sorted(map(repr, frame.collect()))


def metadata_of(field):
    return json.loads(field.metadata or "{}")


def same(spark, enabled, frame, entry):
    relation = relation_for(enabled, entry)
    told = schema_by_engine(spark.client, relation_from(spark, frame))
    read = schema_by_engine(spark.client, relation)
    assert is_same_schema(read, told, of_types=True)
    assert [(each.name, metadata_of(each)) for each in read.struct.fields] == [
        (each.name, metadata_of(each)) for each in told.struct.fields
    ]
    if entry.kind == "parquet":  # of rows that passed the client, Sail may have found out that there are no nulls
        assert is_same_schema(read, told)
    nectar.disable()
    plain, read = rows(frame), rows(frame_of(spark, relation))
    assert read == plain
    return plain


@pytest.mark.small
@pytest.mark.parametrize("way", [written, recorded])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_comes_back(spark, enabled, way, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = spark.createDataFrame(ROWS, SCHEMA)
    if way is written and MANNER.forgets_nulls:
        assert written(spark, frame) == "its columns would not come back as they were"
        fields = [T.StructField(each.name, with_nulls_within(each.dataType), each.nullable) for each in SCHEMA.fields]
        frame = spark.createDataFrame(ROWS, T.StructType(fields))
    entry = way(spark, frame) if way is written else way(spark, frame, enabled)
    assert not isinstance(entry, str), entry
    assert same(spark, enabled, frame, entry)


@pytest.mark.small
@pytest.mark.parametrize("way", [written, recorded])
def test_columns_of_one_name_come_back(spark, enabled, way):
    frame = spark.range(5, numPartitions=1).select(
        "id", F.col("id").alias("id"), F.lit(1).alias("ID"), F.lit(2).alias("a b,c;{}="), F.lit(3).alias("x.y")
    )
    entry = way(spark, frame) if way is written else way(spark, frame, enabled)
    assert not isinstance(entry, str), entry
    assert same(spark, enabled, frame, entry)


@pytest.mark.parametrize("way", [written, recorded])
def test_metadata_comes_back_or_it_is_refused(spark, enabled, way):
    frame = spark.range(5).select(F.col("id").alias("n", metadata={"unit": "s"}))
    entry = way(spark, frame) if way is written else way(spark, frame, enabled)
    assert same(spark, enabled, frame, entry)


@engines.only_sail
def test_an_empty_result_is_not_kept(spark, enabled):
    assert "no file" in written(spark, spark.range(5).filter("id > 9"))
    assert enabled.catalog.usage().total == 0
    assert list(enabled.catalog.store.locations()) == []


@pytest.mark.parametrize("way", [written, recorded])
def test_values_that_look_constant_in_statistics(spark, enabled, way):
    """Sail reads them wrongly from files with statistics."""
    nan = float("nan")
    frame = spark.createDataFrame([(1, nan, 0.0), (2, 7.0, -0.0), (3, 7.0, 0.0)], "k long, x double, z double")
    frame = frame.filter("k > 0").repartition(1)
    entry = way(spark, frame) if way is written else way(spark, frame, enabled)
    assert sum("nan" in row for row in same(spark, enabled, frame, entry)) == 1
    relation = relation_for(enabled, entry)
    assert frame_of(spark, relation).filter("x > 100").count() == frame.filter("x > 100").count() == 1


def test_a_result_without_columns_is_refused(spark, enabled):
    assert written(spark, spark.range(5).select()) == "it has no columns"


@engines.only_sail
def test_many_rows_are_read_where_they_lie(spark, enabled, monkeypatch):
    monkeypatch.setattr(stored, "MOST_SENT", 1 << 18)
    nan = float("nan")
    frame = spark.range(20_000).select(
        "id", F.when(F.col("id") % 2 == 0, F.lit(nan)).otherwise(F.lit(1.0)).alias("x.y"),
        F.lit("a").alias("n", metadata={"unit": "s"}), F.array("id").alias("l"),
    )  # fmt: skip
    entry = recorded(spark, frame, enabled)
    with enabled.catalog.open(entry) as result:
        assert relation_of(result).read.data_source.format == "arrow"
        assert "too many" in relation_of(result, manner=SPARK)
    same(spark, enabled, frame, entry)


@engines.only_sail
def test_many_rows_of_every_type_are_read_where_they_lie(spark, enabled, monkeypatch):
    monkeypatch.setattr(stored, "_FEW", 0)
    monkeypatch.setattr(enabled.catalog, "_inline", 0)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    frame = spark.createDataFrame(ROWS, SCHEMA)
    entry = recorded(spark, frame, enabled)
    with enabled.catalog.open(entry) as result:
        assert relation_of(result).read.data_source.format == "arrow"
    assert same(spark, enabled, frame, entry)


def test_many_rows_with_two_columns_of_one_name_are_not_read(spark, enabled, monkeypatch):
    monkeypatch.setattr(stored, "MOST_SENT", 1 << 18)
    frame = spark.range(20_000).select("id", F.col("id").alias("ID"))
    entry = recorded(spark, frame, enabled)
    with enabled.catalog.open(entry) as result:
        assert "too many" in relation_of(result)


def test_what_an_engine_wrote_may_be_narrower_than_it_said(spark, enabled):
    frame = spark.range(9).select((F.col("id") * 2).alias("n"), F.concat(F.lit("a"), F.col("id").cast("string")))
    entry = written(spark, frame)
    assert not isinstance(entry, str), entry
    assert same(spark, enabled, frame, entry)


@pytest.mark.parametrize("way", [written, recorded])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_are_shown_in_the_zone_of_their_file(spark, enabled, tmp_path, way, zone):
    """Sail shows times of a file in the zone that the file says, and those it is told of in that of the session."""
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    columns = {
        "tokyo": pa.array([noon], pa.timestamp("us", tz="Asia/Tokyo")),
        "list": pa.array([[noon]], pa.list_(pa.timestamp("us", tz="Asia/Tokyo"))),
    }
    pq.write_table(pa.table(columns), tmp_path / "times.parquet")
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = spark.read.parquet(str(tmp_path / "times.parquet"))
    entry = way(spark, frame) if way is written else way(spark, frame, enabled)
    assert not isinstance(entry, str), entry
    assert same(spark, enabled, frame, entry)
    shown = [F.hour("tokyo"), F.col("tokyo").cast("string"), F.hour(F.col("list")[0])]
    read = frame_of(spark, relation_for(enabled, entry))
    assert read.select(shown).collect() == frame.select(shown).collect()
    if engines.ENGINE == "sail":
        assert read.select(shown).collect()[0][0] == 21


def test_times_of_two_zones_whose_nullability_is_lost_are_refused(spark, enabled, tmp_path):
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    pq.write_table(pa.table({"t": pa.array([noon], pa.timestamp("us", tz="Asia/Tokyo"))}), tmp_path / "times.parquet")
    frame = spark.read.parquet(str(tmp_path / "times.parquet")).select("t", (F.lit(1) * 2).alias("n"))
    entry = written(spark, frame)
    assert entry == "its columns would not come back as they were" or same(spark, enabled, frame, entry)


def test_an_empty_table_that_passed_the_client(spark, enabled):
    frame = spark.createDataFrame(ROWS, SCHEMA).filter("long > 100")
    entry = recorded(spark, frame, enabled)
    assert same(spark, enabled, frame, entry) == []


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "large_string", "string_view", "timestamp[s]"])
def test_types_of_the_engine_that_a_schema_does_not_tell(spark, enabled, tmp_path, kind):
    """Sail counts without signs where a file does, and says that it has signs."""
    made = pa.array([1, 200, None], pa.int64()).cast(pa.type_for_alias(kind))
    pq.write_table(pa.table({"x": made}), tmp_path / "types.parquet")
    frame = spark.read.parquet(str(tmp_path / "types.parquet"))
    entry = written(spark, frame)
    assert not isinstance(entry, str), entry
    relation = relation_for(enabled, entry)
    nectar.disable()
    assert types_by_engine(spark.client, relation) == types_by_engine(spark.client, relation_from(spark, frame))
    shown = F.concat("x", F.lit("!"))
    assert rows(frame_of(spark, relation).select(shown)) == rows(frame.select(shown))
