"""TPC-DS: tables and queries as DuckDB's extension makes them. The benchmark of Spark programs uses them too.

The extension comes from a package of PyPI, so that nothing has to be fetched when it is used. The queries are the texts
of the extension as they are, except for names of columns in double quotes, which Spark wants in backticks.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any, Final

TABLES: Final = (
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address",
    "customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion",
    "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
)  # fmt: skip
_QUOTED: Final = re.compile(r'"([^"]+)"')


def why_missing() -> str:
    """Why there are no tables here; empty if there can be some."""
    for module in ("duckdb", "duckdb_extension_tpcds"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: make test-sail"
    return "" if _extension().exists() else f"{_extension()} is not there: DuckDB has another version"


def generate(folder: Path, scale: float) -> Path:
    """The tables at a scale, a Parquet file for each; files that are there already are used."""
    if all((folder / f"{table}.parquet").exists() for table in TABLES):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with _connection() as connection:
        connection.execute(f"CALL dsdgen(sf = {scale:g})")
        for table in TABLES:
            connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")
    return folder


def queries() -> dict[int, str]:
    """The texts of the queries, by number."""
    with _connection() as connection:
        found = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {number: _QUOTED.sub(r"`\1`", text) for number, text in found}


def make_views(spark: Any, folder: Path) -> None:
    """Every table is a view of the session."""
    for table in TABLES:
        spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)


def _extension() -> Path:
    import duckdb
    import duckdb_extension_tpcds

    folder = Path(duckdb_extension_tpcds.__file__).parent / "extensions"
    return folder / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"


def _connection() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"LOAD '{_extension()}'")
    return connection
