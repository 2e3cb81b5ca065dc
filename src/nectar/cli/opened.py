"""What the commands of the catalog have in common: which one is meant, which entry is meant, how things are put.

In: what a person typed. Out: an open catalog, an entry, text. Nothing is made by looking: a home without a catalog is
an empty one.
"""

from __future__ import annotations

import json
import os
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from nectar.catalog.embedded import INDEX, open_catalog
from nectar.catalog.service import Catalog
from nectar.cli.failure import Failure, reported
from nectar.cli.terminal import echo, secho
from nectar.datasets.reference import chosen, parsed
from nectar.model.entry import Entry, Name
from nectar.quantities import show_duration
from nectar.settings import Settings, load_settings
from nectar.trust.home import opened as opened_home

_Command = TypeVar("_Command", bound=Callable[..., Any])
SHOWN_DIGITS: Final = 12  # of a key; enough to tell a million entries apart
_SHOWN_MATCHES: Final = 5
_HEX: Final = frozenset(string.hexdigits)


def common_options(command: _Command) -> _Command:
    """Adds --home and --json."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path, readable=False),
        help="Folder of the catalog, instead of NECTAR_HOME or the default.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    return home(as_json(command))


def settings_of(home: Path | None) -> Settings:
    """The settings in force, with the home that was given."""
    return load_settings({} if home is None else {"home": home})


@contextmanager
def opened(
    home: Path | None, as_json: bool, *, writing: bool = False, **context: object
) -> Iterator[tuple[Catalog | None, Settings]]:
    """The catalog and the settings, or None where there is no catalog yet. Errors inside the block end the command."""
    with reported(as_json, **context):
        settings = settings_of(home)
        path = settings.home / INDEX
        if not os.path.exists(path):
            opened_home(settings.home, reading=True)  # there is none, or this user may not look
            yield None, settings
            return
        catalog = open_catalog(settings, alone_if_full=writing)
        try:
            if writing and catalog.read_only:
                why = "the setting read_only says so" if settings.read_only else "you have no right to write there"
                raise Failure(f"the catalog in {settings.home} may only be read: {why}")
            yield catalog, catalog.settings or settings
        finally:
            catalog.close()


def entry_meant(catalog: Catalog | None, text: str, home: Path) -> Entry:
    """The one entry whose key begins with these digits, or that a name points to."""
    bound, entry = result_meant(catalog, text, home)
    if entry is None:
        assert bound is not None  # or there would be an entry
        raise Failure(
            f"the name {text!r} points to {bound.key.hex()}, which is not kept any more: `nectar rebuild {text}` makes "
            "it again"
        )
    return entry


def result_meant(catalog: Catalog | None, text: str, home: Path) -> tuple[Name | None, Entry | None]:
    """The version of a name, and its entry if it is kept; or the one entry whose key begins with these digits."""
    if catalog is None:
        raise Failure(f"there is no catalog in {home} yet, so nothing is kept under {text!r}")
    bound = name_meant(catalog, text)
    if bound is not None:
        return bound, catalog.index.lookup([bound.key]).get(bound.key)
    digits = text.lower()
    found = catalog.index.find(digits) if digits and set(digits) <= _HEX and len(digits) <= 64 else []
    if len(found) > 1:
        raise Failure(_ambiguous(digits, found))
    if not found:
        raise Failure(f"no key begins with {text!r}, and it is no name: `nectar ls` shows what is there")
    return None, found[0]


def name_meant(catalog: Catalog, text: str) -> Name | None:
    """The version that a name, or a name with a version behind an @, stands for; None if there is no such name."""
    name = text.partition("@")[0]
    history = catalog.index.history(name)
    return chosen(parsed(text), history) if history else None


def _ambiguous(digits: str, found: Sequence[Entry]) -> str:
    keys = [entry.key.hex() for entry in found]
    shown = ", ".join(key[: max(len(digits) + 1, SHOWN_DIGITS)] for key in keys[:_SHOWN_MATCHES])
    more = f" and {len(keys) - _SHOWN_MATCHES} more" if len(keys) > _SHOWN_MATCHES else ""
    return f"{len(keys)} keys begin with {digits!r}: {shown}{more}. Write more digits"


# how things are put


def print_json(record: object) -> None:
    """One JSON object on stdout."""
    echo(json.dumps(record))


def short(key: bytes) -> str:
    """The first digits of a key."""
    return key.hex()[:SHOWN_DIGITS]


def kind_of(entry: Entry) -> str:
    """What a result is, for people."""
    return "table" if entry.is_table else "object"


def ago(then: float, now: float) -> str:
    """How long ago, roughly."""
    seconds = now - then
    return "just now" if seconds < 2 else f"{rough(seconds)} ago"


def rough(seconds: float) -> str:
    """A duration in one unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:,.0f} {unit}"
    return show_duration(seconds)


def number_of(count: int, noun: str, plural: str = "") -> str:
    """A count and its noun."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[int]) -> None:
    """Columns under their heads; those in `left` begin at the left, the others end at the right."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    secho(line(heads), bold=True)
    for row in rows:
        echo(line(row))


def record_of(entry: Entry, now: float) -> dict[str, object]:
    """An entry as JSON has it."""
    return {
        "key": entry.key.hex(),
        "about": entry.about,
        "program": entry.program.hex(),
        "kind": kind_of(entry),
        "rows": entry.rows if entry.is_table else None,
        "size": entry.size,
        "files": entry.files,
        "seconds": entry.seconds,
        "hits": entry.hits,
        "producer": entry.producer,
        "created": entry.created,
        "used": entry.used,
        "pinned": entry.pinned,
        "new": entry.protected > now,
        "rebuildable": entry.rebuildable,
    }
