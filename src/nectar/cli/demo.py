"""`nectar demo`: see what Nectar does, on programs that come with it."""

from __future__ import annotations

import importlib
from typing import Final

import click

# Each has run(as_json), which raises Failure if what it shows is not as promised.
DEMOS: Final = {
    "memo": "nectar.cli.demos.memo",
    "fingerprints": "nectar.cli.demos.fingerprints",
}


@click.command()
@click.argument("topic", type=click.Choice(list(DEMOS)), default="memo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(topic: str, as_json: bool) -> None:
    """Show what Nectar does, in under a minute.

    TOPIC is memo (functions whose results are kept; the default) or fingerprints (what changes one, what does not).
    """
    importlib.import_module(DEMOS[topic]).run(as_json)
