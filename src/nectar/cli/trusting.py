"""`nectar trust`: consent to what a settings file asks for. `nectar init`: a home, and who shares it."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.catalog.embedded import open_catalog
from nectar.cli.failure import Failure, reported
from nectar.cli.opened import common_options, print_json, settings_of
from nectar.cli.terminal import echo
from nectar.settings import settings_file
from nectar.store.store import local_root
from nectar.trust.consent import Asked
from nectar.trust.home import opened, share
from nectar.trust.people import KNOWN, group_called, group_named


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=Path())
@click.option("--revoke", is_flag=True, help="Consent no longer.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trust(path: Path, revoke: bool, as_json: bool) -> None:
    """Consent to what a settings file asks for.

    PATH is the file, or the folder where programs run; left out: this folder. Settings that move the home or the store,
    or weaken what is looked at, count only with your consent. It holds until the file asks for something else.
    """
    with reported(as_json, path=str(path)):
        found = settings_file(path)
        if found is None:
            raise Failure(f"there is no settings file that counts for {path}: nothing asks for consent")
        asked = Asked(found.path, found.needing_consent)
        if revoke:
            asked.withdraw()
        elif asked.values:
            asked.agree()
            if not asked.agreed:
                raise Failure("your consent cannot be remembered: others may write to your configuration folder")
        if as_json:
            print_json({"file": str(asked.file), "settings": dict(asked.values), "trusted": asked.agreed})
        else:
            _print(asked, revoke)


def _print(asked: Asked, revoke: bool) -> None:
    if not asked.values:
        echo(f"{asked.file} asks for nothing that needs consent")
        return
    echo(f"{asked.file} is {'no longer ' if revoke else ''}trusted with")
    for name, value in asked.values.items():
        echo(f"  {name} = {value!r}")
    if not revoke and {"home", "store"} & asked.values.keys():
        echo("whoever can write there, or has written there before, can run code as you")


@click.command()
@click.option("--shared-by", "group", metavar="GROUP", help="All members of this group use it, and trust each other.")
@click.option("--read-only", is_flag=True, help="Members may read what is in it, and not keep or delete anything.")
@common_options
def init(group: str | None, read_only: bool, home: Path | None, as_json: bool) -> None:
    """Make a home: private, or shared by a group.

    A home is made by itself when it is first needed, and then nobody else may look into it. With --shared-by, members
    of the group find, keep and delete results in it, yours included. Results may hold pickles, which run code when
    they are opened: whoever uses a shared home trusts all members of the group as much as themselves.
    """
    with reported(as_json):
        settings = settings_of(home)
        number = None if group is None else _number_of(group)
        if read_only and number is None:
            raise click.UsageError("--read-only says what the members of a group may do: name it with --shared-by")
        if number is not None:
            share(settings.home.absolute(), number, writing=not read_only)
            if root := local_root(settings.store):
                share(Path(root).absolute(), number, writing=not read_only, store=True)
        open_catalog(settings).close()
        shared = opened(settings.home).access.group
        if as_json:
            print_json({"home": str(settings.home), "group": shared, "read_only": read_only})
        else:
            whose = "nobody else may look into it" if shared is None else f"shared by {group_called(shared)}"
            echo(f"{settings.home}: {whose}")


def _number_of(group: str) -> int:
    number = group_named(group) if KNOWN else None
    if number is None:
        raise Failure(f"there is no group {group!r} on this machine")
    return number
