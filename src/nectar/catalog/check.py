"""Check: finds every disagreement between index and files, and mends it.

In: a catalog. Out: findings, each with what was done about it. Mending never invents anything: an entry whose files are
not whole is evicted, files without an entry are deleted, counts are counted anew. What is leased is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nectar.catalog.collect import GRACE
from nectar.catalog.service import Catalog
from nectar.errors import StoreFailure
from nectar.model.entry import RECIPE_LABEL, Entry

What = Literal[
    "damaged result", "missing result", "orphaned files", "unfinished deletion", "wrong count", "damaged index",
    "foreign file", "lapsed lease", "damaged recipe", "damaged name",
    "damaged row", "unreadable result",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. mended: whether it is now; foreign files are only reported."""

    what: What
    subject: str
    detail: str
    mended: bool


def check(catalog: Catalog, *, repair: bool = False, thorough: bool = False, grace: float = GRACE) -> list[Finding]:
    """All disagreements. thorough: every byte of every result and of every recipe is read."""
    return [
        *_index(catalog),
        *_results(catalog, repair, thorough),
        *(_recipes(catalog, repair) if thorough else ()),
        *(_rows(catalog, repair) if thorough else ()),
        *_doomed(catalog, repair),
        *_leases(catalog, repair),
        *_files(catalog, repair, grace),
        *_counts(catalog, repair),
    ]


def _index(catalog: Catalog) -> Iterator[Finding]:
    sound = getattr(catalog.index, "sound", None)
    for detail in sound() if sound is not None else ():
        yield Finding("damaged index", "catalog", detail, False)


def _results(catalog: Catalog, repair: bool, thorough: bool) -> Iterator[Finding]:
    now = catalog.clock.now()
    for entry in catalog.index.entries():
        try:
            problems = catalog.store.examine(entry, thorough=thorough)
        except StoreFailure as failure:  # it may be right: nobody can look at it now
            yield Finding("unreadable result", entry.key.hex(), str(failure), False)
            continue
        if not problems or not _still_there(catalog, entry):
            continue
        mended = repair and catalog.index.lose(entry, now)
        missing = all(problem.what == "missing" for problem in problems)
        if mended and not missing:
            catalog.losses.derived_from(entry)
        detail = "; ".join(f"{problem.part}: {problem.reason}" for problem in problems)
        yield Finding("missing result" if missing else "damaged result", entry.key.hex(), detail, mended)


def _still_there(catalog: Catalog, entry: Entry) -> bool:
    """Whether the entry was not evicted while it was being looked at."""
    now = catalog.index.lookup([entry.key]).get(entry.key)
    return now is not None and now.location == entry.location


def _recipes(catalog: Catalog, repair: bool) -> Iterator[Finding]:
    broken = catalog.index.broken_recipes()
    names: dict[str, list[str]] = {}
    for name in catalog.index.names() if broken else ():
        names.setdefault(f"{RECIPE_LABEL}{name.key.hex()}", []).append(name.name)
    if repair and broken:
        catalog.index.drop_recipes([each.identity for each in broken])
    for each in broken:
        of = [", ".join([label, *(f"named {name}" for name in names.get(label, ()))]) for label in each.labels]
        yield Finding("damaged recipe", each.identity.hex(), "; ".join([each.reason, *of]), repair)


def _rows(catalog: Catalog, repair: bool) -> Iterator[Finding]:
    broken = catalog.index.broken_rows()
    if repair and broken:
        catalog.index.drop_rows(broken, catalog.person, catalog.clock.now())
    for table, _, about in broken:
        if table == "names":
            yield Finding("damaged name", about, "what it points to is not what was written: save it again", repair)
        else:
            what = "is on record of a result" if table == "results" else "is remembered of an input"
            yield Finding("damaged row", about, f"what {what} is not what was written", repair)


def _doomed(catalog: Catalog, repair: bool) -> Iterator[Finding]:
    doomed = catalog.index.doomed()
    if repair and doomed:
        catalog.collector.delete_doomed()
    for location, size in doomed:
        yield Finding("unfinished deletion", location, f"{size} bytes were to be deleted", repair)


def _files(catalog: Catalog, repair: bool, grace: float) -> Iterator[Finding]:
    for found in catalog.store.locations():
        if found.foreign:
            yield Finding("foreign file", found.location, "not written by Nectar, and left alone", False)
    swept = catalog.collector.sweep(apply=repair, grace=grace)
    for location in swept.swept:
        yield Finding("orphaned files", location, "no entry and no lease refers to them", repair)


def _leases(catalog: Catalog, repair: bool) -> Iterator[Finding]:
    now = catalog.clock.now()
    gone = {lease.token for lease in catalog.collector.abandoned()}
    lapsed = [lease for lease in catalog.index.leases() if lease.until <= now or lease.token in gone]
    if repair:
        catalog.collector.end_abandoned()
        catalog.index.expire(now)
    for lease in lapsed:
        of = f"of {lease.who}{', which is gone' if lease.token in gone else ''}"
        yield Finding("lapsed lease", lease.location, of, repair)


def _counts(catalog: Catalog, repair: bool) -> Iterator[Finding]:
    if catalog.index.recount(apply=repair):
        yield Finding("wrong count", "usage", "the totals did not fit the rows", repair)
