"""Who finds whose results, and how fast: KeyChain's tables I, II and III.

    python -m benchmarks.spark_sharing TABLES RUNS FOLDER

Alice and Bobbie write the same two programs, a scan of store_sales and its join with customer, each with code of their
own. Hits are counted for the same code, the same process, another process, and another user with another home. A hit is
timed from the call to the rows: within a process, and as the first call of a new process. The last line is the report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.polars_report import Report
from benchmarks.spark_worker import program_of, session_of, settle

import nectar

ROOT = Path(__file__).resolve().parent.parent


def worker(home: str, tables: Path, author: str, program: str, runs: int, user: Path | None = None) -> dict[str, Any]:
    """What a process of its own says; of another user, if a folder for them is given."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in (str(ROOT), *sys.path) if path)}
    if user is not None:
        user.mkdir(exist_ok=True)
        environment |= {"HOME": str(user), "USER": user.name, "LOGNAME": user.name}
    command = [sys.executable, "-m", "benchmarks.spark_worker", home, str(tables), author, program, str(runs)]
    done = subprocess.run(command, cwd=user or ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def within_a_process(home: Path, tables: Path, program: str) -> list[str]:
    """What becomes of a program that is run, run again, and run as somebody else wrote it."""
    spark = session_of(str(home))
    outcomes = []
    for author in ("alice", "alice", "bobbie"):
        program_of(author, program)(spark, str(tables)).collect()
        settle()
        outcomes.append(nectar.last_run().parts[-1].outcome)
    spark.client.close()
    nectar.disable()
    return outcomes


def main(tables: Path, runs: int, folder: Path) -> None:
    report = Report()
    report.begin("KeyChain's table III: is what Alice computed found? (1: a hit)")
    for program in ("scan", "join"):
        home = folder / f"hits-{program}"
        first, same_code, same_process = within_a_process(home, tables, program)
        assert first == "computed"
        other = worker(str(home), tables, "bobbie", program, 1)["outcomes"][0]
        elsewhere = worker(str(home), tables, "bobbie", program, 1, folder / "bobbie")["outcomes"][0]
        outcomes = {
            "same_code": same_code, "same_process": same_process, "other_process": other,
            "other_user_and_home": elsewhere,
        }  # fmt: skip
        for name, outcome in outcomes.items():
            report.add(
                f"{program}_{name}_hit", f"{program}, {name.replace('_', ' ')}", float(outcome == "reused"), "", "1"
            )
    report.begin("KeyChain's tables I and II: computed, and answered from the store")
    for program in ("scan", "join"):
        measure(report, program, tables, runs, folder)
    print(report.written())


def measure(report: Report, program: str, tables: Path, runs: int, folder: Path) -> None:
    plain = worker("-", tables, "alice", program, runs + 1)
    home = folder / f"times-{program}"
    ours = worker(str(home), tables, "alice", program, runs + 1)
    assert set(ours["outcomes"][1:]) == {"reused"}
    across = [worker(str(home), tables, "bobbie", program, 1) for _ in range(runs)]
    assert all(each["outcomes"] == ["reused"] for each in across)
    assert {*plain["answers"], *ours["answers"], *(each["answers"][0] for each in across)} == {plain["answers"][0]}
    computed = plain["seconds"][1:]  # the first also makes the engine read its files from the disk
    hits, first_hits = ours["seconds"][1:], [each["seconds"][0] for each in across]
    report.add(f"{program}_plain_s", f"{program}, computed without Nectar", computed, "s")
    report.add(f"{program}_hit_ms", f"{program}, hit in the same process", [1000 * each for each in hits], "ms")
    report.add(
        f"{program}_hit_across_ms",
        f"{program}, first call of another process",
        [1000 * each for each in first_hits],
        "ms",
    )
    report.add(
        f"{program}_speedup",
        f"{program}, speed-up within a process",
        median(computed) / median(hits),
        "x",
        "189 to 281",
    )
    report.add(
        f"{program}_speedup_across",
        f"{program}, speed-up across processes",
        median(computed) / median(first_hits),
        "x",
        ">= 100",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
