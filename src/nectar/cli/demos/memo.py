"""`nectar demo memo`: a small program is run, edited and run again; what is known is not computed again.

In: nothing. Out: a table for people, or JSON. Every run is an interpreter of its own; all share one store, which is
deleted afterwards. Exit code 1 if anything was reused or computed that should not have been.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from nectar.cli.demos.memo_program import PRICING, SHOP, STEPS, TAX, Step, files_of, orders
from nectar.cli.demos.process import run_python
from nectar.cli.failure import Failure
from nectar.quantities import show_duration

_ORDERS: Final = 1500
_COUNTED: Final = re.compile(r"^nectar: (\d+) of (\d+) calls? from cache", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the program did."""

    title: str
    seconds: float
    reused: int
    computed: int
    because: str
    promised: bool


def run(as_json: bool) -> None:
    """Runs the program through all its edits. Raises Failure if a promise is not kept."""
    with tempfile.TemporaryDirectory(prefix="nectar-demo-") as folder:
        runs = []
        if not as_json:
            _print_program()
        for done in _run_all(Path(folder)):
            runs.append(done)
            if not as_json:
                _print_run(done)
    broken = [done.title for done in runs if not done.promised]
    if as_json:
        click.echo(json.dumps({"kept": not broken, "runs": [asdict(done) for done in runs]}))
    elif not broken:
        first = runs[0].seconds
        again = min(done.seconds for done in runs[1:])
        click.echo(f"\nComputed once: {show_duration(first)}. Known: {show_duration(again)}, from the start of Python.")
        click.echo("Put @nectar.memo above a function of your own; `nectar ls` lists what is kept.")
    if broken:
        raise Failure(f"{len(broken)} of {len(runs)} runs were not as promised: {'; '.join(broken)}")


def _run_all(folder: Path):  # type: ignore[no-untyped-def]
    files = {"shop.py": SHOP, "pricing.py": PRICING, "tax.py": TAX}
    data = folder / "orders.csv"
    _write_orders(data, _ORDERS)
    place = folder / "shop"
    for step in STEPS:
        files = files_of(step, files)
        if step.moved:
            place = folder / "moved" / "shop"
        if step.new_orders:
            _write_orders(data, _ORDERS + 1)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
        yield _run_step(step, place / "shop.py", data, folder / "store")


def _write_orders(path: Path, count: int) -> None:
    path.write_text(orders(count), encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000 + count))  # as if it had been there for long


def _run_step(step: Step, script: Path, data: Path, store: Path) -> Run:
    done = run_python([str(script), str(data)], store)
    seconds = done.seconds
    counted = _COUNTED.search(done.stdout)
    if done.code or counted is None:
        return Run(step.title, seconds, 0, 0, (done.stderr or done.stdout).strip()[-300:], promised=False)
    reused = int(counted[1])
    computed = int(counted[2]) - reused
    reasons = [line for line in done.stdout.splitlines() if ": computed in" in line]
    named = next((line for line in reasons if step.because and step.because in line), reasons[0] if reasons else "")
    promised = (reused, computed) == (step.reused, step.computed) and step.because in named
    because = named.partition(" (")[2].removesuffix(")").rpartition("; ")[0]
    return Run(step.title, seconds, reused, computed, because, promised)


# telling


def _print_program() -> None:
    click.echo("This program reports on orders; each month is a call, and their prices come from two modules away:\n")
    click.echo(textwrap.indent(SHOP.partition("\n\n\nif ")[0].partition("import nectar")[2].lstrip(), "    "))
    click.echo()
    click.secho(f"  {'':<52} {'TIME':>8} {'REUSED':>7} {'COMPUTED':>9}", bold=True)


def _print_run(done: Run) -> None:
    colour = "red" if not done.promised else "green" if not done.computed else None
    line = f"  {done.title:<52} {show_duration(done.seconds):>8} {done.reused:>7} {done.computed:>9}"
    click.secho(line, fg=colour)
    if done.because and done.computed:
        click.secho(f"      {done.because}", dim=True)
