"""Two questions about sales, as one person asks them: a scan of a large table, and a join of it with a small one."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F


def band(price):
    """Which kind of price it is."""
    if price is None:
        return None
    if price < 10:
        return "low"
    return "middle" if price < 60 else "high"


def scan(spark: Any, folder: str) -> Any:
    sales = spark.read.parquet(f"{folder}/store_sales.parquet")
    prices = sales.withColumn("band", F.udf(band, "string")(F.col("ss_sales_price").cast("double")))
    return prices.groupBy("band").agg(F.count("*").alias("n"), F.sum("ss_net_paid").alias("paid")).orderBy("band")


def join(spark: Any, folder: str) -> Any:
    sales = spark.read.parquet(f"{folder}/store_sales.parquet")
    customers = spark.read.parquet(f"{folder}/customer.parquet")
    both = sales.join(customers, sales["ss_customer_sk"] == customers["c_customer_sk"])
    by_name = both.groupBy("c_last_name", "c_birth_year").agg(F.sum("ss_net_paid").alias("paid"))
    return by_name.orderBy(F.col("paid").desc(), "c_last_name", "c_birth_year").limit(100)


PROGRAMS = {"scan": scan, "join": join}
