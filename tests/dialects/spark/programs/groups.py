"""Sales by shop and month: totals, several aggregates at once, a pivot, subtotals."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()

SHOPS = ["north", "south", "harbour"]
sales = spark.createDataFrame(
    [(SHOPS[number % 3], number % 4 + 1, 10 * number + 5) for number in range(60)], "shop string, month int, cents long"
)

sales.groupBy("shop").count().orderBy("shop").show()
sales.groupBy("shop").agg({"cents": "max"}).orderBy("shop").show()
sales.groupBy("shop", "month").agg(
    F.sum("cents").alias("total"), F.avg("cents").alias("mean"), F.countDistinct("cents").alias("kinds")
).filter("total > 500").orderBy("shop", "month").show()
sales.groupBy("shop").pivot("month", [1, 2, 3, 4]).sum("cents").orderBy("shop").show()
sales.rollup("shop", "month").agg(F.sum("cents").alias("total")).orderBy(
    F.col("shop").asc_nulls_first(), F.col("month").asc_nulls_first()
).show()
lists = sales.filter("month = 2").groupBy("shop").agg(F.sort_array(F.collect_list("cents")).alias("all"))
lists.orderBy("shop").show(truncate=False)
print(sales.agg(F.min("cents"), F.max("cents"), F.sum("cents")).first())
