"""Runs of an athlete: ranks, what came before, running totals, moving means."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()

runs = spark.createDataFrame(
    [("Ada", 1, 52), ("Ada", 2, 49), ("Ada", 3, 50), ("Bo", 1, 61), ("Bo", 2, 61), ("Bo", 4, 58)],
    ["name", "week", "minutes"],
)
by_time = Window.partitionBy("name").orderBy("minutes")
by_week = Window.partitionBy("name").orderBy("week")

runs.select(
    "name", "week", F.rank().over(by_time).alias("rank"), F.dense_rank().over(by_time).alias("dense"),
    F.percent_rank().over(by_time).alias("share"),
).orderBy("name", "week").show()  # fmt: skip
runs.withColumn("gain", F.col("minutes") - F.lag("minutes").over(by_week)).orderBy("name", "week").show()
runs.withColumn("next", F.lead("minutes", 1, 0).over(by_week)).orderBy("name", "week").show()

so_far = by_week.rowsBetween(Window.unboundedPreceding, Window.currentRow)
runs.withColumn("total", F.sum("minutes").over(so_far)).orderBy("name", "week").show()
near = by_week.rowsBetween(-1, 1)
runs.withColumn("mean", F.avg("minutes").over(near)).orderBy("name", "week").show()

best = runs.withColumn("place", F.row_number().over(Window.partitionBy("name").orderBy("minutes", "week")))
print(best.filter("place = 1").drop("place").orderBy("name").collect())
