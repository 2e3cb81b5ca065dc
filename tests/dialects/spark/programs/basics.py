"""A small warehouse: rows of the program itself, columns added, renamed, dropped, filtered and sorted."""

from datetime import date

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("basics").getOrCreate()

stock = spark.createDataFrame(
    [
        Row(item="lamp", price=19.5, pieces=4, arrived=date(2024, 3, 1)),
        Row(item="chair", price=45.0, pieces=12, arrived=date(2024, 2, 11)),
        Row(item="desk", price=230.0, pieces=1, arrived=date(2024, 3, 9)),
        Row(item="shelf", price=80.25, pieces=0, arrived=date(2023, 12, 30)),
    ]
)
stock.printSchema()
print(stock.columns, stock.count())

worth = stock.withColumn("worth", F.col("price") * F.col("pieces")).withColumnRenamed("item", "what")
worth.filter(F.col("pieces") > 0).orderBy(F.desc("worth")).show()
worth.select("what", F.when(F.col("worth") > 200, "much").otherwise("little").alias("how")).orderBy("what").show()

print(worth.drop("price", "arrived").orderBy("what").first())
print([row.what for row in worth.orderBy("arrived").take(2)])
print(worth.orderBy("what").toPandas().to_string())
for row in worth.selectExpr("upper(what) as name", "year(arrived) as year").orderBy("name").collect():
    print(row["name"], row.asDict())
