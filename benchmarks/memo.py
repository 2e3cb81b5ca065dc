"""How fast remembered functions are, hit and miss, beside what others use.

    python benchmarks/memo.py [--runs N] [--hits N] [--array-mb 100] [--calls 10000] [--pass-seconds 6]
                              [--processes 100] [--at-once 8] [--values 20] [--walks 4000] [--peers NAME ...]
                              [--folder WHERE]

Prints tables for people, then one line of JSON with the figures. The functions are those of programs/remembered.py, the
same for everybody; each peer has an empty folder of its own on the same disk, and takes its turn in every run. Figures
are medians of several runs with the lowest and the highest. That a hit is one is checked by counting computations.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.memo_peers import (  # noqa: E402 - found by way of the line above
    FOR_ARRAYS,
    IN_MEMORY,
    PEERS,
    PLAIN,
    Function,
    Peer,
    is_installed,
)
from benchmarks.programs import remembered  # noqa: E402

CHUNK = 100  # calls timed together
PATIENCE = 0.5  # seconds for the hits of one peer in one run
ASKED = (100_000.0, 3.5, 12)
NECTAR = "nectar"


@dataclass(frozen=True, slots=True)
class Sizes:
    runs: int
    hits: int
    array: int
    calls: int
    pass_seconds: float
    processes: int
    at_once: int
    values: int
    walks: int
    peers: Sequence[str]


@dataclass(slots=True)
class Figure:
    """What was measured of each peer, in one unit; or why it was not."""

    words: str
    unit: str
    target: str
    values: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """Figures by name, in the order in which they were first measured."""

    figures: dict[str, Figure] = field(default_factory=dict)
    about: dict[str, object] = field(default_factory=dict)

    def add(
        self, name: str, words: str, peer: str, values: Sequence[float], unit: str, scale: float, target: str = ""
    ) -> None:
        """Takes up values of a peer; those of several runs come together."""
        figure = self.figures.setdefault(name, Figure(words, unit, target))
        figure.values.setdefault(peer, []).extend(value * scale for value in values)

    def note(self, name: str, peer: str, text: str) -> None:
        """Says something about a peer's figure, or why there is none."""
        if name in self.figures:
            self.figures[name].notes[peer] = text

    def as_json(self) -> str:
        plain: dict[str, object] = {}
        for name, figure in self.figures.items():
            for peer, values in figure.values.items():
                key = f"{_plain(peer)}_{name}"
                plain[key] = _rounded(median(values))
                if len(values) > 1:
                    plain[f"{key}_lowest"], plain[f"{key}_highest"] = _rounded(min(values)), _rounded(max(values))
        return json.dumps(plain | self.about)


def _plain(peer: str) -> str:
    return peer.replace(", ", "_").replace(".", "_").replace(" ", "_")


def _rounded(value: float) -> float:
    return round(value, 1) if abs(value) >= 100 else float(f"{value:.3g}")


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# one peer with a folder of its own


