"""`nectar check`: whether index and files agree, and with --repair, that they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from nectar.catalog.check import Finding
from nectar.catalog.check import check as find_disagreements
from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, number_of, opened, print_json
from nectar.cli.terminal import echo, secho

# These harm nobody: files of others are theirs to delete, and a lease that ran out holds nothing.
HARMLESS: Final = frozenset(("foreign file", "lapsed lease"))
_SHOWN: Final = 20  # findings of one kind


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended.")
@click.option("--thorough", is_flag=True, help="Read every byte of every result; otherwise lengths and ends.")
@common_options
def check(repair: bool, thorough: bool, home: Path | None, as_json: bool) -> None:
    """Find every disagreement between the catalog and its files.

    Mending never invents anything: what is not whole is evicted, what belongs to nobody is deleted.
    """
    with opened(home, as_json, writing=repair) as (catalog, settings):
        findings = [] if catalog is None else find_disagreements(catalog, repair=repair, thorough=thorough)
    wrong = [finding for finding in findings if not finding.mended and finding.what not in HARMLESS]
    if as_json:
        print_json(
            {"home": str(settings.home), "good": not wrong, "findings": [asdict(finding) for finding in findings]}
        )
    else:
        _print(findings, thorough)
    if wrong:
        advice = "it cannot be mended now" if repair else "`nectar check --repair` mends what can be mended"
        raise Failure(f"{number_of(len(wrong), 'thing is', 'things are')} wrong: {advice}")


def _print(findings: Sequence[Finding], thorough: bool) -> None:
    for what in dict.fromkeys(finding.what for finding in findings):
        alike = [finding for finding in findings if finding.what == what]
        secho(f"{what}: {len(alike):,}", bold=True)
        for finding in alike[:_SHOWN]:
            state = "mended" if finding.mended else "harmless" if finding.what in HARMLESS else "not mended"
            echo(f"  {finding.subject}: {finding.detail} ({state})")
        if len(alike) > _SHOWN:
            echo(f"  and {len(alike) - _SHOWN:,} more")
    if not findings:
        depth = "every byte was read" if thorough else "lengths and ends were looked at; --thorough reads every byte"
        echo(f"Catalog and files agree ({depth}).")
