"""Benchmarks that consist of parts, each measured in a process of its own, and reported together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.polars_report import Report

ROOT = Path(__file__).resolve().parent.parent
Parts = Callable[
    [Path], Mapping[str, list[str]]
]  # given a folder, the arguments of each; the last is a folder of its own


def measured(topic: str, parts: Parts, only: Sequence[str], where: Path | None) -> tuple[Report, dict[str, object]]:
    """What the parts report, and what there is to say about the run. where: the system's temporary folder if None."""
    report = Report()
    about: dict[str, object] = {"cores": os.cpu_count() or 0, "load_before": _load()}
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=where))
    try:
        for name, arguments in parts(folder).items():
            if name in only:
                begun = perf_counter()
                found = Report.read(_run(f"benchmarks.{topic}_{name}", arguments))
                found.show()
                report.join(found)
                about[f"seconds_for_{name}"] = round(perf_counter() - begun, 1)
                shutil.rmtree(arguments[-1], ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    about["load_after"] = _load()
    return report, about


def circumstances(about: Mapping[str, object]) -> str:
    """How busy the machine was."""
    return f"{about['cores']} cores, load {about['load_before']} before and {about['load_after']} after."


def _run(module: str, arguments: list[str]) -> str:
    """The last line of a part, which is its report."""
    Path(arguments[-1]).mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    return done.stdout.splitlines()[-1]


def _load() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0
