"""Orders come as CSV and JSON, are put together, and go out as Parquet, by country."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

folder = Path(sys.argv[1]).resolve()
spark = SparkSession.builder.getOrCreate()

schema = StructType(
    [StructField("id", LongType()), StructField("country", StringType()), StructField("amount", DoubleType())]
)
orders = spark.read.csv(str(folder / "orders.csv"), header=True, schema=schema)
guessed = spark.read.option("header", True).option("inferSchema", True).csv(str(folder / "orders.csv"))
print(guessed.dtypes)
returns = spark.read.json(str(folder / "returns.json"))
print(returns.dtypes)
print(spark.read.text(str(folder / "orders.csv")).count(), "lines")

left = orders.join(returns, "id", "left_anti")
left.orderBy("id").show()

out = str(folder / "out")
left.write.mode("overwrite").partitionBy("country").parquet(out)
written = spark.read.parquet(out)
written.groupBy("country").agg(F.sum("amount").alias("amount")).orderBy("country").show()
print(written.filter("country = 'FR'").count())
