"""A library in SQL: views, joins, subqueries, common tables, parameters, and back to frames."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.createDataFrame([(1, "Emma", 1815), (2, "Ulysses", 1922), (3, "Dune", 1965)], "id int, title string, year int") \
    .createOrReplaceTempView("books")  # fmt: skip
spark.createDataFrame([(1, "Ada", 3), (1, "Bo", 9), (3, "Ada", 14)], "book int, reader string, days int") \
    .createOrReplaceTempView("loans")  # fmt: skip

spark.sql("select title, year from books where year > 1900 order by year").show()
spark.sql("""
    with busy as (select book, sum(days) as days from loans group by book)
    select title, coalesce(days, 0) as days from books left join busy on books.id = busy.book
    order by days desc, title  -- the longest first
""").show()
spark.sql("select title from books where id in (select book from loans where reader = 'Ada') order by 1").show()
spark.sql("select reader, days, rank() over (order by days desc) as place from loans order by place").show()
spark.sql("select count(*) as n from books where year < :before", args={"before": 1950}).show()
spark.sql("create or replace temporary view old as select * from books where year < 1900")
print(spark.table("old").collect())

clicks = f"parquet.`{sys.argv[1]}/clicks`"
spark.sql(f"select page, count(*) as n from {clicks} group by page order by page").show()
readers = spark.sql("select * from loans").groupBy("reader").count()
print(readers.orderBy("reader").collect())
