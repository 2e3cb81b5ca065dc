"""`nectar demo polars`: a program over a log of clicks is run, edited and run again; only what is new is computed.

In: nothing. Out: a table for people, or JSON. Every run is a process of its own, `nectar run report.py`; all share one
store. Log and store are deleted afterwards. Exit code 1 if anything was reused or computed that should not have been.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from nectar.cli.demos.polars_program import BYTES_PER_CLICK, CLICKS, LIMITS, REPORT, STEPS, VISITS, Step, files_of
from nectar.cli.demos.process import Ended, run_python
from nectar.cli.failure import Failure
from nectar.quantities import show_duration, show_size

_DAYS: Final = 7
_MOST: Final = 14_000_000  # clicks; a report on so many takes a few seconds
_SHARE: Final = 0.05  # of the free space of the disk
_COUNTED: Final = re.compile(
    r"^nectar: ([\d,]+) of ([\d,]+) quer(?:y|ies)(?: and ([\d,]+) steps?)? from cache", re.MULTILINE
)
_REASON: Final = re.compile(
    r"^(?:nothing of it is known|.* of it known: .*; the rest is computed): (.*)$", re.MULTILINE
)


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
        place = Path(folder)
        clicks = _clicks_that_fit(place)
        if not as_json:
            click.echo(f"Making a log of {_DAYS * clicks:,} clicks in {_DAYS} files ...")
        size = _write_days(place, 1, _DAYS, clicks)
        if not as_json:
            _print_program(size)
        runs = []
        for done in _run_all(place, clicks):
            runs.append(done)
            if not as_json:
                _print_run(done)
    broken = [done.title for done in runs if not done.promised]
    if as_json:
        click.echo(json.dumps({"kept": not broken, "bytes": size, "runs": [asdict(done) for done in runs]}))
    elif not broken:
        _print_end(runs)
    if broken:
        raise Failure(f"{len(broken)} of {len(runs)} runs were not as promised: {'; '.join(broken)}")


# the log


def _clicks_that_fit(folder: Path) -> int:
    """Clicks a day: as many as the disk has room for, and not more than can be waited for."""
    room = shutil.disk_usage(folder).free * _SHARE / BYTES_PER_CLICK
    return max(1000, int(min(_MOST, room)) // _DAYS)


def _write_days(place: Path, first: int, days: int, clicks: int) -> int:
    """Writes days of the log; how many bytes there are now."""
    log = place / "clicks"
    log.mkdir(exist_ok=True)
    done = run_python(["-c", CLICKS, str(log), str(first), str(days), str(clicks)], place / "store")
    if done.code:
        raise Failure(f"the log could not be made: {done.stderr.strip()[-300:]}")
    for path in log.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())  # so that no run has to share the disk with what was written before it
    return sum(path.stat().st_size for path in log.iterdir())


# the runs


def _run_all(place: Path, clicks: int) -> Iterator[Run]:
    files = {"report.py": REPORT, "visits.py": VISITS, "limits.py": LIMITS}
    folder = place / "report"
    for step in STEPS:
        files = files_of(step, files)
        if step.moved:
            folder = place / "moved" / "report"
        if step.new_day:
            _write_days(place, _DAYS + 1, 1, clicks)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        command = ["-m", "nectar.cli", "run", *step.options, str(folder / "report.py"), str(place / "clicks")]
        yield _judged(step, run_python(command, place / "store"))


def _judged(step: Step, ended: Ended) -> Run:
    """What a run did, and whether that was promised."""
    if "--no-cache" in step.options:
        return Run(step.title, ended.seconds, 0, 0, ended.stderr.strip()[-300:] if ended.code else "", not ended.code)
    counted = _COUNTED.search(ended.stderr)
    if ended.code or counted is None:
        return Run(step.title, ended.seconds, 0, 0, (ended.stderr or ended.stdout).strip()[-300:], promised=False)
    cached, queries, steps = (int(group.replace(",", "")) for group in counted.groups(default="0"))
    reused, computed = cached + steps, queries - cached
    reasons = _REASON.findall(ended.stderr)
    because = next((reason for reason in reasons if step.because in reason), reasons[0] if reasons else "")
    promised = (
        (step.computed is None or computed == step.computed)
        and (step.computed == 0 or bool(computed))
        and (reused > 0 or not step.reuses)
        and step.because in because
    )
    return Run(step.title, ended.seconds, reused, computed, because, promised)


# telling


def _print_program(size: int) -> None:
    click.echo(f"This program reports on {show_size(size)} of clicks; `attention` uses a limit from another module:\n")
    click.echo(textwrap.indent(REPORT.partition("import polars as pl\n")[2], "    "))
    click.secho(f"  {'nectar run report.py':<44} {'TIME':>8} {'REUSED':>7} {'COMPUTED':>9}", bold=True)


def _print_run(done: Run) -> None:
    colour = "red" if not done.promised else "green" if done.reused and not done.computed else None
    counts = f"{done.reused:>7} {done.computed:>9}" if done.reused or done.computed else ""
    click.secho(f"  {done.title:<44} {show_duration(done.seconds):>8} {counts}".rstrip(), fg=colour)
    if done.because and (done.computed or not done.promised):
        click.secho(f"      {done.because}", dim=True)


def _print_end(runs: list[Run]) -> None:
    again = next(done.seconds for done in runs if done.reused and not done.computed)
    plain = show_duration(runs[0].seconds)
    click.echo(
        f"\nWithout Nectar: {plain}. Known: {show_duration(again)}, the start of Python included.\n"
        "Run a program of your own with `nectar run`; `nectar ls` lists what is kept."
    )
