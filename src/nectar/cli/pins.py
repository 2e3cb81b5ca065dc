"""`nectar pin` and `nectar unpin`: what stays whatever happens."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, entry_meant, opened, print_json, short
from nectar.cli.terminal import echo


@click.command()
@click.argument("key")
@common_options
def pin(key: str, home: Path | None, as_json: bool) -> None:
    """Protect a result from eviction.

    KEY is the beginning of a key, long enough to mean one entry, or a name.
    """
    _set(key, True, home, as_json)


@click.command()
@click.argument("key")
@common_options
def unpin(key: str, home: Path | None, as_json: bool) -> None:
    """Protect a result no longer.

    KEY is the beginning of a key, long enough to mean one entry, or a name.
    """
    _set(key, False, home, as_json)


def _set(text: str, pinned: bool, home: Path | None, as_json: bool) -> None:
    with opened(home, as_json, writing=True, asked=text) as (catalog, settings):
        entry = entry_meant(catalog, text, settings.home)
        assert catalog is not None  # or there would be no entry
        if not catalog.pin(entry.key, pinned):
            raise Failure(f"{short(entry.key)} was evicted a moment ago")
        if as_json:
            print_json({"key": entry.key.hex(), "pinned": pinned, "changed": entry.pinned != pinned})
            return
        already = "already " if entry.pinned and pinned else ""
        echo(f"{short(entry.key)} is {already}pinned" if pinned else f"{short(entry.key)} is not pinned")
