"""How fast the catalog and the store are, at ten thousand entries and at a million, and beside what others use.

    python benchmarks/store.py [--entries 10000 100000 1000000] [--runs N] [--table-mb 100] [--result-mb 200]
                               [--objects 10000] [--folder WHERE]

Prints tables for people, then one line of JSON with the figures. Every figure is the median of several runs, with the
lowest and the highest. Entries are made in bulk through the index's own form of rows; a sample of them is then looked
up through the catalog. Everything lies in a temporary folder of the disk that is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time, time
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.store_verification import measure_verification  # noqa: E402 - found by way of the line above
from benchmarks.stores import PLACES, catalog_in, is_installed, key_of  # noqa: E402 - found by way of the line above

from nectar.catalog.index import rows  # noqa: E402
from nectar.catalog.service import Catalog, Kept  # noqa: E402
from nectar.catalog.state import Budget  # noqa: E402
from nectar.model.entry import Entry  # noqa: E402
from nectar.quantities import show_size  # noqa: E402
from nectar.store.read import Result  # noqa: E402

BATCH = 20
LOOKUPS = 4000  # in one run
INSERTS = 400
EVICTED = 400  # results with files


@dataclass(frozen=True, slots=True)
class Sizes:
    entries: Sequence[int]
    runs: int
    table: int
    result: int
    objects: int


@dataclass(slots=True)
class Report:
    """Figures by name, and lines for people."""

    figures: dict[str, object] = field(default_factory=dict)
    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def add(
        self, name: str, words: str, values: Sequence[float], unit: str, target: str = "", scale: float = 1
    ) -> None:
        """The median of several values with lowest and highest, for people and for JSON."""
        shown = [value * scale for value in values]
        middle = median(shown)
        self.figures[name] = _rounded(middle)
        if len(shown) > 1:
            self.figures[f"{name}_lowest"], self.figures[f"{name}_highest"] = map(_rounded, (min(shown), max(shown)))
        spread = f" ({_short(min(shown))} to {_short(max(shown))})" if len(shown) > 1 else ""
        self.lines.append((words, f"{_short(middle)} {unit}{spread}", target))


def _rounded(value: float) -> float:
    return round(value, 1) if abs(value) >= 100 else float(f"{value:.3g}")


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def timed(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


class Spent(NamedTuple):
    """Seconds by the clock, and of the processor: the latter say something on a machine that has other work to do."""

    wall: float
    cpu: float


def spent_by(action: Callable[[], object]) -> Spent:
    start = process_time()
    wall = timed(action)
    return Spent(wall, process_time() - start)


def ninth_decile(values: Sequence[float]) -> float:
    return quantiles(values, n=10)[-1] if len(values) > 1 else values[0]


# many entries


def made_up(number: int, now: float) -> Entry:
    """An entry as programs leave them: three results for each program, sizes and costs over several magnitudes."""
    key = key_of(f"entry {number}")
    digits = key.hex()
    a, b, c, d = (int.from_bytes(key[at : at + 8]) / 2**64 for at in (0, 8, 16, 24))
    used = now - 86400 * 7 * a * a
    return Entry(
        key, key_of(f"program {number // 3}"), "arrow", f"{digits[:2]}/{digits}-{number:016x}", key,
        int(10 ** (4 + 4 * b)), 2, int(10**6 * c), 10 ** (5 * d - 2), used - 1000, used,
        hits=int(50 * c * d), recipe=key, producer="somewhere:4711", protected=used,
    )  # fmt: skip


def fill(catalog: Catalog, first: int, last: int, now: float) -> None:
    """Entries from first to last are there, written in one transaction."""
    statement = f"INSERT INTO entries ({rows.ENTRY}) VALUES ({rows.marks(rows.ENTRY.split(','))})"
    connection = catalog.index._connection  # type: ignore[attr-defined]
    (cache,) = connection.execute("PRAGMA cache_size").fetchone()
    connection.execute("PRAGMA cache_size=-1500000")  # so that no page is written twice
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(statement, (rows.to_row(made_up(number, now)) for number in range(first, last)))
    connection.execute("COMMIT")
    connection.execute(f"PRAGMA cache_size={cache}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.index.recount()
    sample = random.Random(last).sample(range(first, last), min(100, last - first))
    for number in sample:
        expected = made_up(number, now)
        (known,) = catalog.lookup([expected.key], [expected.program])
        assert known.entry == expected, f"entry {number} does not come back as it was written"
    assert catalog.usage().entries >= last


def measure_scale(catalog: Catalog, sizes: Sizes, report: Report) -> None:
    """Look-ups and inserts as the catalog grows; then what takes all of it into account."""
    now, before, filled = time(), 0, 0.0
    flatness: dict[str, list[float]] = {}
    for entries in sizes.entries:
        filled += timed(lambda first=before, last=entries: fill(catalog, first, last, now))
        before = entries
        chance = random.Random(entries)
        looked = [_look_up(catalog, chance, entries) for _ in range(sizes.runs)]
        added = [_insert(catalog, f"{entries} {run}") for run in range(sizes.runs)]
        for name, words, times, number in (
            ("lookups", "look-ups", looked, LOOKUPS),
            ("inserts", "inserts (small, inline)", added, INSERTS),
        ):
            rates = [number / spent.wall for spent in times]
            report.add(f"{name}_per_s_at_{entries}", f"{words} at {entries:,} entries", rates, "/s")
            report.figures[f"{name}_per_cpu_s_at_{entries}"] = round(max(number / spent.cpu for spent in times))
            flatness.setdefault(f"{name}_fastest_over_slowest", []).append(max(rates))
            flatness.setdefault(f"{name}_cpu_fastest_over_slowest", []).append(min(spent.cpu for spent in times))
    for name, values in flatness.items():
        words = f"{name.partition('_')[0]}, fastest size over slowest{', by CPU time' if 'cpu' in name else ''}"
        report.add(name, words, [max(values) / min(values)], "x", "at most 2")
    _measure_batches(catalog, sizes, report)
    _measure_rows(catalog, report)
    _measure_eviction(catalog, sizes, report)
    report.figures["fill_s"] = round(filled, 1)


def _look_up(catalog: Catalog, chance: random.Random, entries: int) -> Spent:
    asked = [(key_of(f"entry {n}"), key_of(f"program {n // 3}")) for n in chance.choices(range(entries), k=LOOKUPS)]

    def ask() -> None:
        for key, program in asked:
            assert catalog.lookup([key], [program])[0].entry is not None

    return spent_by(ask)


def _insert(catalog: Catalog, label: str) -> Spent:
    values = [(key_of(f"insert {label} {n}"), {"number": n, "text": "abc" * 20}) for n in range(INSERTS)]

    def insert() -> None:
        for key, value in values:
            assert isinstance(catalog.keep(key, key, value, seconds=1.0), Kept)

    return spent_by(insert)


def _measure_batches(catalog: Catalog, sizes: Sizes, report: Report) -> None:
    last = sizes.entries[-1]
    chance = random.Random(7)
    medians, high = [], []
    for _ in range(sizes.runs):
        times = []
        for _ in range(500):
            numbers = chance.choices(range(last), k=BATCH)
            keys = [key_of(f"entry {n}") for n in numbers]
            programs = [key_of(f"program {n // 3}") for n in numbers]
            times.append(timed(lambda keys=keys, programs=programs: catalog.lookup(keys, programs)))
        medians.append(median(times))
        high.append(ninth_decile(times))
    words = f"one look-up of {BATCH} keys at {last:,} entries"
    report.add("batch_of_20_median_ms", f"{words}, median", medians, "ms", "under 1", 1e3)
    report.add("batch_of_20_p90_ms", f"{words}, p90", high, "ms", "", 1e3)


def _measure_rows(catalog: Catalog, report: Report) -> None:
    catalog.index._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]
    size = catalog.index.path.stat().st_size  # type: ignore[attr-defined]
    report.add("index_bytes_per_entry", "index, for each entry", [size / catalog.usage().entries], "bytes")


def _measure_eviction(catalog: Catalog, sizes: Sizes, report: Report) -> None:
    """A store at 101 % of its budget: the pass looks at everything, and takes it down to 90 %."""
    usage = catalog.usage()
    collector = catalog.collector
    collector.budget = Budget(size=int(usage.size / 1.01))
    looked = [timed(collector.plan) for _ in range(sizes.runs)]
    report.add("eviction_plan_s", f"choose what goes among {usage.entries:,} entries", looked, "s")
    victims = collector.plan()[: EVICTED * 20]
    spent = timed(lambda: collector.index.evict([victim.key for victim in victims], time()))
    report.add("evicted_rows_per_s", "evict entries, without their files", [len(victims) / spent], "/s")
    collector.budget = Budget()


# results


def table_of(size: int) -> Any:
    """A frame of about so many bytes: numbers, and texts of which some repeat."""
    import numpy as np
    import polars as pl

    count = max(1, size // 34)  # bytes of a row in memory
    chance = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "id": np.arange(count),
            "user": chance.integers(0, 10**6, count),
            "amount": chance.normal(size=count),
            "url": pl.Series(chance.integers(0, 5000, count)).cast(pl.String) + "/index",
        }
    )


def use(value: Any) -> None:
    """Every number and every text is looked at."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        value.select(pl.col("id", "user", "amount").sum(), pl.col("url").str.len_bytes().sum())


