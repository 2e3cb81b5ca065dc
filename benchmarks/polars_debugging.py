"""Table 6 of the Nectar paper: a query of four steps, written and debugged one step after the other.

    python -m benchmarks.polars_debugging OBJECTS RUNS FOLDER

In the round of a step the query ends with that step. It runs twice: its function fails first, then it works. Afterwards
the finished query is changed in each of its steps in turn. Beside every round stands what it cannot do without: the
changed step and what follows it, as plain Polars, what comes before being in memory. The last line is the report.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import polars as pl
from benchmarks.polars_report import Report
from benchmarks.programs import lenses
from polars.testing import assert_frame_equal

import nectar
from nectar.session import current

PAPER = {1: 0, 2: 58, 3: 71, 4: 88}  # percent saved
ALLOWED_SHARE, ALLOWED_SECONDS = 1.05, 0.05
WORKS, FAILS, CHANGED = "works", "fails", "changed"
KINDS = {WORKS: "steps 1 to {} for the first time", FAILS: "step {} fails", CHANGED: "step {} changed"}
Times = dict[str, list[float]]


def versions(step: int, version: str, last: int) -> tuple[str, ...]:
    """All steps up to the last work, but for one that is as said."""
    return tuple(version if number == step else WORKS for number in lenses.STEPS[:last])


def failing(query: pl.LazyFrame) -> None:
    """Runs a query whose function raises."""
    try:
        query.collect()
    except (ValueError, pl.exceptions.ComputeError):
        return
    raise AssertionError("the query was to fail")


# who runs the rounds


class Plain:
    """Polars alone computes everything in every round."""

    def __init__(self, sky: Path, home: Path) -> None:
        self._sky = sky

    def fail(self, step: int) -> None:
        failing(lenses.query(self._sky, versions(step, FAILS, step)))

    def add(self, step: int) -> pl.DataFrame:
        return lenses.query(self._sky, versions(step, WORKS, step)).collect()

    def change(self, step: int) -> pl.DataFrame:
        return lenses.query(self._sky, versions(step, CHANGED, len(lenses.STEPS))).collect()

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class Nectar(Plain):
    """The same program."""

    def __init__(self, sky: Path, home: Path) -> None:
        super().__init__(sky, home)
        nectar.enable(home=home)

    def settle(self) -> None:
        session = current()
        assert session is not None
        assert session.settle(120)

    def close(self) -> None:
        nectar.disable()


class Least(Plain):
    """What cannot be avoided: the step and what follows it, with what comes before in memory."""

    def __init__(self, sky: Path, home: Path) -> None:
        super().__init__(sky, home)
        self._known: dict[int, pl.DataFrame] = {}

    def _before(self, step: int) -> dict[int, pl.LazyFrame]:
        return {number: frame.lazy() for number, frame in self._known.items() if number < step}

    def fail(self, step: int) -> None:
        failing(lenses.continued(self._sky, versions(step, FAILS, step), self._before(step)))

    def add(self, step: int) -> pl.DataFrame:
        self._known[step] = lenses.continued(self._sky, versions(step, WORKS, step), self._before(step)).collect()
        return self._known[step]

    def change(self, step: int) -> pl.DataFrame:
        all_steps = versions(step, CHANGED, len(lenses.STEPS))
        return lenses.continued(self._sky, all_steps, self._before(step)).collect()


class ByHand(Plain):
    """The result of every step is written to a Parquet file, from which the next one begins."""

    def __init__(self, sky: Path, home: Path) -> None:
        super().__init__(sky, home)
        self._home = home
        home.mkdir(parents=True)

    def _file(self, step: int) -> Path:
        return self._home / f"{step}.parquet"

    def _before(self, step: int) -> dict[int, pl.LazyFrame]:
        return {number: pl.scan_parquet(self._file(number)) for number in lenses.STEPS if number < step}

    def fail(self, step: int) -> None:
        failing(lenses.continued(self._sky, versions(step, FAILS, step), self._before(step)))

    def add(self, step: int) -> pl.DataFrame:
        frame = lenses.continued(self._sky, versions(step, WORKS, step), self._before(step)).collect()
        frame.write_parquet(self._file(step))
        return frame

    def change(self, step: int) -> pl.DataFrame:
        all_steps = versions(step, CHANGED, len(lenses.STEPS))
        return lenses.continued(self._sky, all_steps, self._before(step)).collect()


class Joblib(Plain):
    """Every step is a function that joblib remembers; each calls the one before."""

    def __init__(self, sky: Path, home: Path) -> None:
        import joblib

        super().__init__(sky, home)
        self._remembered = joblib.Memory(str(home), verbose=0).cache(result_of_step, ignore=["known"])

    def _before(self, step: int) -> dict[int, pl.LazyFrame]:
        return {
            number: self._remembered(str(self._sky), versions(number, WORKS, number)).lazy()
            for number in lenses.STEPS
            if step - 2 <= number < step  # a step uses those two at most
        }

    def fail(self, step: int) -> None:
        failing(lenses.continued(self._sky, versions(step, FAILS, step), self._before(step)))

    def add(self, step: int) -> pl.DataFrame:
        return self._remembered(str(self._sky), versions(step, WORKS, step), known=self._before(step))

    def change(self, step: int) -> pl.DataFrame:
        all_steps = versions(step, CHANGED, len(lenses.STEPS))
        return lenses.continued(self._sky, all_steps, self._before(step)).collect()


def result_of_step(sky: str, chosen: tuple[str, ...], known: Mapping[int, pl.LazyFrame] | None = None) -> pl.DataFrame:
    return lenses.continued(Path(sky), chosen, dict(known or {})).collect()


PEERS: dict[str, Callable[[Path, Path], Plain]] = {
    "plain Polars": Plain,
    "nectar": Nectar,
    "the step and the rest": Least,
    "Parquet by hand": ByHand,
    "joblib": Joblib,
}
PLAIN, NECTAR, LEAST = tuple(PEERS)[:3]


@contextmanager
def working(peer: str, sky: Path, home: Path) -> Iterator[Plain]:
    place = PEERS[peer](sky, home)
    try:
        yield place
    finally:
        place.close()
        shutil.rmtree(home, ignore_errors=True)


def debug(peer: str, sky: Path, home: Path, times: Times) -> dict[str, pl.DataFrame]:
    """All rounds of one peer; what it got. Between rounds a person thinks, so that everything is kept meanwhile."""
    answers: dict[str, pl.DataFrame] = {}

    def note(name: str, run: Callable[[], pl.DataFrame | None]) -> None:
        begun = perf_counter()
        found = run()
        times.setdefault(name, []).append(perf_counter() - begun)
        if found is not None:
            answers[name] = found
        place.settle()

    with working(peer, sky, home) as place:
        for step in lenses.STEPS:
            note(f"step_{step}_{FAILS}", lambda step=step: place.fail(step))
            note(f"step_{step}_{WORKS}", lambda step=step: place.add(step))
        for step in lenses.STEPS:
            note(f"step_{step}_{CHANGED}", lambda step=step: place.change(step))
    return answers


def check(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    """Nobody saves time by giving another answer."""
    for name, frame in expected.items():
        rows = {"check_row_order": False} if "step_4" not in name and "changed" not in name else {}
        assert_frame_equal(found[name], frame, **rows)


def tell(report: Report, times: dict[str, Times]) -> None:
    for kind, words in (
        ("works", "steps 1 to {} for the first time"),
        ("fails", "step {} fails"),
        ("changed", "step {} changed"),
    ):
        report.begin(f"Table 6: {words.format('...')}")
        for step in lenses.STEPS:
            name = f"step_{step}_{kind}"
            shown = words.format(step)
            for peer, found in times.items():
                key = peer.lower().replace(" ", "_")
                report.add(f"{key}_{name}_s", f"{shown}, {peer}", found[name], "s")
            off, on, least = (min(times[peer][name]) for peer in (PLAIN, NECTAR, LEAST))
            paper = f"the paper: {PAPER[step]} %" if kind == WORKS else ""
            report.add(f"{name}_saved_percent", f"{shown}, saved by Nectar", 100 * (1 - on / off), "%", paper)
            excess = (on - least * ALLOWED_SHARE) * 1e3
            report.add(
                f"{name}_excess_ms", f"{shown}, Nectar above 1.05 x the step and the rest", excess, "ms", "50 ms"
            )


def main(objects: str, runs: str, folder: str) -> None:
    where = Path(folder)
    sky = where / "sky"
    lenses.write_sky(sky, int(objects))
    times: dict[str, Times] = {peer: {} for peer in PEERS}
    for run in range(int(runs)):
        expected: dict[str, pl.DataFrame] = {}
        for peer in PEERS:
            found = debug(peer, sky, where / f"home{run}{peer.replace(' ', '')}", times[peer])
            expected = expected or found
            check(found, expected)
    report = Report()
    tell(report, times)
    within = [
        min(times[NECTAR][name]) <= min(least) * ALLOWED_SHARE + ALLOWED_SECONDS for name, least in times[LEAST].items()
    ]
    report.begin("Table 6: all rounds")
    report.add("rounds_within_aim", f"rounds within 1.05 x + 50 ms, of {len(within)}", sum(within), "")
    total = {peer: sum(map(median, times[peer].values())) for peer in PEERS}
    for peer, spent in total.items():
        report.add(f"{peer.lower().replace(' ', '_')}_rounds_s", f"all rounds, {peer}", spent, "s")
    print(report.written())


if __name__ == "__main__":
    main(*sys.argv[1:])
