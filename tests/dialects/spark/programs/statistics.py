"""A survey with gaps: filled, dropped, replaced, and described in numbers."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
answers = spark.createDataFrame(
    [(1, 34, 2.0, "yes"), (2, None, 4.0, "no"), (3, 51, None, None), (4, 20, 8.0, "yes"), (5, None, None, "n/a")],
    "id int, age int, hours double, likes string",
).orderBy("id")

answers.fillna({"age": 0, "likes": "unknown"}).show()
answers.na.drop(subset=["age", "hours"]).show()
answers.dropna(thresh=3).show()
answers.replace("n/a", None, "likes").show()
answers.select("id", F.coalesce("hours", F.lit(0.0)).alias("hours"), F.isnull("age").alias("gap")).show()
answers.select(*[F.count(F.when(F.col(name).isNull(), 1)).alias(name) for name in answers.columns]).show()

answers.describe("age", "hours").orderBy("summary").show()
answers.select("age").summary("count", "min", "max").orderBy("summary").show()
full = answers.dropna(subset=["age", "hours"])
print(round(full.corr("age", "hours"), 6), round(full.cov("age", "hours"), 6))
print(answers.agg(F.median("hours"), F.stddev("hours"), F.skewness("hours")).first())
print(sorted(str(sorted(row.asDict().items())) for row in answers.crosstab("likes", "age").collect()))
