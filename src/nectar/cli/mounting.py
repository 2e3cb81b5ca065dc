"""`nectar mount`: names as files below a folder."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.cli.opened import common_options, opened, print_json


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@common_options
def mount(folder: Path, home: Path | None, as_json: bool) -> None:
    """Show named results as files below a folder, read-only, until it is unmounted or the command is interrupted.

    Needs FUSE, and the extra `mount`: pip install 'nectar-data[mount]'.
    """
    with opened(home, as_json) as (_, settings):
        pass
    from nectar.datasets.mount import mount as mount_names

    with opened(home, as_json, folder=str(folder)):
        if as_json:
            print_json({"folder": str(folder), "home": str(settings.home)})
        else:
            click.echo(f"names of {settings.home} are below {folder}, until Ctrl-C", err=True)
        mount_names(folder, str(settings.home), settings.store)
