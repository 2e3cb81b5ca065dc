"""Days of clicks that come to a folder, for the tests of growing files."""

import datetime
import decimal
import os

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import functions as F


def write(folder, day, rows=60, **more):
    """A day, later than all before it."""
    numbers = range(day * 100, day * 100 + rows)
    columns = {
        "page": [("a", "b", "c", None)[n % 4] for n in numbers],
        "n": [None if n % 11 == 0 else n % 17 for n in numbers],
        "x": [n / 7 for n in numbers],
        "d": [decimal.Decimal(n % 90) / 4 for n in numbers],
        "t": [datetime.date(2024, 1, 1 + n % 28) for n in numbers],
        "ok": [n % 3 == 0 for n in numbers],
        "l": [[n % 3, n % 5] for n in numbers],
        **{name: [make(n) for n in numbers] for name, make in more.items()},
    }
    types = {
        "page": pa.string(), "n": pa.int64(), "x": pa.float64(), "d": pa.decimal128(12, 2), "t": pa.date32(),
        "ok": pa.bool_(), "l": pa.list_(pa.int64()),
    }  # fmt: skip
    table = pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})
    path = folder / f"day-{day}.parquet"
    pa.parquet.write_table(table, path)
    later(path, day)
    return path


def later(path, day):
    os.utime(path, (1_700_000_000 + day * 3600,) * 2)


def grown(compared, folder, program, days=(1, 2), then=(3, 4, 5), written=write):
    """The files that were read after each of the last days."""
    for day in days:
        written(folder, day)
    assert compared(program) is None
    read = []
    for day in then:
        written(folder, day)
        read.append(compared(program))
    return read


def clicks(spark, folder):
    return spark.read.parquet(str(folder))


def pages(folder):
    return lambda spark: clicks(spark, folder).groupBy("page").agg(F.sum("n").alias("s"), F.count("*").alias("c"))
