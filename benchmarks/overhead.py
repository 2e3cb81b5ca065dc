"""What programs that have nothing to gain pay for Nectar, and that those which could gain still do.

    python benchmarks/overhead.py [--quick] [--size 1] [--pairs 15] [--only fresh tiny ...] [--folder WHERE]

Each program of benchmarks/programs/small.py runs in processes of its own, in turn: plain, with Nectar and an empty
store ("first"), with Nectar once more ("again"), plain. Time on the clock and of the processor is that of the whole
process, from its start to its end. The bound is judged on the median; what lies within the spread of plain against
plain is called "not told apart". Prints a table for people, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
MODULE = "benchmarks.programs.small"
GAINING = ("slow_queries", "becomes_slow")
# How many times what the program takes without Nectar it may take with it, beyond seconds for the process.
SHARES = {"memo_dataclasses": 1.5, "memo_dicts": 1.5, "memo_array": 1.5, "tiny": 1.05}
SECONDS = {"fresh": 0.06, "tiny": 0.0}
PROGRAMS = (
    "fresh", "one_site", "many_sites", "tiny", "large_dict", "series_literal", "is_in", "filters", "memo_dataclasses",
    "memo_dicts", "memo_array", *GAINING,
)  # fmt: skip
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

    def __init__(self, folder: Path, size: float, pairs: int) -> None:
        self.folder, self.size, self.pairs = folder, size, pairs
        self.home = folder / "home"

    def run(self, program: str, runs: Runs | None, *, nectar: bool) -> str:
        """What the program says on stdout."""
        command = [sys.executable, "-W", "ignore", "-m", MODULE, program, str(self.folder), f"{self.size:g}"]
        others = {name: value for name, value in os.environ.items() if not name.startswith("NECTAR_")}
        begun = time.perf_counter()
        process = subprocess.Popen(
            [*command, "nectar"] if nectar else command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env={**others, "NECTAR_HOME": str(self.home), "NECTAR_RESERVE": "0"},
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
        said = {self.run(program, None, nectar=False)}
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


def verdict(program: str, found: dict[str, Runs], kind: str) -> str:
    """Whether a kind of runs keeps the bound."""
    plain = median([*found["plain"].wall, *found["plain again"].wall])
    bound = plain * SHARES.get(program, 1.02) + SECONDS.get(program, 0.05)
    took = median(found[kind].wall)
    between = abs(median(found["plain"].wall) - median(found["plain again"].wall))
    if took <= bound:
        return "kept"
    return "not told apart" if took - bound <= between else f"missed by {(took - bound) * 1e3:.0f} ms"


def shown(program: str, found: dict[str, Runs]) -> str:
    cells = [f"{program:18}"]
    for kind, runs in found.items():
        cells.append(f"{kind} {median(runs.wall):6.2f} s (cpu {median(runs.cpu):5.2f}, {median(runs.peak):5.0f} MB)")
    if program in GAINING:
        plain, again = median(found["plain"].wall), median(found["again"].wall)
        return "  ".join([*cells, f"again: {again / plain:.2f}x"])
    return "  ".join([*cells, f"first: {verdict(program, found, 'first')}, again: {verdict(program, found, 'again')}"])


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
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    size = chosen.size or (0.01 if chosen.quick else 1.0)
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=chosen.folder))
    everything: dict[str, float] = {"size": size, "cores": os.cpu_count() or 0}
    try:
        bench = Bench(folder, size, chosen.pairs or (1 if chosen.quick else 15))
        bench.run("prepare", None, nectar=False)
        time.sleep(2.5)  # files that were changed a moment ago are read to be known
        for program in chosen.only:
            found = bench.measure(program)
            print(shown(program, found), flush=True)
            everything |= figures(program, found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(everything))


if __name__ == "__main__":
    main()
