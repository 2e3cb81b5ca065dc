"""Spark programs that have little or nothing to gain, on Sail in the same process.

    python -m benchmarks.programs.small_spark PROGRAM FOLDER SIZE [nectar]

With `nectar` Nectar is enabled before anything else. Prints what the program found; nothing else is said or measured
here. The processor time of Sail is that of the process. SIZE scales the data: 1 is the real thing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if sys.argv[4:] == ["nectar"]:
    import nectar

    nectar.enable()


def prepare(folder: Path, size: float) -> None:
    """Two wide tables, and a small one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    orders, lines = int(1_000_000 * size), int(4_000_000 * size)
    numbers = np.random.default_rng(1)
    words = np.array([f"word{each}" for each in range(3000)])
    texts = pa.array([" ".join(chosen) for chosen in words[numbers.integers(0, len(words), (20_000, 4))]])
    kinds = pa.array(["AIR", "MAIL", "SHIP", "TRUCK", "DELIVER IN PERSON"])
    table: dict[str, Any] = {"o_orderkey": np.arange(orders), "o_custkey": numbers.integers(0, 150_000, orders)}
    table |= {
        "o_totalprice": numbers.random(orders),
        "o_priority": kinds.take(pa.array(numbers.integers(0, 5, orders))),
    }
    table |= {"o_comment": texts.take(pa.array(numbers.integers(0, len(texts), orders)))}
    pq.write_table(pa.table(table), folder / "orders.parquet")
    table = {"l_orderkey": np.sort(numbers.integers(0, orders, lines))}
    table |= {f"l_key{each}": numbers.integers(0, 200_000, lines) for each in range(3)}
    table |= {f"l_amount{each}": numbers.random(lines) for each in range(4)}
    table |= {f"l_kind{each}": kinds.take(pa.array(numbers.integers(0, 5, lines))) for each in range(4)}
    table |= {"l_comment": texts.take(pa.array(numbers.integers(0, len(texts), lines)))}
    pq.write_table(pa.table(table), folder / "lines.parquet")
    pq.write_table(pa.table({"a": range(1000), "g": [each % 7 for each in range(1000)]}), folder / "few.parquet")


@contextmanager
def _session() -> Iterator[Any]:
    """A session on Sail, as a program that names its server makes it."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    yield session
    session.stop()
    server.stop()


def spark_fresh(folder: Path, size: float) -> object:
    """One small query."""
    with _session() as spark:
        return spark.read.parquet(str(folder / "few.parquet")).filter("a > 3").groupBy("g").count().count()


def spark_join(folder: Path, size: float) -> object:
    """Three counts over a join of wide tables, with a filter that is another one each time, and lets all rows pass."""
    with _session() as spark:
        lines, orders = (spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("lines", "orders"))
        joined = lines.join(orders, lines.l_orderkey == orders.o_orderkey)
        found = []
        for _ in range(3):
            counted = joined.filter(f"o_custkey > -{time.time_ns() % 10**9 + 1}").groupBy("o_priority").count()
            found.append(sorted(map(tuple, counted.collect())))
        return found


PROGRAMS: dict[str, Callable[[Path, float], object]] = {each.__name__: each for each in (spark_fresh, spark_join)}


def main() -> None:
    """Runs a program."""
    name, folder, size = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    if name == "prepare":
        prepare(folder, size)
    else:
        print(PROGRAMS[name](folder, size))


if __name__ == "__main__":
    main()
