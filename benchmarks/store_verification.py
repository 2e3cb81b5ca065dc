"""What verification costs whoever reads a result: all of it, and one column of thirteen; 1 MB, 100 MB and 1 GB.

Three ways, one after the other in each round: not verified at all (as with `verify = "length"`), for the first time
since the machine was started, and again in another process. All files are in memory, so that the disk hides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from nectar.model.entry import Entry
from nectar.quantities import show_size
from nectar.store.manifest import subject_of
from nectar.store.read import Result
from nectar.store.store import Store
from nectar.store.verify import Verified

COLUMNS = 13
SIZES = {"1mb": 10**6, "100mb": 10**8, "1gb": 10**9}
WAYS = ("unverified", "first", "again")
KEY = bytes(32)
Add = Callable[..., None]


def wide_table(size: int) -> Any:
    """Thirteen columns of which three are texts."""
    import numpy as np
    import polars as pl

    count = max(1, size // (10 * 8 + 3 * 24))
    chance = np.random.default_rng(3)
    numbers = {f"n{number}": chance.integers(0, 10**9, count) for number in range(COLUMNS - 3)}
    texts = {f"t{number}": pl.Series(chance.integers(0, 10**6, count)).cast(pl.String) for number in range(3)}
    return pl.DataFrame({**numbers, **texts})


def put(store: Store, table: Any) -> Entry:
    """The table, kept at a place of the store."""
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_table(table)
        done = staging.publish(subject_of(KEY, KEY, ()))
    return Entry(
        KEY, KEY, done.kind, done.location, done.manifest, done.size, done.files, done.rows, 1.0, 0.0, 0.0
    )  # fmt: skip


def read(store: Store, entry: Entry, column: str | None, verify: Literal["length", "before"]) -> float:
    """Seconds until every number and every text of it has been looked at."""
    import polars as pl

    begun = perf_counter()
    opened = store.open(entry, verify=verify, in_part=column is not None)
    assert isinstance(opened, Result), opened
    with opened:
        frame = opened.to_polars(None if column is None else [column])
        frame.select(pl.col(pl.Int64).sum(), pl.col(pl.String).str.len_bytes().sum())
    return perf_counter() - begun


def measure_verification(folder: Path, runs: int, add: Add) -> None:
    """Each size, whole and in part, in each way. add: takes name, words, values, unit, target and scale."""
    import pyarrow as pa

    assert pa
    for label, size in SIZES.items():
        store = Store(folder / label)
        entry = put(store, wide_table(size))
        for what, column in (("whole", None), ("column", "n4")):
            times: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(3 * runs):
                for way, seconds in _one_round(folder / label, entry, column).items():
                    times[way].append(seconds)
            words = f"read {show_size(size)}, {'every column' if column is None else 'one column of 13'}"
            for way in WAYS:
                add(f"read_{label}_{what}_{way}_ms", f"{words}: {way}", times[way], "ms", "", 1e3)
            plain, again = min(times["unverified"]), min(times["again"])
            add(f"verify_{label}_{what}_again_share", f"{words}: verified before", [again / plain - 1], "", "under 0.1")
        store.delete(entry.location)


def _one_round(root: Path, entry: Entry, column: str | None) -> dict[str, float]:
    marks = root / "marks"
    if not marks.exists():
        _store(root, marks).is_sound(entry)
    return {
        "unverified": read(Store(root), entry, column, "length"),
        "again": read(_store(root, marks), entry, column, "before"),
        "first": read(_store(root, None), entry, column, "before"),
    }


def _store(root: Path, path: Path | None) -> Store:
    """A store as another process opens it, at a time when the files are at rest."""
    return Store(root, verified=Verified(path, wall=lambda: time.time_ns() + 10**10))
