"""`nectar forget`: what names a file, a person or a text goes for good; with --apply, it is gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from nectar.cli.opened import common_options, number_of, opened, print_json, short
from nectar.cli.terminal import echo, secho
from nectar.model.forgetting import Asked, Forgotten
from nectar.store.inputs.address import address_of

_SHOWN: Final = 10  # of each kind
_SHORTEST: Final = 4  # characters of a text: a shorter one is in almost everything


@click.command()
@click.option("--file", "files", multiple=True, help="A path or URL, or a folder: results that were made from it go.")
@click.option("--person", "people", multiple=True, help="A user, or user@machine: results stay, and nobody made them.")
@click.option("--text", "texts", multiple=True, help="Any text, also within words: a password, an address, a name.")
@click.option("--apply", is_flag=True, help="Delete for good; without it, only say what would be deleted.")
@common_options
def forget(
    files: tuple[str, ...], people: tuple[str, ...], texts: tuple[str, ...], apply: bool, home: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Delete for good what names a file, a person or a text, out of everything that Nectar has written down.

    Results that hold a text, or were made from a file, go with everything made from them, pinned or not; so do
    recipes, provenance, histories, names and what is known of programs. Nothing of it is left in the files of the
    home. It cannot reach backups, snapshots of a disk, earlier versions of objects in a remote store, and what other
    programs wrote.
    """
    if not (files or people or texts):
        raise click.UsageError("say what is to be forgotten: --file, --person or --text")
    for text in (*people, *texts):
        if len(text) < _SHORTEST and text not in people:
            raise click.UsageError(f"{text!r} is in almost everything: give at least {_SHORTEST} characters")
    asked = Asked(tuple(dict.fromkeys(each for file in files for each in _addresses(file))), people, texts)
    with opened(home, as_json, writing=apply) as (catalog, settings):
        done = Forgotten()
        if catalog is not None:
            from nectar.catalog.forget import forget as forget_in

            done = forget_in(catalog, settings.home, asked, apply=apply)
        if as_json:
            print_json({"home": str(settings.home), "applied": apply, **_record(done)})
        else:
            _print(done, apply, texts)
        if apply and done.left:
            raise SystemExit(1)


def _addresses(file: str) -> tuple[str, ...]:
    """A file as it is on record, and as it was written."""
    return (address_of(file).url, file) if "://" in file else (os.path.abspath(file),)


def _record(done: Forgotten) -> dict[str, object]:
    return {
        "rows": done.rows,
        "results": [key.hex() for key in done.keys],
        "damaged": [key.hex() for key in done.damaged],
        "names": list(done.names),
        "files": list(done.files),
        "left": list(done.left),
    }


def _print(done: Forgotten, applied: bool, texts: tuple[str, ...]) -> None:
    verb = "gone" if applied else "to go"
    for title, items in (
        (f"{number_of(len(done.keys), 'result')} {verb}", [short(key) for key in done.keys]),
        (f"{number_of(len(done.damaged), 'damaged result')} {verb}: nobody can tell", list(map(short, done.damaged))),
        (f"{number_of(len(done.names), 'name')} with versions {verb}", list(done.names)),
        (f"{number_of(len(done.files), 'file')} {verb}", list(done.files)),
        (
            f"{number_of(sum(done.rows.values()), 'row')} {verb}",
            [f"{n:,} of {table}" for table, n in done.rows.items()],
        ),
    ):
        if items:
            secho(title, bold=True)
            for each in items[:_SHOWN]:
                echo(f"  {each}")
            if len(items) > _SHOWN:
                echo(f"  and {len(items) - _SHOWN:,} more")
    if done.left:
        secho("Left:" if applied else "Out of reach:", bold=True)
        for each in done.left:
            echo(f"  {each}")
    if not done:
        echo("Nothing is known of it.")
    elif applied:
        echo("It is forgotten." if not done.left else "The rest is forgotten.")
    else:
        if texts:
            echo("A text is looked for wherever it stands, also within a longer word.")
        echo("Nothing was deleted: --apply does it.")
