"""The 22 queries of the TPC-H benchmark for Polars, with the parameters by which the specification validates answers.

Written from the text of the specification: each function's docstring is the business question it answers. Sums of
money are exact (decimals); products, averages and ratios are floats. `tpchgen-cli` makes the tables, as Parquet files.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final

import polars as pl
from polars import col

# Rows at scale 1, by the specification; what does not grow with the scale is listed apart.
GROWING: Final = {"supplier": 10_000, "part": 200_000, "partsupp": 800_000, "customer": 150_000, "orders": 1_500_000}
FIXED: Final = {"nation": 25, "region": 5}
TABLES: Final = (*GROWING, *FIXED, "lineitem")
GENERATOR: Final = Path(sysconfig.get_path("scripts")) / f"tpchgen-cli{sysconfig.get_config_var('EXE') or ''}"


def generate(folder: Path, scale: float) -> Tables:
    """The tables at a scale; files that are there already are used."""
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        command = [str(GENERATOR), "parquet", "-s", f"{scale:g}", "-o", str(folder), "--overwrite"]
        subprocess.run(command, check=True, capture_output=True)
    return Tables(folder, scale)


@dataclass(frozen=True, slots=True)
class Tables:
    """The eight tables of one scale."""

    folder: Path
    scale: float

    def scan(self, name: str) -> pl.LazyFrame:
        """One table, not read yet."""
        return pl.scan_parquet(self.folder / f"{name}.parquet")

    @property
    def customer(self) -> pl.LazyFrame:
        return self.scan("customer")

    @property
    def lineitem(self) -> pl.LazyFrame:
        return self.scan("lineitem")

    @property
    def nation(self) -> pl.LazyFrame:
        return self.scan("nation")

    @property
    def orders(self) -> pl.LazyFrame:
        return self.scan("orders")

    @property
    def part(self) -> pl.LazyFrame:
        return self.scan("part")

    @property
    def partsupp(self) -> pl.LazyFrame:
        return self.scan("partsupp")

    @property
    def region(self) -> pl.LazyFrame:
        return self.scan("region")

    @property
    def supplier(self) -> pl.LazyFrame:
        return self.scan("supplier")


Query = Callable[[Tables], pl.LazyFrame]


# what several queries speak of


def amount(column: str) -> pl.Expr:
    """A column as floats: products and ratios of decimals would be rounded to cents."""
    return col(column).cast(pl.Float64)


def discounted() -> pl.Expr:
    """What a line of an order brings in."""
    return amount("l_extendedprice") * (1 - amount("l_discount"))


def within(column: str, first: date, end: date) -> pl.Expr:
    """Whether a date lies in a period whose end is not part of it."""
    return col(column).is_between(first, end, closed="left")


def nations_of(tables: Tables, region: str) -> pl.LazyFrame:
    """Key and name of the nations in a region."""
    inside = tables.region.filter(col("r_name") == region)
    joined = tables.nation.join(inside, left_on="n_regionkey", right_on="r_regionkey")
    return joined.select("n_nationkey", "n_name")


def named_nations(tables: Tables, prefix: str) -> pl.LazyFrame:
    """All nations, their columns named after the role they play."""
    return tables.nation.select(
        col("n_nationkey").alias(f"{prefix}_nationkey"), col("n_name").alias(f"{prefix}_nation")
    )


# the queries


def q1(tables: Tables) -> pl.LazyFrame:
    """Pricing summary report: how much was billed, shipped and returned until 90 days before December 1998."""
    net = discounted()
    return (
        tables.lineitem.filter(col("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=col("l_quantity").sum(),
            sum_base_price=col("l_extendedprice").sum(),
            sum_disc_price=net.sum(),
            sum_charge=(net * (1 + amount("l_tax"))).sum(),
            avg_qty=amount("l_quantity").mean(),
            avg_price=amount("l_extendedprice").mean(),
            avg_disc=amount("l_discount").mean(),
            count_order=pl.len(),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q2(tables: Tables) -> pl.LazyFrame:
    """Minimum cost supplier: who in Europe offers brass parts of size 15 at the lowest cost."""
    suppliers = tables.supplier.join(nations_of(tables, "EUROPE"), left_on="s_nationkey", right_on="n_nationkey")
    wanted = tables.part.filter(col("p_size") == 15, col("p_type").str.ends_with("BRASS"))
    offers = wanted.join(tables.partsupp, left_on="p_partkey", right_on="ps_partkey").join(
        suppliers, left_on="ps_suppkey", right_on="s_suppkey"
    )
    return (
        offers.filter(col("ps_supplycost") == col("ps_supplycost").min().over("p_partkey"))
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .sort("s_acctbal", "n_name", "s_name", "p_partkey", descending=[True, False, False, False])
        .head(100)
    )


def q3(tables: Tables) -> pl.LazyFrame:
    """Shipping priority: the ten unshipped orders of highest value on 15 March 1995, in the building segment."""
    day = date(1995, 3, 15)
    customers = tables.customer.filter(col("c_mktsegment") == "BUILDING")
    waiting = tables.orders.filter(col("o_orderdate") < day).join(
        customers, left_on="o_custkey", right_on="c_custkey", how="semi"
    )
    return (
        tables.lineitem.filter(col("l_shipdate") > day)
        .join(waiting, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue=discounted().sum())
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
    )


def q4(tables: Tables) -> pl.LazyFrame:
    """Order priority checking: orders of one quarter with a line that came after its committed date."""
    late = tables.lineitem.filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        tables.orders.filter(within("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=pl.len())
        .sort("o_orderpriority")
    )


def q5(tables: Tables) -> pl.LazyFrame:
    """Local supplier volume: revenue in Asia of orders whose customer and supplier are of the same nation."""
    return (
        tables.orders.filter(within("o_orderdate", date(1994, 1, 1), date(1995, 1, 1)))
        .join(tables.customer, left_on="o_custkey", right_on="c_custkey")
        .join(nations_of(tables, "ASIA"), left_on="c_nationkey", right_on="n_nationkey")
        .join(tables.lineitem, left_on="o_orderkey", right_on="l_orderkey")
        .join(tables.supplier, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .group_by("n_name")
        .agg(revenue=discounted().sum())
        .sort("revenue", descending=True)
    )


def q6(tables: Tables) -> pl.LazyFrame:
    """Forecasting revenue change: what would have been earned without the small discounts of 1994."""
    return tables.lineitem.filter(
        within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)),
        col("l_discount").is_between(Decimal("0.05"), Decimal("0.07")),
        col("l_quantity") < 24,
    ).select(revenue=(amount("l_extendedprice") * amount("l_discount")).sum())


def q7(tables: Tables) -> pl.LazyFrame:
    """Volume shipping: the value of goods between France and Germany, in either direction, by year."""
    pair = ["FRANCE", "GERMANY"]
    sellers = named_nations(tables, "supp").filter(col("supp_nation").is_in(pair))
    buyers = named_nations(tables, "cust").filter(col("cust_nation").is_in(pair))
    return (
        tables.lineitem.filter(col("l_shipdate").is_between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(tables.supplier, left_on="l_suppkey", right_on="s_suppkey")
        .join(sellers, left_on="s_nationkey", right_on="supp_nationkey")
        .join(tables.orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(tables.customer, left_on="o_custkey", right_on="c_custkey")
        .join(buyers, left_on="c_nationkey", right_on="cust_nationkey")
        .filter(col("supp_nation") != col("cust_nation"))
        .group_by("supp_nation", "cust_nation", l_year=col("l_shipdate").dt.year())
        .agg(revenue=discounted().sum())
        .sort("supp_nation", "cust_nation", "l_year")
    )


def q8(tables: Tables) -> pl.LazyFrame:
    """National market share: of Brazil within America, for one type of part, in two years."""
    volume = discounted()
    brazilian = pl.when(col("supp_nation") == "BRAZIL").then(col("volume")).otherwise(0.0)
    return (
        tables.part.filter(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(tables.lineitem, left_on="p_partkey", right_on="l_partkey")
        .join(tables.supplier, left_on="l_suppkey", right_on="s_suppkey")
        .join(named_nations(tables, "supp"), left_on="s_nationkey", right_on="supp_nationkey")
        .join(
            tables.orders.filter(col("o_orderdate").is_between(date(1995, 1, 1), date(1996, 12, 31))),
            left_on="l_orderkey",
            right_on="o_orderkey",
        )
        .join(tables.customer, left_on="o_custkey", right_on="c_custkey")
        .join(nations_of(tables, "AMERICA"), left_on="c_nationkey", right_on="n_nationkey", how="semi")
        .select("supp_nation", o_year=col("o_orderdate").dt.year(), volume=volume)
        .group_by("o_year")
        .agg(mkt_share=brazilian.sum() / col("volume").sum())
        .sort("o_year")
    )


def q9(tables: Tables) -> pl.LazyFrame:
    """Product type profit measure: profit with green parts by nation and year."""
    profit = discounted() - amount("ps_supplycost") * amount("l_quantity")
    return (
        tables.part.filter(col("p_name").str.contains("green", literal=True))
        .join(tables.lineitem, left_on="p_partkey", right_on="l_partkey")
        .join(tables.partsupp, left_on=["p_partkey", "l_suppkey"], right_on=["ps_partkey", "ps_suppkey"])
        .join(tables.supplier, left_on="l_suppkey", right_on="s_suppkey")
        .join(named_nations(tables, "supp"), left_on="s_nationkey", right_on="supp_nationkey")
        .join(tables.orders, left_on="l_orderkey", right_on="o_orderkey")
        .group_by(nation="supp_nation", o_year=col("o_orderdate").dt.year())
        .agg(sum_profit=profit.sum())
        .sort("nation", "o_year", descending=[False, True])
    )


def q10(tables: Tables) -> pl.LazyFrame:
    """Returned item reporting: the twenty customers whose returns of one quarter cost most."""
    facts = ["c_custkey", "c_name", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment"]
    return (
        tables.orders.filter(within("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
        .join(tables.lineitem.filter(col("l_returnflag") == "R"), left_on="o_orderkey", right_on="l_orderkey")
        .group_by("o_custkey")
        .agg(revenue=discounted().sum())
        .join(tables.customer.with_columns(o_custkey="c_custkey"), on="o_custkey")
        .join(tables.nation, left_on="c_nationkey", right_on="n_nationkey")
        .select(*facts[:2], "revenue", *facts[2:])
        .sort("revenue", descending=True)
        .head(20)
    )


def q11(tables: Tables) -> pl.LazyFrame:
    """Important stock identification: parts that are a notable share of all stock in Germany."""
    german = tables.nation.filter(col("n_name") == "GERMANY")
    stock = tables.partsupp.join(tables.supplier, left_on="ps_suppkey", right_on="s_suppkey").join(
        german, left_on="s_nationkey", right_on="n_nationkey", how="semi"
    )
    value = (amount("ps_supplycost") * col("ps_availqty")).sum()
    return (
        stock.group_by("ps_partkey")
        .agg(value=value)
        .filter(col("value") > col("value").sum() * (0.0001 / tables.scale))
        .sort("value", descending=True)
    )


def q12(tables: Tables) -> pl.LazyFrame:
    """Shipping modes and order priority: whether cheap shipping makes urgent orders late."""
    urgent = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (
        tables.lineitem.filter(
            col("l_shipmode").is_in(["MAIL", "SHIP"]),
            col("l_commitdate") < col("l_receiptdate"),
            col("l_shipdate") < col("l_commitdate"),
            within("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)),
        )
        .join(tables.orders, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("l_shipmode")
        .agg(high_line_count=urgent.sum(), low_line_count=urgent.not_().sum())
        .sort("l_shipmode")
    )


def q13(tables: Tables) -> pl.LazyFrame:
    """Customer distribution: how many customers have how many orders that are no special requests."""
    counted = tables.orders.filter(col("o_comment").str.contains("special.*requests").not_())
    return (
        tables.customer.join(counted, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c_count=col("o_orderkey").count())
        .group_by("c_count")
        .agg(custdist=pl.len())
        .sort("custdist", "c_count", descending=True)
    )


def q14(tables: Tables) -> pl.LazyFrame:
    """Promotion effect: the share of promoted parts in the revenue of one month."""
    net = discounted()
    promoted = pl.when(col("p_type").str.starts_with("PROMO")).then(net).otherwise(0.0)
    return (
        tables.lineitem.filter(within("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
        .join(tables.part, left_on="l_partkey", right_on="p_partkey")
        .select(promo_revenue=100 * promoted.sum() / net.sum())
    )


def q15(tables: Tables) -> pl.LazyFrame:
    """Top supplier: who brought in most in one quarter."""
    revenue = (
        tables.lineitem.filter(within("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .group_by("l_suppkey")
        .agg(total_revenue=discounted().sum())
    )
    best = revenue.filter(col("total_revenue") == col("total_revenue").max())
    return (
        tables.supplier.join(best, left_on="s_suppkey", right_on="l_suppkey")
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


def q16(tables: Tables) -> pl.LazyFrame:
    """Parts/supplier relationship: how many suppliers without complaints can deliver parts of a kind."""
    bad = tables.supplier.filter(col("s_comment").str.contains("Customer.*Complaints"))
    return (
        tables.part.filter(
            col("p_brand") != "Brand#45",
            col("p_type").str.starts_with("MEDIUM POLISHED").not_(),
            col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9]),
        )
        .join(tables.partsupp, left_on="p_partkey", right_on="ps_partkey")
        .join(bad, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(supplier_cnt=col("ps_suppkey").n_unique())
        .sort("supplier_cnt", "p_brand", "p_type", "p_size", descending=[True, False, False, False])
    )


def q17(tables: Tables) -> pl.LazyFrame:
    """Small-quantity-order revenue: what would be lost a year without small orders of some parts."""
    wanted = tables.part.filter(col("p_brand") == "Brand#23", col("p_container") == "MED BOX")
    lines = tables.lineitem.join(wanted, left_on="l_partkey", right_on="p_partkey", how="semi")
    usual = lines.group_by("l_partkey").agg(usual=amount("l_quantity").mean())
    return (
        lines.join(usual, on="l_partkey")
        .filter(amount("l_quantity") < 0.2 * col("usual"))
        .select(avg_yearly=amount("l_extendedprice").sum() / 7.0)
    )


def q18(tables: Tables) -> pl.LazyFrame:
    """Large volume customer: the hundred orders of highest price among those of more than 300 pieces."""
    large = tables.lineitem.group_by("l_orderkey").agg(quantity=col("l_quantity").sum()).filter(col("quantity") > 300)
    return (
        tables.orders.join(large, left_on="o_orderkey", right_on="l_orderkey")
        .join(tables.customer, left_on="o_custkey", right_on="c_custkey")
        .select("c_name", "o_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "quantity")
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .head(100)
    )


def q19(tables: Tables) -> pl.LazyFrame:
    """Discounted revenue: of three kinds of parts delivered in person by air."""

    def kind(brand: str, containers: list[str], least: int, largest: int) -> pl.Expr:
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & col("l_quantity").is_between(least, least + 10)
            & col("p_size").is_between(1, largest)
        )

    return (
        tables.lineitem.filter(
            col("l_shipmode").is_in(["AIR", "AIR REG"]), col("l_shipinstruct") == "DELIVER IN PERSON"
        )
        .join(tables.part, left_on="l_partkey", right_on="p_partkey")
        .filter(
            kind("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
            | kind("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
            | kind("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
        )
        .select(revenue=discounted().sum())
    )


def q20(tables: Tables) -> pl.LazyFrame:
    """Potential part promotion: Canadian suppliers with a surplus of forest parts."""
    forest = tables.part.filter(col("p_name").str.starts_with("forest"))
    shipped = (
        tables.lineitem.filter(within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("l_partkey", "l_suppkey")
        .agg(shipped=col("l_quantity").sum())
    )
    surplus = (
        tables.partsupp.join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(shipped, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .filter(col("ps_availqty") > 0.5 * amount("shipped"))
    )
    return (
        tables.supplier.join(
            tables.nation.filter(col("n_name") == "CANADA"), left_on="s_nationkey", right_on="n_nationkey", how="semi"
        )
        .join(surplus, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(tables: Tables) -> pl.LazyFrame:
    """Suppliers who kept orders waiting: the only late one of several, in Saudi Arabia."""
    late = col("l_receiptdate") > col("l_commitdate")
    failed = tables.orders.filter(col("o_orderstatus") == "F")
    shared = (
        tables.lineitem.group_by("l_orderkey")
        .agg(suppliers=col("l_suppkey").n_unique(), late_suppliers=col("l_suppkey").filter(late).n_unique())
        .filter(col("suppliers") > 1, col("late_suppliers") == 1)
    )
    saudi = tables.supplier.join(
        tables.nation.filter(col("n_name") == "SAUDI ARABIA"), left_on="s_nationkey", right_on="n_nationkey", how="semi"
    )
    return (
        tables.lineitem.filter(late)
        .join(saudi, left_on="l_suppkey", right_on="s_suppkey")
        .join(shared, on="l_orderkey", how="semi")
        .join(failed, left_on="l_orderkey", right_on="o_orderkey", how="semi")
        .group_by("s_name")
        .agg(numwait=pl.len())
        .sort("numwait", "s_name", descending=[True, False])
        .head(100)
    )


def q22(tables: Tables) -> pl.LazyFrame:
    """Global sales opportunity: customers without orders whose balance is above the average, by country code."""
    here = tables.customer.with_columns(cntrycode=col("c_phone").str.slice(0, 2)).filter(
        col("cntrycode").is_in(["13", "31", "23", "29", "30", "18", "17"])
    )
    balance = amount("c_acctbal")
    return (
        here.filter(balance > balance.filter(col("c_acctbal") > 0).mean())
        .join(tables.orders, left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(numcust=pl.len(), totacctbal=col("c_acctbal").sum())
        .sort("cntrycode")
    )


QUERIES: Final[dict[int, Query]] = {
    number: query
    for number, query in enumerate(
        (q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22), 1
    )
}
