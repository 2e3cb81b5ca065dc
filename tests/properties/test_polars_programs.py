"""Random Polars programs under Nectar: answers, types and order are those of plain Polars, whatever is known.

Each program runs plainly, cold, warm, with some results evicted, beside a program that shares its beginning, and after
a file was rewritten; in the end many of them run once more in another process. Parts are kept as often as possible.
300 programs by default, 5,000 in `make test-deep`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties import polars_programs as programs

import nectar
from nectar import session as sessions
from nectar.catalog.service import Catalog
from nectar.rewrite import choose

DEEP = os.environ.get("NECTAR_TEST_PROFILE") == "deep"
PROGRAMS = int(os.environ.get("NECTAR_TEST_PROGRAMS", "5000" if DEEP else "300"))
ENGINES = ("auto", "in-memory", "streaming")
ELSEWHERE = 300  # programs that another process runs again, at most

pytestmark = pytest.mark.filterwarnings("ignore")  # of Polars: random programs do what nobody should


class World:
    """Files, a store that all programs share, and what has been run."""

    def __init__(self, folder: Path) -> None:
        self.files, self.home = folder / "files", folder / "home"
        programs.write_files(self.files)
        self.ran: list[tuple[bytes, str]] = []
        self.counts: Counter[str] = Counter()
        self.report = nectar.last_run()

    def check(self, frame: programs.Frame, engine: str, what: str) -> None:
        """Runs a program plainly and under Nectar, and compares."""
        expected = plainly(frame, engine)
        self.report.parts.clear()
        found, report = answered(frame, engine), self.report
        right = same(found, expected) or _is_an_answer_of_another_engine(frame, found, expected)
        assert right, f"{what}, {engine}:\n{_shown(frame)}\n{_difference(found, expected)}"
        self.counts[what] += 1
        self.counts[f"{what}, some reused"] += bool(report.reused)
        self.counts[f"{what}, all reused"] += bool(report.parts) and not report.computed

    def known(self) -> set[bytes]:
        """The keys of all results."""
        return {entry.key for entry in catalog().index.entries()}

    def evict(self, random: Random, before: set[bytes]) -> None:
        """About half of the results that came since then are gone."""
        keys = [key for key in sorted(self.known() - before) if random.random() < 0.5]
        catalog().index.evict(keys, catalog().clock.now() + 10**6)


def catalog() -> Catalog:
    session = sessions.current()
    assert session is not None
    assert session.catalog is not None
    session.settle()
    return session.catalog


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("polars"))
    looked_up, choose.LOOKED_UP = choose.LOOKED_UP, 0
    with nectar.reuse(home=made.home, reserve=0) as made.report:
        yield made
    choose.LOOKED_UP = looked_up


def plainly(frame: programs.Frame, engine: str) -> Any:
    return answered(frame, nectar.PolarsEngine(engine).inner)


def answered(frame: programs.Frame, engine: Any) -> Any:
    """The answer, or the error."""
    try:
        return programs.answer_of(frame.make().collect(engine=engine), frame.ordered)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError) as error:
        return error


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, pl.exceptions.PanicException):
        return True  # Polars broke down, which it may not do over the same plan written down and read again
    if isinstance(expected, BaseException):
        return type(found) is type(expected)
    return bool(found == expected)


def _is_an_answer_of_another_engine(frame: programs.Frame, found: Any, expected: Any) -> bool:
    """Whether one engine of Polars fails where others do not, whose result is then known.

    In memory, a scan with row numbers beside one without does not find the column.
    """
    failed = isinstance(expected, BaseException) and not isinstance(found, BaseException)
    return failed and any(found == plainly(frame, each) for each in ENGINES)


def _shown(frame: programs.Frame) -> str:
    return frame.make().explain(optimized=False)


def _difference(found: Any, expected: Any) -> str:
    if not (isinstance(found, tuple) and isinstance(expected, tuple)):
        return f"{found!r}\n  instead of\n{expected!r}"
    for one, other in zip(found, expected, strict=True):
        if one != other and isinstance(one, tuple) and len(one) == len(other):
            return "\n".join(f"{a}\n  instead of\n{b}" for a, b in zip(one, other, strict=True) if a != b)[:2000]
        if one != other:
            return f"{one}\n  instead of\n{other}"
    return "equal"


def built(data: bytes, files: Path) -> programs.Frame | None:
    """The program, if Polars accepts it."""
    try:
        return programs.program(data, files)
    except pl.exceptions.PolarsError:
        return None


@settings(max_examples=PROGRAMS, suppress_health_check=list(HealthCheck))
@given(data=st.binary(min_size=80, max_size=120), engine=st.sampled_from(ENGINES), choice=st.integers(0, 2**16))
def _run_one_program(world: World, data: bytes, engine: str, choice: int) -> None:
    frame = built(data, world.files)
    if frame is None:
        return
    random, before = Random(choice), world.known()
    world.check(frame, engine, "cold")
    catalog()
    world.check(frame, engine, "warm")
    world.evict(random, before)
    world.check(frame, engine, "evicted")
    related = built(data[:14] + random.randbytes(80), world.files)
    if related is not None:
        world.check(related, engine, "related")
        world.check(related, random.choice(ENGINES), "related again")
    if random.random() < 0.25:
        _change_a_file(world, data, engine, random)
    world.ran.append((data, engine))


def _change_a_file(world: World, data: bytes, engine: str, random: Random) -> None:
    """One file is rewritten, or comes and goes.

    The program is made anew: a lazy frame of plain Polars that has run reads Arrow files by what they were then.
    """
    kind, number = random.choice(programs.KINDS), random.randrange(programs.FILES + 2)
    new = number >= programs.FILES
    programs.write_file(world.files, kind, number, random.randrange(1, 4))
    try:
        _check_anew(world, data, engine, "appended" if new else "rewritten")
    finally:
        if new:
            programs.path_of(world.files, kind, number).unlink()
        else:
            programs.write_file(world.files, kind, number, 0)
    _check_anew(world, data, engine, "as before")


def _check_anew(world: World, data: bytes, engine: str, what: str) -> None:
    frame = built(data, world.files)
    if frame is not None:
        world.check(frame, engine, what)


SINKS: dict[str, Any] = {"sink_parquet": pl.read_parquet, "sink_ipc": pl.read_ipc}


@settings(max_examples=PROGRAMS // 6, suppress_health_check=list(HealthCheck))
@given(
    tapes=st.lists(st.binary(min_size=80, max_size=90), min_size=2, max_size=3),
    shared=st.integers(0, 20),
    engine=st.sampled_from(ENGINES),
)
def test_several_at_once_and_into_files(world: World, tapes: list[bytes], shared: int, engine: str) -> None:
    frames = [built(tapes[0][:shared] + tape[shared:], world.files) for tape in tapes]
    good = [frame for frame in frames if frame is not None and isinstance(plainly(frame, engine), tuple)]
    if not good or _fails_in_polars(good, engine):
        return
    expected = [plainly(frame, engine) for frame in good]
    for _ in range(2):
        found = pl.collect_all([frame.make() for frame in good], engine=engine)
        for frame, one, other in zip(good, found, expected, strict=True):
            assert same(programs.answer_of(one, frame.ordered), other), _shown(frame)
        catalog()
    for method, read in SINKS.items():
        target = world.home.parent / "sunk"
        try:
            getattr(good[0].make(), method)(target, engine=engine)
        except pl.exceptions.PolarsError:  # not every type has a place in every kind of file
            continue
        assert read(target).height == expected[0][1], _shown(good[0])


def _fails_in_polars(frames: list[programs.Frame], engine: str) -> bool:
    """Whether queries that are fine one by one fail together: a scan with row numbers beside one without does."""
    try:
        pl.collect_all([frame.make() for frame in frames], engine=nectar.PolarsEngine(engine).inner)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return True
    return False


def test_answers_are_those_of_plain_polars(world: World, tmp_path: Path) -> None:
    _run_one_program(world)
    _expect_that_much_was_reused(world.counts)
    _run_in_another_process(world, tmp_path)


def _expect_that_much_was_reused(counts: Counter[str]) -> None:
    """Otherwise equal answers say nothing."""
    assert counts["warm"] > 0.9 * PROGRAMS, counts
    assert counts["warm, all reused"] > 0.9 * counts["warm"], counts
    assert 0.2 < counts["evicted, some reused"] / counts["evicted"] < 0.9, counts
    assert counts["related again, all reused"] > 0.7 * counts["related again"], counts
    assert counts["related, some reused"] > counts["related, all reused"], counts


def _run_in_another_process(world: World, tmp_path: Path) -> None:
    catalog()
    sample = Random(0).sample(world.ran, min(ELSEWHERE, len(world.ran)))
    tapes = tmp_path / "tapes"
    tapes.write_text("\n".join(f"{data.hex()} {engine}" for data, engine in sample))
    _elsewhere(tapes, world.files, world.home)  # files were rewritten since: now all of it is known, or refused
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.properties.test_polars_programs", str(tapes), str(world.files),
         str(world.home)],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    ran, reused = map(int, done.stdout.split()[-2:])
    assert ran == len(sample)
    assert reused > 0.8 * ran


def _elsewhere(tapes: Path, files: Path, home: Path) -> None:
    """What the other process does: how many programs it ran, and of how many something was known."""
    ran = reused = 0
    with nectar.reuse(home=home, reserve=0) as report:
        for line in tapes.read_text().splitlines():
            data, engine = line.split()
            frame = programs.program(bytes.fromhex(data), files)
            expected = plainly(frame, engine)
            found = answered(frame, engine)
            assert same(found, expected), f"{_shown(frame)}\n{_difference(found, expected)}"
            ran, reused = ran + 1, reused + bool(report.reused)
            report.parts.clear()
    print(ran, reused)


if __name__ == "__main__":
    _elsewhere(*map(Path, sys.argv[1:]))
