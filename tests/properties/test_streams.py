"""Random programs over streams to which anything happens: the answer is that of plain Polars over the files there are.

300 programs by default, 5,000 in `make test-deep`; each runs after every event of its history. Values are equal, floats
within one part in 10^9: variances are the only ones that are not exact. Beside that, for every behaviour: once the
pattern is known, the files that are read are the new ones, and the rows that are computed are their rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.properties import streams
from tests.properties.polars_programs import Tape

import nectar
from nectar import session as sessions
from nectar.dialects.polars import computing
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.plan import Plan

DEEP = os.environ.get("NECTAR_TEST_PROFILE") == "deep"
PROGRAMS = int(os.environ.get("NECTAR_TEST_STREAMS", "5000" if DEEP else "300"))
BOUND = 1e-9  # of floats, relative

pytestmark = pytest.mark.filterwarnings("ignore")  # of Polars: random programs do what nobody should


class World:
    """A store that all programs share, a file that does not grow, and what was put together."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.static = folder / "static.parquet"
        self.counts: Counter[str] = Counter()
        pl.DataFrame({"k": ["a", "b", "z"], "i": [1, 2, 3]}).write_parquet(self.static)

    def new_folder(self) -> Path:
        self.number += 1
        return self.folder / f"{self.number}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("streams"))
    before = growth_module.advance

    def advance(parts: Any, *rest: Any) -> Any:
        done = before(parts, *rest)
        made.counts["put together" if done is not None and done.used else "as a whole"] += 1
        return done

    growth_module.advance = advance
    with nectar.reuse(home=made.folder / "home", reserve=0):
        yield made
    growth_module.advance = before


def answered(frame: Callable[[], pl.LazyFrame]) -> pl.DataFrame | BaseException:
    try:
        return frame().collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        return error


def check(frame: Callable[[], pl.LazyFrame], ordered: bool, about: str) -> None:
    """The answer under Nectar is that of plain Polars."""
    found = answered(frame)
    session = sessions.current()
    assert session is not None
    session.settle()
    with nectar.reuse(off=True):
        expected = answered(frame)
    if isinstance(found, BaseException) or isinstance(expected, BaseException):
        assert type(found) is type(expected), f"{about}\n{found}\n  instead of\n{expected}"
        return
    try:
        assert_frame_equal(found, expected, check_row_order=ordered, rel_tol=BOUND, abs_tol=0)
    except AssertionError as error:
        raise AssertionError(f"{about}\n{error}") from None


def evict(random: Random) -> None:
    session = sessions.current()
    assert session is not None
    assert session.catalog is not None
    keys = [entry.key for entry in session.catalog.index.entries() if random.random() < 0.5]
    session.catalog.index.evict(keys, session.clock.now() + 10**6)


def story(world: World, data: bytes) -> None:
    """A program, run after every event of a history."""
    tape = Tape(data)
    form, seed = tape.pick(streams.FORMS), tape.below(256)
    folder = world.new_folder()
    stream = streams.Stream(folder / "one", form, seed, declared=tape.chance(2))
    two = tape.chance(5)
    second = streams.Stream(folder / "two", tape.pick(streams.FORMS), seed, declared=True) if two else None
    every = [stream, second] if second is not None else [stream]
    program = streams.program(tape, form, world.static, second.scan if second is not None else None)
    for each in every:
        each.come()
    told: list[str] = []
    growing = [tape.pick(("come", "grow")) for _ in range(2)]  # so that the pattern shows
    for event in [*growing, *(tape.pick(streams.EVENTS) for _ in range(2 + tape.below(4)))]:
        check(lambda: program.of(stream.scan()), program.ordered, f"{form} {program.about} after {told}")
        told.append(event)
        if event == "evict":
            evict(Random(seed))
        elif event != "nothing":
            for each in every if tape.chance(2) or event in ("come", "grow") else every[:1]:
                getattr(each, event)()
    check(lambda: program.of(stream.scan()), program.ordered, f"{form} {program.about} after {told}")


