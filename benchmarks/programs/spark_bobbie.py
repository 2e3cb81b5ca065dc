"""The same questions about sales as in spark_alice.py, written by somebody else."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F


def band(price):
    # nothing is known of what was not sold
    if price is None:
        return None

    cheap = price < 10
    if cheap:
        return "low"

    return "middle" if price < 60 else "high"


def scan(connection: Any, where: str) -> Any:
    table = connection.read.parquet(f"{where}/store_sales.parquet")
    kind = F.udf(band, "string")
    table = table.withColumn("band", kind(F.col("ss_sales_price").cast("double")))
    wanted = [F.sum("ss_net_paid").alias("paid")]
    for column, name in (("ss_ticket_number", "tickets"), ("ss_customer_sk", "customers")):
        wanted.append(F.countDistinct(column).alias(name))
    result = table.groupBy("band").agg(*wanted)
    return result.orderBy("band")


def join(connection: Any, where: str) -> Any:
    left = connection.read.parquet(f"{where}/store_sales.parquet")
    right = connection.read.parquet(f"{where}/customer.parquet")
    condition = left["ss_customer_sk"] == right["c_customer_sk"]
    grouped = left.join(right, condition).groupBy("c_last_name", "c_first_name")
    profit, items = F.sum("ss_net_profit").alias("profit"), F.countDistinct("ss_item_sk").alias("items")
    order = [F.col("profit").desc(), "c_last_name", "c_first_name"]
    return grouped.agg(profit, items).orderBy(*order).limit(20)


PROGRAMS = {"scan": scan, "join": join}
