"""`nectar explain`: a program is run, and what becomes of each of its queries is told on stderr."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from nectar.cli.running import explain_queries, program_of, run_to_its_end
from nectar.report.explanation import QueryExplanation


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each query, a line each.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS...]")
def explain(module: str | None, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Run a program, and show for each of its queries what is reused, what is computed, and why.

    A program needs its results to go on, so it is run as with `nectar run`. The trees go to stderr.
    """
    program = program_of(module, arguments)
    explain_queries(_record if as_json else str)
    run_to_its_end(program, {})


def _record(explanation: QueryExplanation) -> str:
    return json.dumps({**asdict(explanation), "seconds_saved": explanation.seconds_saved})
