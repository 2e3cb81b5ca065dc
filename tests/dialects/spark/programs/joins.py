"""People and the places they live in: every kind of join, and two columns of one name."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()

people = spark.createDataFrame(
    [(1, "Ada", 10), (2, "Bo", 20), (3, "Cy", None), (4, "Di", 40)], "id int, name string, town int"
)
towns = spark.createDataFrame([(10, "Aachen"), (20, "Bonn"), (30, "Celle")], "town int, name string")

for how in ("inner", "left", "right", "full", "left_semi", "left_anti"):
    joined = people.join(towns.withColumnRenamed("name", "place"), "town", how)
    print(how, sorted(joined.collect(), key=str))

both = people.alias("p").join(towns.alias("t"), F.col("p.town") == F.col("t.town"))
both.select("p.name", F.col("t.name").alias("place")).orderBy("place").show()

same = people.join(towns, people["town"] == towns["town"]).drop(towns["town"]).drop(towns["name"])
same.orderBy("id").show()

pairs = people.alias("a").join(people.alias("b"), F.col("a.id") < F.col("b.id"))
print(pairs.select(F.concat_ws("-", "a.name", "b.name").alias("pair")).orderBy("pair").collect())
print(people.crossJoin(F.broadcast(towns)).count())
