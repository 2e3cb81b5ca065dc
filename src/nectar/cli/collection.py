"""`nectar gc`: what would be deleted, and with --apply, what was."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from nectar.catalog.collect import Collected
from nectar.catalog.service import Catalog
from nectar.cli.opened import common_options, number_of, opened, print_json, short
from nectar.cli.terminal import echo, secho
from nectar.quantities import show_size

_SHOWN: Final = 10  # entries for each reason


@click.command()
@click.option("--apply", is_flag=True, help="Delete; without it, only say what would be deleted.")
@click.option("--all", "everything", is_flag=True, help="Everything that is neither in use nor pinned.")
@common_options
def gc(apply: bool, everything: bool, home: Path | None, as_json: bool) -> None:
    """Show what the collector would delete, or let it.

    Entries go if the store is over its budget; files go if they belong to no entry.
    """
    with opened(home, as_json, writing=apply) as (catalog, settings):
        done, over = Collected(), 0
        words: dict[bytes, str] = {}
        if catalog is not None:
            done = _collect(catalog, everything) if apply else _foresee(catalog, everything)
            words = _words(catalog, done)
            over = catalog.collector.needed().size if apply else 0
        if as_json:
            print_json({"home": str(settings.home), "applied": apply, **_record(done), "still_over": over})
            return
        _print(done, apply, words)
        if over:
            echo(f"{show_size(over)} more should go, but what is left is pinned or in use.")


def _collect(catalog: Catalog, everything: bool) -> Collected:
    done = catalog.collector.enforce()
    if everything:
        catalog.collector.evict(catalog.collector.plan(everything=True), done)
        _name_kept(catalog, done)
        catalog.collector.enforce()  # records that nobody can reach any more count as well
    swept = catalog.collector.sweep()
    done.swept, done.freed = swept.swept, done.freed + swept.freed
    done.freed += catalog.index.shrink(catalog.store.free_space())
    return done


def _foresee(catalog: Catalog, everything: bool) -> Collected:
    """What _collect would do."""
    done = catalog.collector.sweep(apply=False)
    done.freed += sum(size for _, size in catalog.index.doomed())
    done.evicted = catalog.collector.plan(everything=everything)
    done.freed += sum(victim.size for victim in done.evicted)
    if everything:
        _name_kept(catalog, done)
    return done


def _name_kept(catalog: Catalog, done: Collected) -> None:
    """Says why entries stay that were asked to go."""
    going = {victim.key for victim in done.evicted}
    for candidate in catalog.index.candidates():
        if candidate.key not in going and candidate.key not in done.kept:
            done.kept[candidate.key] = "pinned" if candidate.pinned else "in use"


def _record(done: Collected) -> dict[str, object]:
    return {
        "evicted": [{"key": v.key.hex(), "size": v.size, "files": v.files, "reason": v.reason} for v in done.evicted],
        "kept": [{"key": key.hex(), "reason": reason} for key, reason in done.kept.items()],
        "swept": done.swept,
        "freed": done.freed,
    }


def _words(catalog: Catalog, done: Collected) -> dict[bytes, str]:
    """Names of results, or what they are; of those that may be shown."""
    keys = [*itertools.chain(*(victims[:_SHOWN] for victims in _by_reason(done).values())), *[*done.kept][:_SHOWN]]
    found = {key: made.about for key, made in catalog.index.made(keys).items()}
    for name in catalog.index.names():
        if name.key in found:
            found[name.key] = f"{name.name} ({found[name.key]})"
    return found


def _by_reason(done: Collected) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = defaultdict(list)
    for victim in done.evicted:
        found[victim.reason].append(victim.key)
    return found


def _print(done: Collected, applied: bool, words: Mapping[bytes, str]) -> None:
    sizes = {victim.key: victim.size for victim in done.evicted}
    for reason, keys in _by_reason(done).items():
        size = show_size(sum(sizes[key] for key in keys))
        verb = "evicted" if applied else "to evict"
        secho(f"{number_of(len(keys), 'entry', 'entries')} {verb}, {size}: {reason}", bold=True)
        _print_some([f"{short(key)}  {show_size(sizes[key]):>8}  {words.get(key, '')}".rstrip() for key in keys])
    if done.swept:
        verb = "swept" if applied else "to sweep"
        secho(f"{number_of(len(done.swept), 'folder')} {verb}: they belong to no entry", bold=True)
        _print_some(done.swept)
    if done.kept:
        secho(f"{number_of(len(done.kept), 'entry', 'entries')} kept", bold=True)
        _print_some([f"{short(key)}  {reason}  {words.get(key, '')}".rstrip() for key, reason in done.kept.items()])
    if applied:
        echo(f"Freed {show_size(done.freed)}." if done.freed else "Nothing had to go.")
    elif done.evicted or done.swept or done.freed:
        echo(f"{show_size(done.freed)} would be freed. Nothing was deleted: --apply does it.")
    else:
        echo("Nothing has to go.")


def _print_some(lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        echo(f"  {line}")
    if len(lines) > _SHOWN:
        echo(f"  and {len(lines) - _SHOWN:,} more")
