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
    grouped = table.groupBy("band")
    result = grouped.agg(F.count("*").alias("n"), F.sum("ss_net_paid").alias("paid"))
    return result.orderBy("band")


def join(connection: Any, where: str) -> Any:
    left = connection.read.parquet(f"{where}/store_sales.parquet")
    right = connection.read.parquet(f"{where}/customer.parquet")
    condition = left["ss_customer_sk"] == right["c_customer_sk"]
    grouped = left.join(right, condition).groupBy("c_last_name", "c_birth_year")
    result = grouped.agg(F.sum("ss_net_paid").alias("paid"))
    order = [F.col("paid").desc(), "c_last_name", "c_birth_year"]
    return result.orderBy(*order).limit(100)


PROGRAMS = {"scan": scan, "join": join}
