"""`nectar demo`: see what Nectar does, on programs that come with it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Final

import click

# Each has run(as_json), which raises Failure if what it shows is not as promised.
DEMOS: Final = {
    "polars": "nectar.cli.demos.polars",
    "memo": "nectar.cli.demos.memo",
    "fingerprints": "nectar.cli.demos.fingerprints",
}


@click.command()
@click.argument("topic", type=click.Choice(list(DEMOS)), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(topic: str | None, as_json: bool) -> None:
    """Show what Nectar does, in under a minute.

    TOPIC is polars (a program over a log of clicks; the default where Polars is installed), memo (functions whose
    results are kept) or fingerprints (what changes one, what does not).
    """
    if topic is None:
        topic = "memo" if importlib.util.find_spec("polars") is None else "polars"
    importlib.import_module(DEMOS[topic]).run(as_json)
