"""What programs that have nothing to gain pay for Nectar, and that those which could gain still do.

    python benchmarks/overhead.py [--quick] [--size 1] [--pairs 15] [--only fresh tiny ...] [--folder WHERE]
                                  [--sail .venv-sail/bin/python]

Each program of benchmarks/programs/small.py, and of small_spark.py in Sail's environment, runs in processes of its own,
in turn: plain, with Nectar and an empty store ("first"), with Nectar once more ("again"), plain. Time on the clock and
of the processor is that of the whole process, from its start to its end. Modules are compiled before: whoever installs
Nectar has its bytecode. The bound is judged on the median, for time on the clock and of the processor, which says
more where others use the machine too, and for the memory at most; what lies within the spread of plain against plain is
called "not told apart". Prints a table for people, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
MODULE = "benchmarks.programs.small"
SPARK_MODULE = "benchmarks.programs.small_spark"
GAINING = ("slow_queries", "becomes_slow")
# How many times what the program takes without Nectar it may take with it, beyond seconds for the process.
SHARES = {"memo_dataclasses": 1.5, "memo_dicts": 1.5, "memo_array": 1.5, "tiny": 1.05, "tpch": 1.03}
SECONDS = {"fresh": 0.06, "spark_fresh": 0.06, "tiny": 0.0}
MEMORY = (1.1, 100.0)  # times what it needs without Nectar, and megabytes beyond
PROGRAMS = (
    "fresh", "one_site", "many_sites", "tiny", "large_dict", "series_literal", "is_in", "filters", "memo_dataclasses",
    "memo_dicts", "memo_array", "tpch", *GAINING,
)  # fmt: skip
SPARK = ("spark_fresh", "spark_join")
_GENERATOR = Path(sysconfig.get_path("scripts")) / f"tpchgen-cli{sysconfig.get_config_var('EXE') or ''}"
_LONG = 1.0  # seconds of a program that needs fewer runs


@dataclass(slots=True)
class Runs:
    """What processes of one kind took: on the clock, of the processor, and megabytes at most."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def spread(self) -> float:
        return max(self.wall) - min(self.wall)


