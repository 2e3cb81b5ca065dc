"""A frame that is used more than once, cached."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = Path(sys.argv[1]).resolve()
spark = SparkSession.builder.getOrCreate()

clicks = spark.read.parquet(str(folder / "clicks"))
pages = clicks.groupBy("page").agg(F.sum("seconds").alias("seconds"), F.count("*").alias("n")).cache()
print(pages.count())
pages.orderBy("page").show()
pages.filter("seconds > 4000").select("page").orderBy("page").show()

days = clicks.groupBy("day").agg(F.max("seconds").alias("longest"))
print(days.orderBy("day").toPandas().to_dict("records"))
for row in clicks.join(pages, "page").agg(F.sum("n").alias("n")).collect():
    print(row.n)
pages.unpersist()
