"""A timetable: dates and times read, written, moved, cut off and compared, in a zone that is set."""

from datetime import date, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")

trips = spark.createDataFrame(
    [("a", "2024-02-28 23:30:00", 95), ("b", "2024-07-01 06:05:00", 40), ("c", "2024-12-31 12:00:00", 1500)],
    ["train", "leaves", "minutes"],
).withColumn("leaves", F.to_timestamp("leaves"))

trips.select("train", F.year("leaves"), F.month("leaves"), F.dayofweek("leaves"), F.hour("leaves")).orderBy(
    "train"
).show()
arrives = (F.unix_timestamp("leaves") + F.col("minutes") * 60).cast("timestamp")
trips.withColumn("arrives", arrives).orderBy("train").show(truncate=False)
trips.select("train", F.date_add(F.to_date("leaves"), 2).alias("later"), F.last_day("leaves").alias("end")).orderBy(
    "train"
).show()
trips.select("train", F.date_format("leaves", "yyyy/MM/dd HH:mm").alias("text")).orderBy("train").show()
trips.select("train", F.date_trunc("month", "leaves").alias("month")).orderBy("train").show()
print(trips.filter(F.col("leaves") > F.lit(datetime(2024, 6, 1))).count())
print(trips.select(F.datediff(F.lit(date(2025, 1, 1)), F.to_date("leaves")).alias("days")).orderBy("days").collect())

trips.select("train", F.expr("leaves + interval 1 day").alias("tomorrow")).orderBy("train").show()
print(trips.select(F.current_date() >= F.lit(date(2024, 1, 1))).first()[0])
