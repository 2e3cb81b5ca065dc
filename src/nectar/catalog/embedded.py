"""The catalog of one machine: a folder with an SQLite index and, unless a setting says otherwise, the results.

Many processes use it at once; none of them serves the others. No set-up: the folder is made when first needed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from nectar.catalog.collect import Collector
from nectar.catalog.guarded import GuardedIndex
from nectar.catalog.holders import Presence
from nectar.catalog.housekeeping import Housekeeper
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.catalog.policies import policy_named
from nectar.catalog.process import boot
from nectar.catalog.service import Catalog
from nectar.catalog.state import Budget
from nectar.clock import Clock, SystemClock
from nectar.errors import UntrustedError
from nectar.faults import Reach, nowhere
from nectar.model.entry import Entry
from nectar.settings import Settings
from nectar.store.inputs.mounts import OF_THIS_MACHINE, SystemMounts
from nectar.store.layout import DATA, STAGING, TRASH
from nectar.store.problem import Problem
from nectar.store.store import Store, local_root
from nectar.store.verify import Verified
from nectar.trust import people
from nectar.trust.contents import INDEX, MARKS
from nectar.trust.files import Access
from nectar.trust.home import Home, opened
from nectar.trust.pinned import pinned
from nectar.waiting.answering import step

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.waiting.health import Health

__all__ = ["INDEX", "budget_of", "open_catalog"]

MOST_INLINE: Final = 1 << 20  # bytes of a result in a row: every program reads the catalog, whoever chose the setting


def open_catalog(
    settings: Settings,
    *,
    clock: Clock | None = None,
    reach: Reach = nowhere,
    background: bool = False,
    alone_if_full: bool = False,
    health: Health | None = None,
) -> Catalog:
    """The catalog in the home folder of the settings.

    background: budgets are looked after beside the work. alone_if_full: to make room on a full disk, no other process
    is let in meanwhile if it cannot be done beside them. health: through which a running program asks, so that it does
    not wait for long.
    """
    clock = SystemClock() if clock is None else clock
    home = opened(settings.home, reading=settings.read_only)
    if not home.writable:
        settings = replace(settings, read_only=True)
    access = _access_of_store(home, settings)
    if home.open_until:
        settings = replace(settings, verify="before")
    if health is not None:
        reach = _stepping(reach)
    place = pinned(home)
    in_place = bool if place is None else place.refuse_exchanged
    index: Index = SqliteIndex(
        home.folder / INDEX, reach=reach, read_only=settings.read_only, access=home.access,
        alone_if_full=alone_if_full, in_place=in_place,
    )  # fmt: skip
    if health is not None:
        index = cast("Index", GuardedIndex(index, health))
        kind = SystemMounts().kind(str(home.folder), 0, 0.0) if sys.platform == "linux" else ""
        health.is_remote = kind not in OF_THIS_MACHINE
    catalogs: list[Catalog] = []

    def on_damage(entry: Entry, problem: Problem) -> None:
        catalogs[0].losses.damaged(entry, problem)

    store = Store(
        settings.store or home.folder / "results",
        access=access,
        reach=reach,
        clock=clock,
        verified=Verified(None if settings.read_only else _verified_file(home.folder), home.access),
        on_damage=on_damage,
        background=True,
        open_until=home.open_until,
        in_place=in_place,
    )
    presence = Presence(None if settings.read_only else home.folder, home.access)
    collector = Collector(index, store, budget_of(settings), policy_named(settings.policy), clock, presence)
    if not settings.read_only:
        collector.tidy = lambda: _tidy(home.folder, index, store, clock)
    catalog = Catalog(
        index, store, collector, clock, inline=min(settings.inline, MOST_INLINE), protect=settings.protect,
        verify=settings.verify, job_log=settings.job_log, read_only=settings.read_only,
    )  # fmt: skip
    catalog.settings, catalog.health = settings, health
    catalogs.append(catalog)
    if background and not settings.read_only:
        catalog.housekeeper = Housekeeper(collector, clock)
    return catalog


def _tidy(home: Path, index: Index, store: Store, clock: Clock) -> None:
    from nectar.catalog.tidying import tidy  # once a day

    tidy(home, index, store, clock.now())


def _stepping(reach: Reach) -> Reach:
    def announced(name: str) -> None:
        reach(name)
        step()

    return announced


def budget_of(settings: Settings) -> Budget:
    """The budget the settings give; 0 means no limit."""
    return Budget(
        size=settings.budget or None,
        files=settings.most_files or None,
        age=settings.most_age or None,
        reserve=settings.reserve or None,
    )


def _access_of_store(home: Home, settings: Settings) -> Access:
    """Who may use the results. What lies there is unpickled, so their folder has to be as trustworthy as the home."""
    root = local_root(settings.store or str(home.folder / "results"))
    if root is None:
        return home.access
    try:
        where = opened(Path(root), reading=settings.read_only, store=True) if settings.store else home
        for name in (DATA, STAGING, TRASH):  # each may be a link to where there is more space
            where.refuse_strange(Path(root) / name)
    except UntrustedError:
        if home.writable and _is_mine(root):
            home.note_open()  # this user will close it now, and then nothing else tells
        raise
    return where.access


def _is_mine(path: str) -> bool:
    try:
        return os.stat(path).st_uid == people.me()
    except OSError:
        return False


def _verified_file(home: Path) -> Path | None:
    """One file for each start of the machine: after an end without warning, everything is verified again."""
    started = boot()
    name = f"verified-{started}"
    if not started or not MARKS.fullmatch(name):
        return None  # no telling when the machine started: remembered for this process alone
    return home / name
