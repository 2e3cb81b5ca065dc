"""Two lists of subscribers: together, in common, apart, each once."""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
spring = spark.createDataFrame([("ada", 1), ("bo", 2), ("bo", 2), ("cy", 3)], ["name", "plan"])
autumn = spark.createDataFrame([("bo", 2), ("cy", 1), ("di", 3)], ["name", "plan"])


def in_order(frame):
    return frame.orderBy("name", "plan").collect()


print(in_order(spring.union(autumn)))
print(in_order(spring.unionByName(autumn.select("plan", "name"))))
print(in_order(spring.intersect(autumn)))
print(in_order(spring.subtract(autumn)))
print(in_order(spring.exceptAll(autumn)))
print(in_order(spring.intersectAll(autumn)))
print(in_order(spring.distinct()))
print(spring.union(autumn).dropDuplicates(["name"]).count())

more = spark.createDataFrame([("eve", 2, True)], ["name", "plan", "trial"])
print(in_order(spring.unionByName(more, allowMissingColumns=True)))
every = reduce(DataFrame.union, [spring, autumn, spring])
every.groupBy("name").agg(F.count("*").alias("n")).orderBy("name").show()
