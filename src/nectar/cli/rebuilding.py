"""`nectar rebuild`: a deleted result is made again by its recipe."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.catalog.service import Catalog
from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, entry_meant, name_meant, opened, print_json, short
from nectar.cli.terminal import echo
from nectar.quantities import show_duration, show_size
from nectar.recipes.rebuild import Rebuilt, rebuilt
from nectar.settings import Settings


@click.command()
@click.argument("key", metavar="NAME_OR_KEY")
@click.option(
    "--allow-environment-change", "allow", is_flag=True, help="Also with other versions of Python, Polars or packages."
)
@common_options
def rebuild(key: str, allow: bool, home: Path | None, as_json: bool) -> None:
    """Make a deleted result again, by the recipe that is kept with it.

    NAME_OR_KEY is a name, a name with a version (team/top_urls@2), or the beginning of a key. It runs in a process of
    its own, without your source files; what it reads must still be what it was. Named results that it is made from are
    rebuilt first, if they are gone as well.
    """
    with opened(home, as_json, writing=True, asked=key) as (catalog, settings):
        found = _key_meant(catalog, key, settings)
        assert catalog is not None  # or there would be no key
        done = rebuilt(catalog, found, settings, allow_environment_change=allow)
        if as_json:
            print_json(_record(done))
        else:
            _print(done, key)
        if done.difference and not done.expected:
            raise SystemExit(1)


def _key_meant(catalog: Catalog | None, text: str, settings: Settings) -> bytes:
    """The key of a name or of a recipe, whether its result is there or not."""
    if catalog is not None:
        name = name_meant(catalog, text)
        if name is not None:
            return name.key
        made = catalog.index.find_made(text.lower())
        if len(made) == 1:
            return made[0]
        if len(made) > 1:
            raise Failure(f"{len(made)} keys begin with {text!r}: write more digits")
    return entry_meant(catalog, text, settings.home).key


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


def _print(done: Rebuilt, asked: str) -> None:
    key = short(done.entry.key)
    called = f"{key} (" if done.entry.key.hex().startswith(asked.lower()) else f"{asked} ({key}, "
    what = f"{called}{done.entry.about})"
    if not done.made:
        echo(f"{what} is there: nothing had to be rebuilt")
        return
    size = f"{done.entry.rows:,} rows, {show_size(done.entry.size)}"
    echo(f"{what} was rebuilt in {show_duration(done.seconds)}: {size}")
    for change in done.changes:
        echo(f"allowed: {change}")
    if done.difference:
        echo(f"but {done.difference}", err=True)
