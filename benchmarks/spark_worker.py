"""A program of somebody in a process of its own, on a Sail server of its own, or on the server that SPARK_REMOTE names.

    python -m benchmarks.spark_worker HOME|- TABLES alice|bobbie scan|join RUNS

The last line says how many seconds each run took, from the call to the rows; what became of each; and the rows. Without
a home it runs as plain Spark. Starting the interpreter, the server and the session is not counted.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import nectar
from nectar.session import current


def session_of(home: str | None) -> Any:
    """A new session, on a new server unless one is named; under Nectar if there is a home."""
    if home is not None:
        # hits are measured, also of queries that are left alone by default, such as the first ones of a busy machine
        nectar.enable(home=home, reserve=0, overhead="unlimited")
    from pyspark.sql import SparkSession

    if "SPARK_REMOTE" in os.environ:
        spark = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).create()
    else:
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer()
        server.start(background=True)
        spark = SparkSession.builder.remote("sc://{}:{}".format(*server.listening_address)).getOrCreate()
        spark._nectar_server = server  # lives as long as the session
    spark.range(1).count()  # the connection is there, and the catalog open
    return spark


def program_of(author: str, program: str) -> Callable[[Any, str], Any]:
    """A program of somebody, whose functions are sent to the server as those of a main file are."""
    from pyspark.cloudpickle import register_pickle_by_value

    module = importlib.import_module(f"benchmarks.programs.spark_{author}")
    register_pickle_by_value(module)
    found: Callable[[Any, str], Any] = module.PROGRAMS[program]
    return found


def settle() -> None:
    """Everything that is being kept has been kept."""
    session = current()
    if session is not None:
        assert session.settle(120)


def main(home: str, tables: str, author: str, program: str, runs: str) -> None:
    spark = session_of(None if home == "-" else home)
    run = program_of(author, program)
    seconds, outcomes, answers = [], [], []
    for _ in range(int(runs)):
        begun = perf_counter()
        rows = run(spark, tables).collect()
        seconds.append(perf_counter() - begun)
        settle()
        outcomes.append("plain" if home == "-" else nectar.last_run().parts[-1].outcome)
        answers.append(repr(rows))
    print(json.dumps({"seconds": seconds, "outcomes": outcomes, "answers": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
