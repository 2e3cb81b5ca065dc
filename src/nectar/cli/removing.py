"""`nectar rm`: a name is taken away. The data stays, until it is worth less than something else."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, opened, print_json
from nectar.cli.terminal import echo


@click.command()
@click.argument("name")
@click.option("--note", default="", help="Why, for those who look for it later.")
@common_options
def rm(name: str, note: str, home: Path | None, as_json: bool) -> None:
    """Take a name away, and not the data it points to.

    Its versions stay on record and can be had as NAME@VERSION.
    """
    with opened(home, as_json, writing=True, asked=name) as (catalog, settings):
        bound = None if catalog is None else catalog.index.resolve(name)
        if catalog is None or bound is None or not catalog.unbind(name, note):
            raise Failure(f"there is no name {name!r} in {settings.home}: `nectar ls --names` shows those there are")
        if as_json:
            print_json({"name": name, "removed": True})
        else:
            kept = "is still kept, and " if catalog.index.lookup([bound.key]) else ""
            echo(f"{name} points to nothing now; what it pointed to {kept}can be had as {name}@{bound.version}")
