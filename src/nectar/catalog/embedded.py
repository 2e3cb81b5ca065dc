"""The catalog of one machine: a folder with an SQLite index and, unless a setting says otherwise, the results.

Many processes use it at once; none of them serves the others. No set-up: the folder is made when first needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nectar.catalog.collect import Collector
from nectar.catalog.housekeeping import Housekeeper
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.catalog.policies import policy_named
from nectar.catalog.service import Catalog
from nectar.catalog.state import Budget
from nectar.clock import Clock, SystemClock
from nectar.errors import CatalogFailure
from nectar.faults import Reach, nowhere
from nectar.model.entry import Entry
from nectar.settings import Settings
from nectar.store.read import Problem
from nectar.store.store import Store
from nectar.store.verify import Verified

INDEX: Final = "catalog.db"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def open_catalog(
    settings: Settings, *, clock: Clock | None = None, reach: Reach = nowhere, background: bool = False
) -> Catalog:
    """The catalog in the home folder of the settings. background: budgets are looked after beside the work."""
    clock = SystemClock() if clock is None else clock
    home = settings.home
    if not settings.read_only:
        _make(home)
    index = SqliteIndex(home / INDEX, reach=reach, read_only=settings.read_only)
    catalogs: list[Catalog] = []

    def on_damage(entry: Entry, problem: Problem) -> None:
        catalogs[0].damaged(entry, problem)

    store = Store(
        settings.store or home / "results",
        reach=reach,
        clock=clock,
        verified=Verified(None if settings.read_only else _verified_file(home)),
        on_damage=on_damage,
        background=settings.verify == "length",
    )
    collector = Collector(index, store, budget_of(settings), policy_named(settings.policy), clock)
    catalog = Catalog(
        index, store, collector, clock, inline=settings.inline, protect=settings.protect, verify=settings.verify,
        job_log=settings.job_log, read_only=settings.read_only,
    )  # fmt: skip
    catalog.settings = settings
    catalogs.append(catalog)
    if background and not settings.read_only:
        catalog.housekeeper = Housekeeper(collector, clock)
    return catalog


def budget_of(settings: Settings) -> Budget:
    """The budget the settings give; 0 means no limit."""
    return Budget(
        size=settings.budget or None,
        files=settings.most_files or None,
        age=settings.most_age or None,
        reserve=settings.reserve or None,
    )


def _make(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogFailure(
            f"the folder {home} cannot be made ({error.strerror}): check its rights, or name another with NECTAR_HOME"
        ) from error


def _verified_file(home: Path) -> Path | None:
    """One file for each start of the machine: after an end without warning, everything is verified again."""
    try:
        current = home / f"verified-{_BOOT.read_text().strip()}"
    except OSError:
        return None  # no telling when the machine started: remembered for this process alone
    for other in home.glob("verified-*"):
        if other != current:
            other.unlink(missing_ok=True)
    return current
