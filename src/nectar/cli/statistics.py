"""`nectar stats`: what the catalog holds, and whether it pays."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from nectar.catalog.embedded import budget_of
from nectar.catalog.state import Budget
from nectar.cli.opened import common_options, number_of, opened, print_json
from nectar.model.entry import Totals, Usage
from nectar.quantities import show_duration, show_size


@click.command()
@common_options
def stats(home: Path | None, as_json: bool) -> None:
    """Show what is kept and what it saved."""
    with opened(home, as_json) as (catalog, settings):
        usage, totals, free = Usage(), Totals(), None
        if catalog is not None:
            usage, totals, free = catalog.usage(), catalog.index.totals(), catalog.store.free_space()
        budget = budget_of(settings)
        if as_json:
            share = usage.total / budget.size if budget.size else None
            record = {**asdict(usage), **asdict(totals), "total": usage.total}
            limits = {**asdict(budget), "policy": settings.policy}
            print_json(
                {"home": str(settings.home), **record, "budget": limits, "share_used": share, "free_on_disk": free}
            )
            return
        for head, text in _lines(usage, totals, budget, free):
            click.echo(f"{head:<10} {text}")
        click.echo(f"{'home':<10} {settings.home}" + ("" if catalog else " (nothing is kept there yet)"))


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
