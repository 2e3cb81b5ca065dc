"""`nectar demo fingerprints`: what changes a fingerprint and what does not, on a small program, checked while shown.

In: nothing. Out: a table for people, or JSON; exit code 1 if any fingerprint is not as promised. Every fingerprint is
taken in an interpreter of its own, from a copy of the program in a folder of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from nectar.cli.demos.fingerprints_program import BASELINE, VARIANTS, Variant, source_of
from nectar.cli.failure import Failure
from nectar.threads import each

TIME_LIMIT = 60  # seconds for one interpreter; a hundred times what it takes
SHOWN_DIGITS = 12
COLOURS = {"same": "green", "different": "yellow", "refused": "magenta"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one variant of the program gave. found: "same", "different", "refused" or "failed"."""

    title: str
    promised: str
    found: str
    fingerprint: str | None
    words: str

    @property
    def kept(self) -> bool:
        """The promise was kept, and the explanation named what it had to name."""
        return self.found == self.promised


def run(as_json: bool) -> None:
    """Shows what changes a fingerprint and what does not. Raises Failure if a promise is not kept."""
    with tempfile.TemporaryDirectory(prefix="nectar-demo-") as folder:
        outcomes = _run_all(Path(folder))
    broken = [outcome.title for outcome in outcomes if not outcome.kept]
    if as_json:
        click.echo(json.dumps({"kept": not broken, "outcomes": [asdict(outcome) for outcome in outcomes]}))
    else:
        _print_story(outcomes)
    if broken:
        raise Failure(f"{len(broken)} of {len(outcomes)} promises were not kept: {'; '.join(broken)}")


# running


def _run_all(folder: Path) -> list[Outcome]:
    """The outcomes of the baseline and of all variants, in their order."""
    variants = (BASELINE, *VARIANTS)
    targets = [_write(folder, number, variant) for number, variant in enumerate(variants)]
    at_once = max(2, os.cpu_count() or 2)
    pairs = list(zip(targets, variants, strict=True))
    runs = each(lambda pair: _fingerprint(*pair), pairs, at_once, "nectar-demo")
    baseline = runs[0].get("fingerprint")
    judged = [(variant, run, baseline, targets[0], target) for (target, variant), run in zip(pairs, runs, strict=True)]
    return each(lambda one: _judge(*one), judged, at_once, "nectar-demo")


def _write(folder: Path, number: int, variant: Variant) -> str:
    """Writes the program of a variant into a folder of its own; returns the target to fingerprint."""
    home = folder / f"{number:02d}"
    home.mkdir()
    for name, text in source_of(variant).items():
        (home / name).write_text(text, encoding="utf-8")
    return f"{home / variant.file}:{variant.function}"


def _fingerprint(target: str, variant: Variant) -> dict[str, Any]:
    return _nectar("fingerprint", target, "--json", environment=variant.environment)


def _judge(variant: Variant, run: dict[str, Any], baseline: str | None, first: str, second: str) -> Outcome:
    """What became of one variant; where it differs, with the words of `nectar why`."""
    fingerprint = run.get("fingerprint")
    if fingerprint is None:
        error = run.get("error", {})
        refused = "refusals" in error
        words = "\n".join(f"{r['place']} {r['reason']}" for r in error.get("refusals", ())) or str(error.get("message"))
        return _outcome(variant, "refused" if refused else "failed", None, words)
    if fingerprint == baseline:
        return _outcome(variant, "same", fingerprint, "")
    words = str(_nectar("why", first, second, "--json").get("explanation", ""))
    return _outcome(variant, "different", fingerprint, words)


def _outcome(variant: Variant, found: str, fingerprint: str | None, words: str) -> Outcome:
    if found == variant.promised and variant.named not in words:
        found, words = "failed", f"the reason does not name {variant.named!r}: {words or 'nothing was said'}"
    return Outcome(variant.title, variant.promised, found, fingerprint, words)


def _nectar(*arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON object that a `nectar` command prints in a fresh interpreter."""
    search = [str(Path(entry).resolve()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    settings = {"PYTHONPATH": os.pathsep.join(search), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    command = [sys.executable, "-P", "-m", "nectar.cli", *arguments]
    try:
        # The current folder must not matter to the program, so the interpreter starts somewhere else.
        done = subprocess.run(
            command,
            env={**os.environ, **settings},
            cwd=tempfile.gettempdir(),
            capture_output=True,
            encoding="utf-8",
            timeout=TIME_LIMIT,
            check=False,
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": {"message": f"no answer within {TIME_LIMIT} s"}}
    except json.JSONDecodeError:
        return {"error": {"message": done.stderr.strip()[-300:] or "no answer"}}
    return answer if isinstance(answer, dict) else {"error": {"message": "an answer that is no object"}}


# telling


def _print_story(outcomes: list[Outcome]) -> None:
    baseline, *rest = outcomes
    click.echo("A fingerprint stands for everything a function computes with: its own code, the functions it calls,")
    click.echo("the values they read. This program adds up orders; `turnover` calls a helper two modules away:\n")
    click.echo(textwrap.indent(source_of(BASELINE)[BASELINE.file], "    "))
    click.echo(f"    turnover  {(baseline.fingerprint or 'none')[:SHOWN_DIGITS]}...\n")
    if not baseline.kept:
        _print_row(baseline)
    _print_part("Not seen by the computation, so the fingerprint stays:", "same", rest)
    _print_part("Another computation, so another fingerprint; `nectar why` says what changed:", "different", rest)
    _print_part("Reads what a fingerprint cannot see, so it is refused, with the reason:", "refused", rest)
    if all(outcome.kept for outcome in outcomes):
        click.echo(f"All {len(rest)} as promised. Try it on your own code: nectar fingerprint path/to/file.py:function")


def _print_part(heading: str, promised: str, outcomes: list[Outcome]) -> None:
    click.secho(heading, bold=True)
    for outcome in outcomes:
        if outcome.promised == promised:
            _print_row(outcome)
    click.echo()


def _print_row(outcome: Outcome) -> None:
    found = click.style(f"{outcome.found:<10}", fg=COLOURS.get(outcome.found, "red"))
    mark = "" if outcome.kept else click.style(f"  promised: {outcome.promised}", fg="red")
    digits = f"{outcome.fingerprint[:SHOWN_DIGITS]}..." if outcome.fingerprint else "-"
    click.echo(f"  {outcome.title:<48} {found} {digits}{mark}")
    for line in outcome.words.splitlines():
        click.echo(click.style(f"      {line}", dim=True))
