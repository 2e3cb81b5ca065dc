"""`nectar rebuild`: a deleted result is made again by its recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from nectar.catalog.service import Catalog
from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, entry_meant, opened, print_json, short
from nectar.quantities import show_duration, show_size
from nectar.recipes.rebuild import Rebuilt, rebuilt
from nectar.recipes.recipe import is_known
from nectar.settings import Settings

_DIGITS: Final = 64  # of a whole key


@click.command()
@click.argument("key", metavar="NAME_OR_KEY")
@click.option(
    "--allow-environment-change", "allow", is_flag=True, help="Also with other versions of Python, Polars or packages."
)
@common_options
def rebuild(key: str, allow: bool, home: Path | None, as_json: bool) -> None:
    """Make a deleted result again, by the recipe that is kept with it.

    NAME_OR_KEY is a name, or a key: the whole of it if the result is gone. It runs in a process of its own, without
    your source files; what it reads must still be what it was.
    """
    with opened(home, as_json, writing=True, asked=key) as (catalog, settings):
        found = _key_meant(catalog, key, settings)
        assert catalog is not None  # or there would be no key
        done = rebuilt(catalog, found, settings, allow_environment_change=allow)
        if as_json:
            print_json(_record(done))
        else:
            _print(done)
        if done.difference and not done.expected:
            raise SystemExit(1)


def _key_meant(catalog: Catalog | None, text: str, settings: Settings) -> bytes:
    """The key of a name or of a recipe, whether its result is there or not."""
    if catalog is not None:
        name = catalog.index.resolve(text)
        if name is not None:
            return name.key
        try:
            key = bytes.fromhex(text) if len(text) == _DIGITS else b""
        except ValueError:
            key = b""
        if key and is_known(catalog, key):
            return key
    try:
        return entry_meant(catalog, text, settings.home).key
    except Failure as failure:
        raise Failure(
            f"{failure.message}; a result that was deleted is known by its name or its whole key"
        ) from failure


def _record(done: Rebuilt) -> dict[str, object]:
    return {
        "key": done.entry.key.hex(),
        "rebuilt": done.made,
        "about": done.entry.about,
        "rows": done.entry.rows,
        "size": done.entry.size,
        "seconds": done.seconds,
        "difference": done.difference,
        "difference_expected": done.expected,
        "environment_changes": list(done.changes),
    }


def _print(done: Rebuilt) -> None:
    what = f"{short(done.entry.key)} ({done.entry.about})"
    if not done.made:
        click.echo(f"{what} is there: nothing had to be rebuilt")
        return
    size = f"{done.entry.rows:,} rows, {show_size(done.entry.size)}"
    click.echo(f"{what} was rebuilt in {show_duration(done.seconds)}: {size}")
    for change in done.changes:
        click.echo(f"allowed: {change}")
    if done.difference:
        click.echo(f"but {done.difference}", err=True)
