"""`nectar show`: everything about one entry. Looking at a result is no use of it, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from nectar.catalog import state
from nectar.catalog.service import Catalog
from nectar.cli.opened import (
    ago,
    common_options,
    kind_of,
    number_of,
    opened,
    print_json,
    record_of,
    result_meant,
    rough,
    short,
)
from nectar.cli.outlook import Outlook
from nectar.cli.terminal import echo, secho
from nectar.datasets.reference import shown
from nectar.model.entry import Entry, Lease, Name
from nectar.quantities import show_duration, show_size
from nectar.recipes.recipe import can_be_run, recipes_of
from nectar.store.problem import Damaged, Gone
from nectar.store.read import Result

_SHOWN_COLUMNS: Final = 30


@dataclass(frozen=True, slots=True)
class Content:
    """What lies in the store. problem: empty if it is whole as far as lengths and ends tell."""

    columns: tuple[tuple[str, str], ...]
    paths: tuple[str, ...]
    problem: str = ""


@click.command()
@click.argument("key")
@common_options
def show(key: str, home: Path | None, as_json: bool) -> None:
    """Show everything about one entry.

    KEY is the beginning of a key, long enough to mean one entry, or a name.
    """
    with opened(home, as_json, asked=key) as (catalog, settings):
        bound, entry = result_meant(catalog, key, settings.home)
        assert catalog is not None  # or there would be nothing to show
        if entry is None:
            assert bound is not None  # or there would be an entry
            _show_deleted(catalog, bound, as_json)
            return
        now = catalog.clock.now()
        content = _content(catalog, entry)
        leases = [lease for lease in catalog.index.leases() if entry.location and lease.location == entry.location]
        names = [name for name in catalog.index.names() if name.key == entry.key]
        history = catalog.index.history(bound.name) if bound else []
        outlook = Outlook(catalog)
        goes, why = outlook.goes(entry), outlook.told(entry)
        if as_json:
            record = _record(entry, content, leases, names, goes, why, now)
            print_json({**record, "history": [_version(name) for name in history]})
        else:
            _print(entry, content, state.live(leases, now), names, why, now)
            _print_history(history)


def _show_deleted(catalog: Catalog, bound: Name, as_json: bool) -> None:
    """What is on record of a named result that is not kept any more."""
    made = catalog.index.made([bound.key]).get(bound.key)
    history = catalog.index.history(bound.name)
    if as_json:
        record = None if made is None else {"about": made.about, "by": made.by, "at": made.at, "seconds": made.seconds,
                                            "rows": made.rows, "size": made.size, "site": made.site}  # fmt: skip
        print_json({"key": bound.key.hex(), "kept": False, "made": record,
                    "rebuildable": can_be_run(catalog, bound.key),
                    "history": [_version(name) for name in history]})  # fmt: skip
        return
    echo(f"{'key':<9} {bound.key.hex()}")
    echo(f"{'result':<9} deleted to make room")
    back = "comes back when it is read, or by `nectar rebuild`, if its inputs are what they were"
    echo(f"{'rebuild':<9} {back if can_be_run(catalog, bound.key) else _why_not(catalog, bound.key)}")
    if made is not None:
        echo(f"{'what':<9} {made.about}")
        echo(f"{'made':<9} by {made.by or 'somebody'}, in {show_duration(made.seconds)}, {made.site}")
        echo(f"{'was':<9} {number_of(made.rows, 'row')}, {show_size(made.size)}")
    _print_history(history)


def _why_not(catalog: Catalog, key: bytes) -> str:
    """Why a deleted result does not come back by itself."""
    reasons = [reason for written in recipes_of(catalog, key) for reason in written.recipe.refusals]
    return f"not possible: {'; '.join(dict.fromkeys(reasons)) or 'nothing is known about how it was made'}"


def _version(name: Name) -> dict[str, object]:
    return {"version": name.version, "key": name.key.hex() or None, "since": name.since, "by": name.by,
            "note": name.note}  # fmt: skip


def _print_history(history: list[Name]) -> None:
    if not history:
        return
    echo("versions")
    for name in history:
        what = "removed" if name.removed else short(name.key)
        note = f": {name.note}" if name.note else ""
        echo(f"  {name.version}  {shown(name.since)}  {what}  {name.by or 'somebody'}{note}")


def _content(catalog: Catalog, entry: Entry) -> Content:
    opened_result = catalog.store.for_looking().open(entry, verify="length")
    if isinstance(opened_result, Gone):
        return Content((), (), f"missing: {opened_result.reason}")
    if isinstance(opened_result, Damaged):
        return Content((), (), f"damaged: {opened_result.reason} ({opened_result.part})")
    assert isinstance(opened_result, Result)
    with opened_result:
        return Content(tuple((column.name, column.type) for column in opened_result.schema), opened_result.paths)


# how it is put


def _record(
    entry: Entry, content: Content, leases: list[Lease], names: list[Name], goes: bool, why: str, now: float
) -> dict[str, object]:
    return {
        **record_of(entry, now),
        "protected": entry.protected,
        "location": entry.location or None,
        "inline": entry.inline is not None,
        "paths": list(content.paths),
        "schema": [{"name": name, "type": kind} for name, kind in content.columns],
        "problem": content.problem or None,
        "signed": bool(entry.signature),
        "recipe": entry.recipe.hex() if entry.recipe else None,
        "spans": [{"first": s.first.hex(), "last": s.last.hex(), "count": s.count} for s in entry.spans],
        "leases": [{"holder": lease.who, "until": lease.until, "holds": lease.until > now} for lease in leases],
        "names": [name.name for name in names],
        "evicted_next": goes,
        "eviction": why,
    }


def _print(entry: Entry, content: Content, held: list[Lease], names: list[Name], why: str, now: float) -> None:
    rows = f", {number_of(entry.rows, 'row')}" if entry.is_table else ""
    where = "in the catalog itself" if entry.inline is not None else f"in {number_of(entry.files, 'file')}"
    lines = [
        ("key", entry.key.hex()),
        *([("what", entry.about)] if entry.about else []),
        ("program", entry.program.hex()),
        ("result", f"{kind_of(entry)}{rows}, {show_size(entry.size)} {where}"),
        ("made", f"{ago(entry.created, now)} by {entry.producer or 'somebody'}, in {show_duration(entry.seconds)}"),
        ("used", f"{number_of(entry.hits, 'time')}, last {ago(entry.used, now)}" if entry.hits else "never yet"),
        ("recipe", entry.recipe.hex() if entry.recipe else "none"),
        ("rebuild", "possible" if entry.rebuildable else "not possible: an input is gone, or was not a file"),
        ("eviction", why),
    ]  # fmt: skip
    lines += [("name", f"{name.name}, version {name.version}, bound {ago(name.since, now)}") for name in names]
    lines += [("lease", f"{lease.who}, for another {rough(lease.until - now)}") for lease in held]
    lines += [("inputs", f"{number_of(span.count, 'extent')}") for span in entry.spans]
    for head, text in lines:
        echo(f"{head:<9} {text}")
    if content.problem:
        secho(f"problem   {content.problem}; `nectar check --repair` mends it", fg="red")
    for path in content.paths:
        echo(f"{'file':<9} {path}")
    if content.columns:
        echo("columns")
        width = max(len(name) for name, _ in content.columns[:_SHOWN_COLUMNS])
        for name, kind in content.columns[:_SHOWN_COLUMNS]:
            echo(f"  {name:<{width}}  {kind}")
        if len(content.columns) > _SHOWN_COLUMNS:
            echo(f"  and {len(content.columns) - _SHOWN_COLUMNS:,} more")