def drop_from_memory(folder: Path) -> None:
    """The next reading comes from the disk, where the system allows to ask for that."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.rglob("*.arrow"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def measure_results(home: Path, sizes: Sizes, report: Report) -> None:
    """Commit and opening, small and large."""
    catalog = catalog_in(home)
    small = [timed(partial(_keep, catalog, f"small {n}", {"n": n}, False)) for n in range(INSERTS)]
    report.add("commit_small_ms", "commit, small (inline)", [median(small)], "ms", "", 1e3)
    report.add("commit_small_p90_ms", "commit, small (inline), p90", [ninth_decile(small)], "ms", "", 1e3)
    for label, size, repeats in (("1mb", 10**6, 10 * sizes.runs), ("large", sizes.result, sizes.runs)):
        table = table_of(size)
        shown = show_size(table.estimated_size())
        times = [timed(partial(_keep, catalog, f"{label} {n}", table, True)) for n in range(repeats)]
        report.add(f"commit_{label}_ms", f"commit, {shown} table, on disk when it returns", times, "ms", "", 1e3)
        entry = _entry(catalog, f"{label} 0")
        beside = entry.size - _data_in(catalog, entry)
        report.add(f"bytes_beside_data_{label}", f"  of which not data ({entry.files} files)", [beside], "bytes")
        if label == "large":
            expected = table.row(0)
    catalog.close()
    for words, cold in (("", False), (", file not in memory", True)):
        times = [_first_row(home, cold, expected) for _ in range(2 * sizes.runs + 1)]
        name = "open_large_first_row_cold_ms" if cold else "open_large_first_row_ms"
        shown = show_size(sizes.result)
        report.add(name, f"open {shown}, to the first row{words}", times, "ms", "" if cold else "under 5", 1e3)
    times = [_first_row(home, False, expected, verified=False) for _ in range(sizes.runs)]
    report.add("open_large_first_use_ms", f"open {show_size(sizes.result)} for the first time", times, "ms", "", 1e3)


def _keep(catalog: Catalog, name: str, value: Any, table: bool) -> None:
    kept = catalog.keep(key_of(name), key_of(name), value, table=table, seconds=1.0)
    assert isinstance(kept, Kept), kept


def _entry(catalog: Catalog, name: str) -> Entry:
    found = catalog.lookup([key_of(name)], [key_of(name)])[0].entry
    assert found is not None
    return found


def _data_in(catalog: Catalog, entry: Entry) -> int:
    """Bytes of a table's own buffers, as they lie in the files."""
    opened = catalog.open(entry)
    assert isinstance(opened, Result)
    with opened:
        return int(opened.to_arrow().nbytes)


