"""`nectar ls`: what is kept."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
from msgspec.structs import asdict

from nectar.catalog.service import Catalog
from nectar.catalog.state import Candidate
from nectar.cli.opened import (
    ago,
    common_options,
    kind_of,
    number_of,
    opened,
    print_json,
    print_table,
    record_of,
    short,
)
from nectar.cli.outlook import Outlook
from nectar.cli.terminal import echo
from nectar.model.entry import Entry, Name
from nectar.model.lineage import Made
from nectar.quantities import show_duration, show_size

_ORDERS: Final[dict[str, Callable[[Candidate], float]]] = {
    "used": lambda candidate: candidate.used,
    "size": lambda candidate: candidate.size,
    "cost": lambda candidate: candidate.seconds,
}
_LIMIT: Final = 40  # what fits on a screen
_WIDTH: Final = 60


@click.command()
@click.option("--names", "only_names", is_flag=True, help="List names and what they point to, instead of entries.")
@click.option("--sort", type=click.Choice(list(_ORDERS)), default="used", show_default=True,
              help="Latest use, largest size, or longest time to make first.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=_LIMIT, show_default=True, help="0 shows everything.")
@common_options
def ls(only_names: bool, sort: str, limit: int, home: Path | None, as_json: bool) -> None:
    """List what is kept."""
    with opened(home, as_json) as (catalog, settings):
        if catalog is None:
            if as_json:
                print_json({"home": str(settings.home), "names" if only_names else "entries": [], "total": 0})
            else:
                echo(f"Nothing is kept yet: there is no catalog in {settings.home}")
        elif only_names:
            _list_names(catalog, limit, as_json, str(settings.home))
        else:
            _list_entries(catalog, sort, limit, as_json, str(settings.home))


def _list_entries(catalog: Catalog, sort: str, limit: int, as_json: bool, home: str) -> None:
    now, usage = catalog.clock.now(), catalog.usage()
    entries = _first(catalog, _ORDERS[sort], limit or usage.entries)
    names, outlook = _names_by_key(catalog), Outlook(catalog)
    if as_json:
        records = [
            {
                **record_of(entry, now),
                "names": [name.name for name in names.get(entry.key, ())],
                "evicted_next": outlook.goes(entry),
                "eviction": outlook.told(entry),
            }
            for entry in entries
        ]
        print_json({"home": home, "entries": records, "total": usage.entries, "size": usage.size})
        return
    if not entries:
        echo(f"Nothing is kept in {home}{_but_names(catalog)}")
        return
    rows = [_row(entry, names.get(entry.key, []), outlook, now) for entry in entries]
    heads = ("KEY", "KIND", "ROWS", "SIZE", "MADE IN", "USED", "LAST USE", "BY", "TO GO", "")
    print_table(heads, rows, frozenset((0, 1, 7, 8, 9)))
    limited = catalog.collector.budget.size
    of = f" of {show_size(limited)}" if limited else ""
    echo(f"\n{number_of(usage.entries, 'entry', 'entries')}, {show_size(usage.size)}{of}, in {home}")
    if len(entries) < usage.entries:
        echo(f"{number_of(usage.entries - len(entries), 'more', 'more')}: --limit 0 shows all")


def _first(catalog: Catalog, order: Callable[[Candidate], float], limit: int) -> list[Entry]:
    """The first entries by an order; only these are read whole, so that a million others do not matter."""
    chosen = [each.key for each in heapq.nlargest(limit, catalog.index.candidates(), key=order)]
    found = catalog.index.lookup(chosen)
    return [found[key] for key in chosen if key in found]  # an entry may go while we look


def _names_by_key(catalog: Catalog) -> dict[bytes, list[Name]]:
    found: dict[bytes, list[Name]] = {}
    for name in catalog.index.names():
        found.setdefault(name.key, []).append(name)
    return found


def _row(entry: Entry, names: list[Name], outlook: Outlook, now: float) -> tuple[str, ...]:
    return (
        short(entry.key),
        kind_of(entry),
        f"{entry.rows:,}" if entry.is_table else "-",
        show_size(entry.size),
        show_duration(entry.seconds),
        f"{entry.hits:,}x",
        ago(entry.used, now),
        entry.producer or "-",
        outlook.short(entry),
        ", ".join([*filter(None, [shortened(entry.about)]), *marks(entry, now), *(name.name for name in names)]),
    )


def shortened(about: str) -> str:
    """What was computed, as much of it as a listing has room for."""
    return about if len(about) <= _WIDTH else f"{about[: _WIDTH - 3]}..."


def marks(entry: Entry, now: float) -> list[str]:
    """What is special about an entry."""
    found = {
        "pinned": entry.pinned,
        "new": entry.protected > now,
        "cannot be rebuilt": not entry.rebuildable,
    }
    return [mark for mark, holds in found.items() if holds]


def _but_names(catalog: Catalog) -> str:
    count = len(catalog.index.names())
    if not count:
        return ""
    return f"; {number_of(count, 'name')} can still be had: `nectar ls --names`"


def _list_names(catalog: Catalog, limit: int, as_json: bool, home: str) -> None:
    names = catalog.index.names()
    shown = names[:limit] if limit else names
    keys = [name.key for name in shown]
    kept, made, outlook = catalog.index.lookup(keys), catalog.index.made(keys), Outlook(catalog)
    if as_json:
        records = [_name_record(name, kept.get(name.key), made.get(name.key), outlook) for name in shown]
        print_json({"home": home, "names": records, "total": len(names)})
        return
    if not names:
        echo(f"There are no names in {home}")
        return
    now = catalog.clock.now()
    rows = [_name_row(name, kept.get(name.key), made.get(name.key), outlook, now) for name in shown]
    heads = ("NAME", "KEY", "VERSION", "SINCE", "BY", "SIZE", "MADE IN", "USED", "LAST USE", "TO GO", "")
    print_table(heads, rows, frozenset((0, 1, 4, 9, 10)))
    if len(shown) < len(names):
        echo(f"{number_of(len(names) - len(shown), 'more', 'more')}: --limit 0 shows all")
    gone = sum(key not in kept for key in keys)
    if gone:
        echo(f"\n{gone:,} deleted to make room: made again when read, or by `nectar rebuild NAME`")


def _name_record(name: Name, entry: Entry | None, made: Made | None, outlook: Outlook) -> dict[str, object]:
    """A name as JSON has it. Of a deleted result, what it was."""
    known = entry or made
    return {
        **asdict(name),
        "key": name.key.hex(),
        "kept": entry is not None,
        "size": known.size if known else None,
        "rows": known.rows if known else None,
        "seconds": known.seconds if known else None,
        "hits": entry.hits if entry else None,
        "used": entry.used if entry else None,
        "evicted_next": outlook.goes(entry) if entry else None,
        "eviction": outlook.told(entry) if entry else None,
    }


def _name_row(name: Name, entry: Entry | None, made: Made | None, outlook: Outlook, now: float) -> tuple[str, ...]:
    """A name in a listing. Of a deleted result, what it was."""
    known = entry or made
    return (
        name.name, short(name.key), str(name.version), ago(name.since, now), name.by or "-",
        show_size(known.size) if known else "-", show_duration(known.seconds) if known else "-",
        f"{entry.hits:,}x" if entry else "-", ago(entry.used, now) if entry else "-",
        outlook.short(entry) if entry else "deleted", name.note,
    )  # fmt: skip
