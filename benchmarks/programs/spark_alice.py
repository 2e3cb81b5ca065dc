"""Two questions about sales, as one person asks them: a scan of a large table, and its join with a small one."""

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
    return (
        prices.groupBy("band")
        .agg(
            F.sum("ss_net_paid").alias("paid"),
            F.countDistinct("ss_ticket_number").alias("tickets"),
            F.countDistinct("ss_customer_sk").alias("customers"),
        )
        .orderBy("band")
    )


def join(spark: Any, folder: str) -> Any:
    sales = spark.read.parquet(f"{folder}/store_sales.parquet")
    customers = spark.read.parquet(f"{folder}/customer.parquet")
    both = sales.join(customers, sales["ss_customer_sk"] == customers["c_customer_sk"])
    by_name = both.groupBy("c_last_name", "c_first_name").agg(
        F.sum("ss_net_profit").alias("profit"), F.countDistinct("ss_item_sk").alias("items")
    )
    return by_name.orderBy(F.col("profit").desc(), "c_last_name", "c_first_name").limit(20)


PROGRAMS = {"scan": scan, "join": join}