def _first_row(home: Path, cold: bool, expected: tuple[object, ...], verified: bool = True) -> float:
    """Look up, open and read one row with a catalog of its own. verified: by an earlier process."""
    if verified:
        catalog = catalog_in(home)
        assert isinstance(catalog.open(_entry(catalog, "large 0")), Result)
        catalog.close()
    else:
        for remembered in home.glob("verified-*"):
            remembered.unlink()
    if cold:
        drop_from_memory(home)
    catalog = catalog_in(home)
    _entry(catalog, "large 1" if cold else "large 0")  # the first look-up opens the index's own pages

    def first_row() -> None:
        opened = catalog.open(_entry(catalog, "large 0"))
        assert isinstance(opened, Result)
        assert opened.to_polars().row(0) == expected

    spent = timed(first_row)
    catalog.store.settle()
    catalog.close()
    return spent


def measure_eviction_of_files(home: Path, sizes: Sizes, report: Report) -> None:
    """Results of 10 kB in folders of their own, evicted and deleted."""
    rates = []
    value = b"x" * 10_000
    for run in range(sizes.runs):
        catalog = catalog_in(home / str(run))
        for number in range(EVICTED):
            _keep(catalog, f"evict {number}", value, False)
        victims = catalog.collector.plan(everything=True)
        rates.append(len(victims) / timed(lambda catalog=catalog, victims=victims: catalog.collector.evict(victims)))
        assert catalog.usage().total == 0
        catalog.close()
    report.add("evicted_results_per_s", "evict results of 10 kB, files and all", rates, "/s")