class Bench:
    """Runs programs in a folder."""

    def __init__(self, folder: Path, size: float, pairs: int, sail: Path) -> None:
        self.folder, self.size, self.pairs, self.sail = folder, size, pairs, sail
        self.home = folder / "home"

    def prepare(self, python: str, module: str, what: str = "prepare") -> None:
        """The files of all programs of a module are there; those of TPC-H for `prepare_tpch`."""
        command = [python, "-m", module, what, str(self.folder), f"{self.size:g}"]
        subprocess.run(command, cwd=ROOT, check=True)

    def run(self, program: str, runs: Runs | None, *, nectar: bool) -> str:
        """What the program says on stdout."""
        python, module = (str(self.sail), SPARK_MODULE) if program in SPARK else (sys.executable, MODULE)
        command = [python, "-W", "ignore", "-m", module, program, str(self.folder), f"{self.size:g}"]
        others = {name: value for name, value in os.environ.items() if not name.startswith(("NECTAR_", "PYTHONDONT"))}
        begun = time.perf_counter()
        process = subprocess.Popen(
            [*command, "nectar"] if nectar else command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env={
                **others, "NECTAR_HOME": str(self.home), "NECTAR_RESERVE": "0", "RUST_LOG": "off",
                "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            },
        )  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{program} failed")
        if runs is not None:
            runs.wall.append(time.perf_counter() - begun)
            runs.cpu.append(used.ru_utime + used.ru_stime)
            runs.peak.append(used.ru_maxrss / 1024)
        return said

    def measure(self, program: str) -> dict[str, Runs]:
        """All kinds of runs of a program, in turn; what they say is the same."""
        found = {"plain": Runs(), "first": Runs(), "again": Runs(), "plain again": Runs()}
        said = {self.run(program, None, nectar=nectar) for nectar in (False, True)}  # they write the bytecode
        while len(found["plain"].wall) < self._wanted(found["plain"]):
            said.add(self.run(program, found["plain"], nectar=False))
            shutil.rmtree(self.home, ignore_errors=True)
            said.add(self.run(program, found["first"], nectar=True))
            said.add(self.run(program, found["again"], nectar=True))
            said.add(self.run(program, found["plain again"], nectar=False))
        assert len(said) == 1, f"{program} says something else with Nectar: {said}"
        return found

    def _wanted(self, plain: Runs) -> int:
        return max(1, self.pairs // 3) if plain.wall and plain.wall[0] > _LONG else self.pairs


def verdict(program: str, found: dict[str, Runs], kind: str, of: str = "wall") -> str:
    """Whether a kind of runs keeps the bound. of: which time."""
    times = {each: getattr(runs, of) for each, runs in found.items()}
    plain = median([*times["plain"], *times["plain again"]])
    bound = plain * SHARES.get(program, 1.02) + SECONDS.get(program, 0.05)
    took = median(times[kind])
    between = abs(median(times["plain"]) - median(times["plain again"]))
    if took <= bound:
        return "kept"
    return "not told apart" if took - bound <= between else f"missed by {(took - bound) * 1e3:.0f} ms"


def verdict_on_memory(found: dict[str, Runs]) -> str:
    """Whether runs with Nectar need no more memory than they may."""
    share, beyond = MEMORY
    plain = median([*found["plain"].peak, *found["plain again"].peak])
    most = max(median(found[kind].peak) for kind in ("first", "again"))
    over = most - plain * share - beyond
    return "kept" if over <= 0 else f"missed by {over:.0f} MB"


def shown(program: str, found: dict[str, Runs]) -> str:
    cells = [f"{program:18}"]
    for kind, runs in found.items():
        cells.append(f"{kind} {median(runs.wall):6.3f} s (cpu {median(runs.cpu):6.3f}, {median(runs.peak):4.0f} MB)")
    if program in GAINING:
        plain, again = median(found["plain"].wall), median(found["again"].wall)
        return "  ".join([*cells, f"again: {again / plain:.2f}x"])
    for name, of in (("clock", "wall"), ("processor", "cpu")):
        first, again = (verdict(program, found, kind, of) for kind in ("first", "again"))
        cells.append(f"{name}, first: {first}, again: {again}")
    cells.append(f"memory: {verdict_on_memory(found)}")
    return "  ".join(cells)


def figures(program: str, found: dict[str, Runs]) -> dict[str, float]:
    named = {}
    for kind, runs in found.items():
        name = f"{program}_{kind.replace(' ', '_')}"
        named[f"{name}_s"] = round(median(runs.wall), 4)
        named[f"{name}_spread_s"] = round(runs.spread(), 4)
        named[f"{name}_cpu_s"] = round(median(runs.cpu), 4)
        named[f"{name}_mb"] = round(median(runs.peak), 1)
    return named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data: whether everything works, not how fast")
    parser.add_argument("--size", type=float, help="1 is the real thing")
    parser.add_argument("--pairs", type=int, help="how often each runs; a third of that if it takes more than a second")
    parser.add_argument("--only", nargs="+", choices=(*PROGRAMS, *SPARK), default=(*PROGRAMS, *SPARK))
    parser.add_argument("--sail", type=Path, default=ROOT / ".venv-sail/bin/python", help="Python with Sail")
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    size = chosen.size or (0.01 if chosen.quick else 1.0)
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=chosen.folder))
    everything: dict[str, float] = {"size": size, "cores": os.cpu_count() or 0}
    try:
        programs = [each for each in chosen.only if each not in SPARK or chosen.sail.exists()]
        if len(programs) < len(chosen.only):
            print(f"Left out: Spark programs, since {chosen.sail} is not there; `make bench-overhead` makes it")
        if "tpch" in programs and not _GENERATOR.exists():
            print(f"Left out: TPC-H, since {_GENERATOR}, which makes its tables, is not there: pip install tpchgen-cli")
            programs.remove("tpch")
        bench = Bench(folder, size, chosen.pairs or (1 if chosen.quick else 15), chosen.sail)
        if set(programs) - set(SPARK):
            bench.prepare(sys.executable, MODULE)
        if "tpch" in programs:
            bench.prepare(sys.executable, MODULE, "prepare_tpch")
        if set(programs) & set(SPARK):
            bench.prepare(str(chosen.sail), SPARK_MODULE)
        time.sleep(2.5)  # files that were changed a moment ago are read to be known
        for program in programs:
            found = bench.measure(program)
            print(shown(program, found), flush=True)
            everything |= figures(program, found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(everything))


if __name__ == "__main__":
    main()
