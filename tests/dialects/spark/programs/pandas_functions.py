"""Measurements handed to pandas: series by series, batch by batch, group by group."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
measured = spark.createDataFrame(
    [("a", 1, 2.0), ("a", 2, 4.0), ("b", 1, 10.0), ("b", 2, 30.0), ("b", 3, 20.0)], "probe string, at int, value double"
)


@F.pandas_udf("double")
def fahrenheit(celsius: pd.Series) -> pd.Series:
    return celsius * 1.8 + 32


@F.pandas_udf("double")
def spread(values: pd.Series) -> float:
    return float(values.max() - values.min())


def only_high(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield batch[batch["value"] > 5]


def centred(group: pd.DataFrame) -> pd.DataFrame:
    return group.assign(value=group["value"] - group["value"].mean())


measured.select("probe", "at", fahrenheit("value").alias("f")).orderBy("probe", "at").show()
measured.groupBy("probe").agg(spread("value").alias("spread")).orderBy("probe").show()
measured.mapInPandas(only_high, measured.schema).orderBy("probe", "at").show()
measured.groupBy("probe").applyInPandas(centred, measured.schema).orderBy("probe", "at").show()
measured.mapInArrow(lambda batches: batches, measured.schema).orderBy("probe", "at").show()