# beside others


def measure_places(home: Path, sizes: Sizes, report: Report) -> None:
    """The same values put and got, in the same run, in folders of the same disk."""
    table = table_of(sizes.table)
    objects = {f"object {n}": {"number": n, "name": f"item {n}", "tags": ["a", "b", str(n)], "price": n / 7}
               for n in range(sizes.objects)}  # fmt: skip
    order = list(objects)
    random.Random(5).shuffle(order)
    places = [place for place in PLACES if is_installed(place)]
    times: dict[tuple[str, str], list[float]] = {}
    for run in range(sizes.runs):
        for place in places:
            folder = home / f"{place}-{run}"
            folder.mkdir(parents=True)
            for what, seconds in _put_and_get(place, folder, table, objects, order).items():
                times.setdefault((place, what), []).append(seconds)
            shutil.rmtree(folder)
    shown = show_size(table.estimated_size())
    for what, words in (
        ("put_table", f"put a table of {shown}"),
        ("get_table", "get it and use every column"),
        ("put_objects", f"put {sizes.objects:,} small objects"),
        ("get_objects", "get them in another order"),
    ):
        for place in places:
            scale, unit = (1e3, "ms") if what.endswith("table") else (1, "s")
            report.add(f"{place}_{what}_{unit}", f"{words}: {place}", times[place, what], unit, "", scale)
    for place in PLACES:
        if place not in places:
            report.lines.append((place, "not installed, not measured", ""))


def _put_and_get(place: str, folder: Path, table: Any, objects: dict[str, Any], order: list[str]) -> dict[str, float]:
    kept = PLACES[place](folder)
    found = {"put_table": timed(lambda: kept.put("table", table))}
    found["put_objects"] = timed(lambda: [kept.put(name, value) for name, value in objects.items()])
    kept.close()
    kept = PLACES[place](folder)
    got: list[Any] = []
    found["get_table"] = timed(lambda: (got.append(kept.get("table")), use(got[-1])))
    found["get_objects"] = timed(lambda: got.extend(map(kept.get, order)))
    assert got[0].equals(table), f"{place} gives another table back"
    assert got[1:] == [objects[name] for name in order], f"{place} gives other objects back"
    kept.close()
    return found


# everything


@contextmanager
def folder_in(where: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(sizes: Sizes, where: Path | None) -> Report:
    report = Report()
    load = _load()
    started = perf_counter()
    for name, part in (
        ("results", measure_results),
        ("evicted", measure_eviction_of_files),
        ("places", measure_places),
        ("verification", lambda home, sizes, report: measure_verification(home, sizes.runs, report.add)),
    ):
        with folder_in(where) as folder:
            part(folder / name, sizes, report)
    with folder_in(where) as folder:
        catalog = catalog_in(folder)
        measure_scale(catalog, sizes, report)
        catalog.close()
    report.figures |= {"runs": sizes.runs, "load_before": load, "load_after": _load(), "cores": os.cpu_count() or 0}
    report.figures["seconds"] = round(perf_counter() - started, 1)
    return report


def _load() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0


def print_report(report: Report) -> None:
    width = max(len(words) for words, _, _ in report.lines)
    figure = max(len(text) for _, text, _ in report.lines)
    print(f"{'':<{width}}  {'median (lowest to highest)':<{figure}}  target")
    for words, text, target in report.lines:
        print(f"{words:<{width}}  {text:<{figure}}  {target}".rstrip())
    figures = report.figures
    loads = f"load {figures['load_before']} before and {figures['load_after']} after"
    print(f"\n{figures['cores']} cores, {loads}, {figures['seconds']} s in all.")
    print("Of the places compared only Nectar syncs a table to disk before it returns, and verifies what it reads.")
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--table-mb", type=float, default=100)
    parser.add_argument("--result-mb", type=float, default=200)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    sizes = Sizes(
        sorted(chosen.entries), chosen.runs, int(chosen.table_mb * 1e6), int(chosen.result_mb * 1e6), chosen.objects
    )
    print_report(measure(sizes, chosen.folder))


if __name__ == "__main__":
    main()