@settings(max_examples=PROGRAMS, deadline=None, derandomize=not DEEP, suppress_health_check=list(HealthCheck))
@given(data=st.binary(min_size=40, max_size=60))
def test_random_programs_over_random_histories(world: World, data: bytes) -> None:
    story(world, data)


def test_that_streams_were_put_together(world: World) -> None:
    """Runs after the programs: they would prove little if nothing had been reused."""
    assert world.counts["put together"] > PROGRAMS // 2, world.counts


# how much is read

BEHAVIOURS: dict[str, Callable[[pl.LazyFrame, Path], pl.LazyFrame]] = {
    "filter": lambda rows, _: rows.filter(pl.col("v") > 1),
    "select": lambda rows, _: rows.select("k", n=pl.col("v") * 2),
    "with_columns": lambda rows, _: rows.with_columns(n=pl.col("f") / 4),
    "explode": lambda rows, _: rows.explode("l"),
    **{
        f"{how} join": lambda rows, static, how=how: rows.join(pl.scan_parquet(static), on="k", how=how)
        for how in ("inner", "left", "semi", "anti")
    },
    "cross join": lambda rows, static: rows.join(pl.scan_parquet(static).select("i"), how="cross"),
    "group_by": lambda rows, _: rows.group_by("k", "j").agg(pl.col("v").sum(), pl.len(), pl.col("f").mean()),
    "group_by in order": lambda rows, _: rows.group_by("k", maintain_order=True).agg(pl.col("v").first()),
    "totals": lambda rows, _: rows.select(pl.col("v").sum(), pl.len(), pl.col("s").last()),
    "sort": lambda rows, _: rows.sort("v", "o"),
    "top": lambda rows, _: rows.sort("v", "o", descending=True).head(5),
    "head": lambda rows, _: rows.head(1000),
    "tail": lambda rows, _: rows.tail(5),
    "unique": lambda rows, _: rows.unique(subset=["k"], keep="last", maintain_order=True),
    "what stands above": lambda rows, _: rows.group_by("k").agg(pl.len()).with_columns(pl.col("len") / 2).sort("k"),
}  # fmt: skip


@pytest.fixture
def read(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The files that were read under Nectar since last asked, but the one that does not grow."""
    found: list[str] = []

    def computed(query: Any, run: Any) -> pl.DataFrame:
        def counting(frame: pl.LazyFrame) -> pl.DataFrame:
            for step in Plan.of(frame).steps:
                if step.kind == "Scan":
                    found.extend(path["inner"] for path in step.body["sources"]["Paths"])
            return run(frame)

        return before(query, counting)

    def since() -> list[str]:
        return [path for path in (found.pop(0) for _ in range(len(found))) if path != str(world.static)]

    before = computing.computed
    monkeypatch.setattr("nectar.dialects.polars.computing.computed", computed)
    return since


@pytest.mark.parametrize("form", streams.FORMS)
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_only_what_is_new_is_read(world: World, name: str, form: str, read: Callable[[], list[str]]) -> None:
    if name == "explode" and form == "csv":
        pytest.skip("CSV has no lists")
    stream = streams.Stream(world.new_folder() / "one", form, 7, declared=True, most=40)
    for _ in range(5):
        stream.come()
        read()
        check(lambda: BEHAVIOURS[name](stream.scan(), world.static), False, name)
    files = read()
    assert set(files) == {str(stream.files[-1])}
    # Once for its rows, and once more for the range of what is grouped by, where that decides how streams are cut.
    assert len(files) <= (2 if "group_by" in name or "above" in name else 1)


def test_only_what_is_new_is_read_of_two_streams(world: World, read: Callable[[], list[str]]) -> None:
    folder = world.new_folder()
    one, two = (streams.Stream(folder / name, "parquet", 7, declared=True, empties=0) for name in ("one", "two"))
    query = lambda: one.scan().join(two.scan().select("o", w="v"), on="o").group_by("k").agg(pl.col("w").sum())
    for _ in range(5):
        one.come()
        two.come()
        read()
        check(query, False, "two streams")
    assert set(read()) == {str(one.files[-1]), str(two.files[-1])}
