"""Table 4 of the Nectar paper: three programs that begin with what a fourth has computed; and a hit in a new process.

    python -m benchmarks.polars_words MEGABYTES FOLDER

Every program runs in a process of its own; seconds are from the call to the frame, so that the start of the interpreter
and the import of Polars are left out, but not what Nectar does when it is used first. Runs of the same program
with another number of words share the analysis and nothing else: they show a process that has been running for a while.
The last line is the report.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import polars as pl
from benchmarks.polars_peers import BY_HAND, JOBLIB, NECTAR, PEERS, PLAIN, ByHand, is_installed, why_no_xorq
from benchmarks.polars_report import Report
from benchmarks.programs import words
from benchmarks.programs.documents import write_documents

ROOT = Path(__file__).resolve().parent.parent
LATER = ("TopWord", "MostDoc", "TopRatio")
SAVED_THEN = {"TopWord": 98.8, "MostDoc": 98.6, "TopRatio": 99.2}  # percent, in the paper
COUNTS = tuple(range(10, 25))  # the first is that of the paper
PROCESSES = 5


def worker(peer: str, folder: Path, documents: Path, program: str, counts: tuple[int, ...]) -> Any:
    """What a new process measured, and how long all of the process took."""
    arguments = [peer, str(folder), str(documents), program, *map(str, counts)]
    begun = perf_counter()
    command = [sys.executable, "-m", "benchmarks.polars_worker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"process": perf_counter() - begun}


def measure_sharing(report: Report, documents: Path, where: Path) -> None:
    """The four programs one after the other, by every peer."""
    report.begin("Table 4: TopWord, MostDoc and TopRatio after WordAnalysis, each in a new process")
    plain = {program: worker(PLAIN, where, documents, program, COUNTS[:1]) for program in words.PROGRAMS}
    for program, found in plain.items():
        report.add(f"plain_{program.lower()}_s", f"{program}, plain Polars", found["seconds"][0], "s")
    later = [peer for peer in (NECTAR, BY_HAND, JOBLIB) if is_installed(peer)]
    folders = {peer: where / peer.replace(" ", "_") for peer in later}
    for peer, folder in folders.items():
        first = worker(peer, folder, documents, "WordAnalysis", COUNTS[:1])
        name = peer.replace(" ", "_").lower()
        report.add(f"{name}_wordanalysis_s", f"WordAnalysis, {peer}, first time", first["seconds"][0], "s")
        report.add(f"{name}_wordanalysis_kept_s", f"WordAnalysis, {peer}, until it is kept", first["kept"][0], "s")
    rest = _small_rest(ByHand.file_in(folders[BY_HAND]))
    for program, times in rest.items():
        report.add(f"rest_{program.lower()}_ms", f"{program}, reading the analysis and doing the rest", times, "ms")
    for peer, folder in folders.items():
        _measure_peer(report, peer, documents, folder, plain, rest)
    measure_hits(report, documents, folders[NECTAR], plain["WordAnalysis"])


def _measure_peer(
    report: Report, peer: str, documents: Path, folder: Path, plain: dict[str, Any], rest: dict[str, list[float]]
) -> None:
    name = peer.replace(" ", "_").lower()
    for program in LATER:
        found = worker(peer, folder, documents, program, COUNTS)
        _check(peer, found, plain[program])
        fresh, again = found["seconds"][0], found["seconds"][1:]
        off = plain[program]["seconds"][0]
        key, words_for = f"{name}_{program.lower()}", f"{program}, {peer}"
        ours = peer == NECTAR
        aim = f"99.5 %; {SAVED_THEN[program]} % in the paper" if ours else ""
        report.add(f"{key}_first_ms", f"{words_for}, first in a new process", fresh * 1e3, "ms")
        report.add(f"{key}_ms", f"{words_for}, later in the process", [each * 1e3 for each in again], "ms")
        report.add(f"{key}_saved_first_percent", f"{words_for}, saved, new process", 100 * (1 - fresh / off), "%", aim)
        report.add(f"{key}_saved_percent", f"{words_for}, saved, later", 100 * (1 - median(again) / off), "%", aim)
        times = median(again) * 1e3 / median(rest[program])
        report.add(f"{key}_to_rest", f"{words_for}, later, to the rest alone", times, "x", "1.2 x" if ours else "")


def _check(peer: str, found: Any, plain: Any) -> None:
    """The answer is right, and Nectar has reused something in every run."""
    assert found["answers"][0] == plain["answers"][0], (peer, found["answers"][0], plain["answers"][0])
    assert peer != NECTAR or all(found["reused"]), found["reused"]


def _small_rest(analysis: Path) -> dict[str, list[float]]:
    """Milliseconds to read the analysis from an Arrow file and do what is left, as plain Polars, in a warm process."""
    file = analysis.with_suffix(".arrow")
    pl.read_parquet(analysis).write_ipc(file, compression="uncompressed")
    found: dict[str, list[float]] = {}
    for program in LATER:
        for count in COUNTS:
            begun = perf_counter()
            words.PROGRAMS[program](pl.scan_ipc(file), count).collect()
            found.setdefault(program, []).append((perf_counter() - begun) * 1e3)
    return found


def measure_hits(report: Report, documents: Path, home: Path, plain: Any) -> None:
    """The whole result of WordAnalysis, which is kept already, in new processes, beside computing it."""
    report.begin("A hit in another process: WordAnalysis as a whole")
    hits = [worker(NECTAR, home, documents, "WordAnalysis", COUNTS[:1] * 3) for _ in range(PROCESSES)]
    for found in hits:
        _check(NECTAR, found, plain)
    computing = plain["seconds"][0]
    firsts, laters = ([found["seconds"][at] for found in hits] for at in (0, -1))
    report.add("hit_computing_s", "computing it, plain Polars", computing, "s", "a query of 10 s")
    report.add("hit_first_ms", "a hit, first call in a new process", [each * 1e3 for each in firsts], "ms")
    report.add("hit_first_times_faster", "  times faster than computing", computing / median(firsts), "x", "100 x")
    report.add("hit_later_ms", "a hit, third call in the process", [each * 1e3 for each in laters], "ms")
    report.add("hit_later_times_faster", "  times faster than computing", computing / median(laters), "x", "100 x")
    report.add("hit_enable_ms", "nectar.enable() in a new process", [found["ready"] * 1e3 for found in hits], "ms")
    whole = [found["process"] for found in hits]
    report.add("hit_process_s", "with start, imports and end of the process: three hits", whole, "s")
    report.add("hit_process_computing_s", "the same: computing it, plain Polars", plain["process"], "s")
    report.add("hit_process_times_faster", "  times faster than computing", plain["process"] / median(whole), "x")


def main(megabytes: str, folder: str) -> None:
    where = Path(folder)
    documents = where / "documents"
    begun = perf_counter()
    size = write_documents(documents, int(float(megabytes) * 1e6))
    report = Report()
    report.notes.append(f"{size / 1e6:,.0f} MB of documents, made in {perf_counter() - begun:.1f} s.")
    measure_sharing(report, documents, where)
    report.notes.append(why_no_xorq())
    missing = [peer for peer in PEERS if not is_installed(peer)]
    if missing:
        report.notes.append(f"Not installed, not measured: {', '.join(missing)}.")
    print(report.written())


if __name__ == "__main__":
    main(*sys.argv[1:])
