"""`nectar mount`: names as files below a folder."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.cli.failure import reported
from nectar.cli.opened import common_options, print_json, settings_of
from nectar.cli.terminal import echo
from nectar.errors import MissingExtraError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@common_options
def mount(folder: Path, home: Path | None, as_json: bool) -> None:
    """Show named results as files below a folder, read-only, until it is unmounted or the command is interrupted.

    Needs FUSE, and the extra `mount`: pip install 'nectar-data[mount]'.
    """
    with reported(as_json, folder=str(folder)):
        settings = settings_of(home)
        try:
            from nectar.datasets.mount import mount as mount_names
        except ImportError as error:
            raise MissingExtraError("fsspec", "mount") from error
        if as_json:
            print_json({"folder": str(folder), "home": str(settings.home)})
        else:
            echo(f"names of {settings.home} are below {folder}, until Ctrl-C", err=True)
        mount_names(folder, str(settings.home), settings.store)
