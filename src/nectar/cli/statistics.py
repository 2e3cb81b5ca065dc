"""`nectar stats`: what the catalog holds, and whether it pays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, get_args

import click
from msgspec import structs

from nectar.catalog.embedded import budget_of
from nectar.catalog.service import Catalog
from nectar.catalog.state import Budget
from nectar.cli.opened import common_options, number_of, opened, print_json
from nectar.cli.terminal import echo
from nectar.model.entry import Totals, Usage
from nectar.overhead.ledger import Purpose
from nectar.overhead.sites import sums_of_all
from nectar.quantities import show_duration, show_size
from nectar.report.run import show_own_time

_DAYS: Final = (7, 30, 90, 250)


@dataclass(frozen=True, slots=True)
class Unused:
    """What nobody has used for so many days, and what the collector would delete now."""

    unused: tuple[dict[str, int], ...] = ()
    would_go: int = 0
    would_free: int = 0


def _unused(catalog: Catalog) -> Unused:
    now = catalog.clock.now()
    found = catalog.index.unused([now - days * 86400 for days in _DAYS])
    victims = catalog.collector.plan()
    doomed = sum(size for _, size in catalog.index.doomed())
    return Unused(
        tuple(
            {"days": days, "entries": entries, "size": size} for days, (entries, size) in zip(_DAYS, found, strict=True)
        ),
        len(victims),
        sum(victim.size for victim in victims) + doomed,
    )


def _report(report: Unused) -> list[tuple[str, str]]:
    idle = [
        f"{number_of(each['entries'], 'entry', 'entries')} for {each['days']} days ({show_size(each['size'])})"
        for each in report.unused
        if each["entries"]
    ]
    goes = f"{number_of(report.would_go, 'entry', 'entries')} would go now, {show_size(report.would_free)} be freed"
    return [("unused", "; ".join(idle) or "nothing for a week"), ("next", goes)]


@click.command()
@common_options
def stats(home: Path | None, as_json: bool) -> None:
    """Show what is kept, what it saved, what nobody uses, and what would be deleted now."""
    with opened(home, as_json) as (catalog, settings):
        usage, totals, free, report = Usage(), Totals(), None, Unused()
        if catalog is not None:
            usage, totals, free = catalog.usage(), catalog.index.totals(), catalog.store.free_space()
            report = _unused(catalog)
        budget, spent = budget_of(settings), sums_of_all(settings.home / "programs")
        if as_json:
            share = usage.total / budget.size if budget.size else None
            record = {**structs.asdict(usage), **structs.asdict(totals), "total": usage.total}
            limits = {**structs.asdict(budget), "policy": settings.policy}
            print_json(
                {
                    "home": str(settings.home),
                    **record,
                    "budget": limits,
                    "share_used": share,
                    "free_on_disk": free,
                    **asdict(report),
                    "overhead": spent,
                }
            )
            return
        for head, text in [*_lines(usage, totals, budget, free), *_own_time(spent), *_report(report)]:
            echo(f"{head:<10} {text}")
        echo(f"{'home':<10} {settings.home}" + ("" if catalog else " (nothing is kept there yet)"))


def _own_time(spent: dict[str, float]) -> list[tuple[str, str]]:
    """What Nectar itself has cost, and what it left alone."""
    own = {name: spent.get(name, 0.0) for name in get_args(Purpose)}
    program = spent.get("program", 0.0)
    if not program:
        return []
    parts = show_own_time(own)
    share = f"{sum(own.values()) / program:.1%} of the {show_duration(program)} that programs take without it"
    quick, waived = int(spent.get("left alone", 0)), int(spent.get("waived", 0))
    alone = f"{number_of(quick, 'query or call', 'queries and calls')}, quicker than looking for them"
    if waived:
        alone += f"; {waived:,} more to keep within the setting overhead"
    return [("own time", f"{share}: {parts}" if parts else share), ("alone", alone)]


def _lines(usage: Usage, totals: Totals, budget: Budget, free: int | None) -> list[tuple[str, str]]:
    entries = number_of(usage.entries, "entry", "entries")
    lines = [
        ("kept", f"{entries}, {show_size(usage.size)} in {number_of(usage.files, 'file')}; {totals.pinned:,} pinned"),
        ("budget", _budget(usage, budget)),
        ("uses", f"{totals.hits:,}, which saved {show_duration(totals.saved)} of machine time"),
        ("look-ups", f"{totals.lookups:,} of {number_of(totals.programs, 'program')}"),
        ("recipes", f"{totals.recipes:,}, {show_size(totals.recipe_bytes)}"),
        ("names", f"{totals.names:,}"),
        ("jobs", f"{totals.jobs:,} remembered"),
    ]
    if free is not None:
        reserve = f", of which {show_size(budget.reserve)} stay free" if budget.reserve else ""
        lines.append(("disk", f"{show_size(free)} free{reserve}"))
    if usage.pending:
        lines.append(("writing", f"{show_size(usage.pending)} announced"))
    if usage.doomed:
        lines.append(("deleting", f"{show_size(usage.doomed)} still on disk"))
    return lines


def _budget(usage: Usage, budget: Budget) -> str:
    limits = []
    if budget.size:
        limits.append(f"{show_size(budget.size)}, {usage.total / budget.size:.0%} used")
    if budget.files:
        limits.append(f"{number_of(budget.files, 'file')}, {usage.files / budget.files:.0%} used")
    if budget.age:
        limits.append(f"{show_duration(budget.age)} without use")
    return "; ".join(limits) or "none"
