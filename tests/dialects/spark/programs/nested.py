"""Baskets as nested data: arrays, maps and structs, and functions over their elements."""

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()

baskets = spark.createDataFrame(
    [
        Row(id=1, fruits=["apple", "fig"], prices=[30, 55], buyer=Row(name="Ada", town="Bonn")),
        Row(id=2, fruits=["kiwi"], prices=[25], buyer=Row(name="Bo", town="Celle")),
        Row(id=3, fruits=[], prices=[], buyer=Row(name="Cy", town=None)),
    ]
).orderBy("id")
baskets.printSchema()

baskets.select("id", F.explode("fruits").alias("fruit")).orderBy("id", "fruit").show()
baskets.select("id", F.explode_outer("fruits").alias("fruit")).orderBy("id", "fruit").show()
baskets.select("id", F.transform("prices", lambda cents: cents * 2).alias("twice")).show()
baskets.select("id", F.filter("prices", lambda cents: cents > 28).alias("dear")).show()
baskets.select("id", F.aggregate("prices", F.lit(0).cast("long"), lambda total, each: total + each).alias("all")).show()
baskets.select("id", F.exists("fruits", lambda fruit: fruit == "fig").alias("figs")).show()

baskets.select("buyer.name", F.col("buyer").getField("town").alias("town")).show()
by_fruit = baskets.select("id", F.map_from_arrays("fruits", "prices").alias("by_fruit"))
by_fruit.select("id", F.col("by_fruit")["apple"].alias("apples")).show()
baskets.select(F.size("fruits").alias("n"), F.array_contains("fruits", "kiwi").alias("kiwi")).show()
text = spark.createDataFrame([('{"a": 1, "b": [2, 3]}',)], ["text"])
print(text.select(F.from_json("text", "a int, b array<int>").alias("parsed")).select("parsed.*").collect())
print(baskets.select(F.to_json("buyer").alias("json")).collect())