@contextmanager
def folder_in(where: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(peer: str, where: Path | None) -> Iterator[Peer]:
    """The peer in an empty folder, which is deleted afterwards; computations are counted from zero."""
    with folder_in(where) as folder:
        remembered.LOG = str(folder / "computations")
        place = PEERS[peer](folder / "kept")
        try:
            yield place
        finally:
            place.close()
            remembered.LOG = ""


@dataclass(frozen=True, slots=True)
class Miss:
    """Seconds until the caller has the value, and until it is kept."""

    answered: float
    kept: float
    value: Any


def missed(place: Peer, function: Function, *arguments: Any) -> Miss:
    begun = perf_counter()
    value = function(*arguments)
    answered = perf_counter()
    place.settle()
    return Miss(answered - begun, perf_counter() - begun, value)


def hits(peer: str, count: int, call: Callable[[], object]) -> list[float]:
    """Seconds of each call, none of which computed anything."""
    before = remembered.times_computed()
    times: list[float] = []
    while len(times) < count and (len(times) < 3 or sum(times) < PATIENCE):
        begun = perf_counter()
        call()
        times.append(perf_counter() - begun)
    if peer != PLAIN:
        assert remembered.times_computed() == before, f"{peer} computed again what it was to remember"
    return times


# small arguments


def measure_small(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """A process that has used the function before: one call again and again, and calls that are new."""
    with opened(peer, where) as place:
        function = place.remember(remembered.repayment)
        expected = remembered.repayment(*ASKED)
        assert missed(place, function, *ASKED).value == expected
        times = hits(peer, sizes.hits, lambda: function(*ASKED))
        assert function(*ASKED) == expected
        words = "small arguments, hit in a warm process"
        target = "at most 100 us" if peer == NECTAR else ""
        report.add("hit_small_us", words, peer, [median(times)], "us", 1e6, target)
        report.add("hit_small_fastest_us", f"{words}, the fastest of each run", peer, [min(times)], "us", 1e6)
        new = [missed(place, function, 50_000.0 + number, 4.5, 12) for number in range(20)]
        words = "small arguments, miss in a warm process"
        report.add("miss_small_us", words, peer, [median(each.answered for each in new)], "us", 1e6)


def measure_watching(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """What it takes to watch a computation that does nothing, and what the audit hook adds to each audited call."""
    if peer != NECTAR:
        return
    from nectar.observation.watch import Watch

    begun = perf_counter()
    for _ in range(sizes.hits):
        with Watch(texts=("a text",)) as watch:
            pass
        watch.observations()
    watched = (perf_counter() - begun) / sizes.hits
    report.add("watching_us", "watching one computation, the settings it compares included", peer, [watched], "us", 1e6)
    begun = perf_counter()
    for _ in range(sizes.hits):
        id(report)
    audited = (perf_counter() - begun) / sizes.hits
    report.add("audited_ns", "an audited call (id) while nothing is watched", peer, [audited], "ns", 1e9)


def measure_first(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """Two processes one after the other: the first computes, the second need not."""
    if peer in IN_MEMORY:
        return
    with folder_in(where) as folder:
        one, two = (_worker(peer, folder, "first") for _ in range(2))
    assert (one["computed"], two["computed"]) == (1, 1), f"{peer}: {one}, {two}"
    for name, words, found in (
        ("first_miss_ms", "first call in a fresh process with an empty folder, loading included", one),
        ("first_hit_ms", "first hit in a fresh process, loading included", two),
    ):
        report.add(name, words, peer, [found["open"] + found["call"]], "ms", 1e3)
    report.add("first_hit_call_ms", "first hit in a fresh process, the call alone", peer, [two["call"]], "ms", 1e3)


def _worker(peer: str, folder: Path, task: str, *options: str) -> dict[str, Any]:
    """What a process of its own found out. Raises RuntimeError if it failed."""
    command = [sys.executable, "-W", "ignore", str(ROOT / "benchmarks" / "memo_worker.py"), peer, str(folder), task]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{peer}: {done.stderr.strip().rpartition(chr(10))[2]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# large arrays


def measure_arrays(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """An array as argument, then one as result, all of which is looked at."""
    count = sizes.array // 8
    shown = f"{sizes.array / 1e6:.0f} MB"
    signal = remembered.tone(7, count)
    with opened(peer, where) as place:
        function = place.remember(remembered.tone)
        begun = perf_counter()
        expected = function(3, count).sum()
        answered = perf_counter()
        place.settle()
        kept = perf_counter()
        got: list[float] = []
        times = hits(peer, 5, lambda: got.append(function(3, count).sum()))
        assert {*got} == {expected}, f"{peer} gives another array back"
        report.add("miss_result_ms", f"{shown} as result, miss, until it is used", peer, [answered - begun], "ms", 1e3)
        if peer not in IN_MEMORY:
            report.add("kept_result_ms", f"{shown} as result, miss, until it is kept", peer, [kept - begun], "ms", 1e3)
        report.add("hit_result_ms", f"{shown} as result, hit, all of it used", peer, [median(times)], "ms", 1e3)
    if peer == "functools.cache":
        return  # arrays have no hash
    with opened(peer, where) as place:
        function = place.remember(remembered.energy)
        first = missed(place, function, signal)
        times = hits(peer, 5, lambda: function(signal))
        report.add("miss_argument_ms", f"{shown} as argument, miss", peer, [first.answered], "ms", 1e3)
        report.add("hit_argument_ms", f"{shown} as argument, hit", peer, [median(times)], "ms", 1e3)


# slow functions


def measure_slow(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """A function that is worth remembering: what a miss costs the caller, and when others can have the value."""
    with opened(peer, where) as place:
        function = place.remember(remembered.ruin)
        function(0, sizes.walks)
        place.settle()
        new = [missed(place, function, seed, sizes.walks) for seed in range(1, 8)]
        answered, kept = (median(times) for times in zip(*((each.answered, each.kept) for each in new), strict=True))
        report.add("miss_slow_ms", "slow function, miss, until the caller has the value", peer, [answered], "ms", 1e3)
        if peer not in IN_MEMORY:
            report.add("kept_slow_ms", "slow function, miss, until it is kept", peer, [kept], "ms", 1e3)


# many calls


def measure_passes(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """As many different calls as the time allows, and then the same ones in another order."""
    with opened(peer, where) as place:
        function = place.remember(remembered.repayment)
        numbers = list(range(sizes.calls))
        begun = perf_counter()
        first = _pass(function, numbers, sizes.pass_seconds)
        place.settle()
        kept = perf_counter() - begun
        done = len(first) * CHUNK
        asked = random.Random(5).sample(numbers[:done], done)
        before = remembered.times_computed()
        second = _pass(function, asked, sizes.pass_seconds)
        if peer != PLAIN:
            assert remembered.times_computed() == before, f"{peer} computed again what it was to remember"
    words = f"{sizes.calls:,} different calls"
    report.add("calls_miss_us", f"{words}, first pass, per call", peer, first, "us", 1e6)
    if peer not in IN_MEMORY:
        report.add("calls_kept_us", f"{words}, first pass until all is kept, per call", peer, [kept / done], "us", 1e6)
    report.add("calls_hit_us", f"{words}, second pass, per call", peer, second, "us", 1e6)
    if done < sizes.calls:
        for name in ("calls_miss_us", "calls_kept_us", "calls_hit_us"):
            report.note(name, peer, f"stopped after {done:,}")


def _pass(function: Function, numbers: Sequence[int], patience: float) -> list[float]:
    """Seconds for a call, of each chunk of calls, until the time is over."""
    times: list[float] = []
    begun = perf_counter()
    for at in range(0, len(numbers) - CHUNK + 1, CHUNK):
        start = perf_counter()
        for number in numbers[at : at + CHUNK]:
            function(10_000.0 + number, 3.5, 12)
        times.append((perf_counter() - start) / CHUNK)
        if perf_counter() - begun > patience:
            break
    return times


# many processes


def measure_swarm(peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """Processes that all want the same values: how long it takes, and how often something was computed."""
    if peer in IN_MEMORY:
        return
    options = [f"--{name}={getattr(sizes, name.replace('-', '_'))}" for name in _OF_SWARM]
    with folder_in(where) as folder:
        found = _worker(peer, folder, "swarm", *options)
    words = f"{sizes.processes} processes, {sizes.at_once} at a time, the same {sizes.values} values"
    report.add("processes_s", f"{words}, all of it", peer, [found["seconds"]], "s", 1)
    report.add("processes_asking_ms", f"{words}, for each process", peer, found["asking"], "ms", 1e3)
    target = str(sizes.values) if peer == NECTAR else ""
    report.add("processes_computed", f"{words}, computations", peer, [found["computed"]], "", 1, target)
    if found["failed"]:
        report.note("processes_computed", peer, f"{found['failed']} processes failed")


_OF_SWARM = ("processes", "at-once", "values", "walks")

# everything

MEASURES: Mapping[str, tuple[Callable[[str, Sizes, Path | None, Report], None], bool]] = {
    "small arguments": (measure_small, True),
    "watching": (measure_watching, True),
    "fresh processes": (measure_first, True),
    "large arrays": (measure_arrays, True),
    "slow functions": (measure_slow, True),
    "many calls": (measure_passes, False),  # each pass has many chunks, which show the spread
    "many processes": (measure_swarm, False),
}


def measure(sizes: Sizes, where: Path | None) -> Report:
    report = Report()
    load, begun = _load(), perf_counter()
    for part, (step, repeated) in MEASURES.items():
        begun_part = perf_counter()
        asked = [peer for peer in sizes.peers if peer not in FOR_ARRAYS or step is measure_arrays]
        for _ in range(sizes.runs if repeated else 1):
            for peer in asked:
                _or_why_not(step, peer, sizes, where, report)
        report.about[f"seconds_for_{part.replace(' ', '_')}"] = round(perf_counter() - begun_part, 1)
    report.about |= {"runs": sizes.runs, "load_before": load, "load_after": _load(), "cores": os.cpu_count() or 0}
    report.about["seconds"] = round(perf_counter() - begun, 1)
    return report


def _or_why_not(step: Callable[..., None], peer: str, sizes: Sizes, where: Path | None, report: Report) -> None:
    """Measures; a peer that cannot do something is no reason to stop, but for Nectar itself."""
    try:
        step(peer, sizes, where, report)
    except Exception as error:
        if peer == NECTAR:
            raise
        report.about[f"{_plain(peer)}_failed_in_{step.__name__.removeprefix('measure_')}"] = str(error)[:200]


def _load() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0


def print_report(report: Report) -> None:
    width = max(len(peer) for figure in report.figures.values() for peer in figure.values)
    for figure in report.figures.values():
        print(figure.words + (f" (aim: {figure.target})" if figure.target else ""))
        ours = median(figure.values[NECTAR]) if NECTAR in figure.values else 0.0
        for peer, values in figure.values.items():
            middle = median(values)
            spread = f" ({_short(min(values))} to {_short(max(values))})" if len(values) > 1 else ""
            ratio = f"{_short(middle / ours)} x Nectar" if ours and peer != NECTAR else ""
            text = f"{_short(middle)} {figure.unit}{spread}"
            print(f"  {peer:<{width}}  {text:<36}  {ratio:<18}  {figure.notes.get(peer, '')}".rstrip())
        print()
    about = report.about
    failed = {name: text for name, text in about.items() if "_failed_in_" in name}
    print("".join(f"{name.replace('_', ' ')}: {text}\n" for name, text in failed.items()), end="")
    missing = [peer for peer in PEERS if not is_installed(peer)]
    if missing:
        print(f"Not installed, not measured: {', '.join(missing)}.")
    loads = f"load {about['load_before']} before and {about['load_after']} after"
    print(f"{about['cores']} cores, {loads}, {about['seconds']} s in all. Medians, with the lowest and the highest.")
    print("Of those compared only Nectar looks at the code a function reaches, and syncs large results to disk.")
    print(report.as_json())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hits", type=int, default=2000)
    parser.add_argument("--array-mb", type=float, default=100)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--pass-seconds", type=float, default=6)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--walks", type=int, default=4000)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=[peer for peer in PEERS if is_installed(peer)])
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    sizes = Sizes(
        chosen.runs, chosen.hits, int(chosen.array_mb * 1e6), chosen.calls, chosen.pass_seconds, chosen.processes,
        chosen.at_once, chosen.values, chosen.walks, chosen.peers,
    )  # fmt: skip
    warnings.simplefilter("ignore")  # peers have much to say that is not asked here
    print_report(measure(sizes, chosen.folder))


if __name__ == "__main__":
    main()
