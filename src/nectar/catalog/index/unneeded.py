"""Rows that nobody can need any more: recipes, provenance, and what is remembered of inputs and programs.

A result on record is needed while it has an entry or a name, and while something on record was made from it: then its
lineage, and its recipe, lead to it. Law: whatever leads to a row is looked at again in the transaction that deletes it,
and a recipe that was written lately stays, since the result that it is of is still to come.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from nectar.catalog.index import rows
from nectar.model.entry import RECIPE_LABEL

_VERSIONS: Final = 40  # of a function or script that are kept, so that somebody can ask what has changed
_NEEDED: Final = (
    "EXISTS (SELECT 1 FROM entries WHERE entries.key = results.key) OR "
    "EXISTS (SELECT 1 FROM names WHERE names.key = results.key) OR "
    "EXISTS (SELECT 1 FROM made_from WHERE made_from.source = results.number)"
)
_OF_RESULTS: Final = (("made_from", "result"), ("reads", "result"), ("uses", "result"), ("results", "number"))
# What several results share goes with the last of them: a group, then its members.
_SHARED: Final = (
    ("streams", "reads", "stream", "stream_files", "files", "file"),
    ("kits", "uses", "kit", "kit_functions", "functions", "function"),
)
_REMEMBERED: Final = (("contents", "seen"), ("lengths", "seen"), ("lookups", "last"), ("observed", "since"))


_LABELS: Final = (RECIPE_LABEL, f"{RECIPE_LABEL}g")  # around all labels that end with hexadecimal digits


def unneeded(connection: sqlite3.Connection, before: float, most: int) -> tuple[list[int], list[str]]:
    """Results on record that nobody can reach, the oldest first; if there are none, labels of recipes without a record.

    The latter takes a look at each recipe.
    """
    statement = f"SELECT number FROM results WHERE made < ? AND NOT ({_NEEDED}) ORDER BY number LIMIT ?"
    found = [number for (number,) in connection.execute(statement, (before, most))]
    return found, [] if found else _labels(connection, before, most)


def forget(connection: sqlite3.Connection, found: tuple[list[int], list[str]], before: float) -> int:
    """Deletes what was found, as far as it is not needed by now; returns how many rows went."""
    numbers, labels = found
    gone = _forget_results(connection, numbers)
    labels = [*_still_unneeded(connection, labels), *_labels_of(connection, gone, before)]
    return len(gone) + _forget_recipes(connection, labels, before)


def forget_old(connection: sqlite3.Connection, before: float) -> int:
    """Deletes what nobody has seen since, and all but the latest versions of functions; returns how many rows went."""
    gone = 0
    for table, seen in _REMEMBERED:
        gone += connection.execute(f"DELETE FROM {table} WHERE {seen} < ?", (before,)).rowcount
    statement = (
        "DELETE FROM versions WHERE rowid IN (SELECT number FROM (SELECT rowid AS number, ROW_NUMBER() "
        "OVER (PARTITION BY label ORDER BY since DESC) AS place FROM versions WHERE label NOT BETWEEN ? AND ?) "
        "WHERE place > ?)"
    )
    gone += connection.execute(statement, (*_LABELS, _VERSIONS)).rowcount
    return gone + _drop_orphans(connection, before)


def vacuum(connection: sqlite3.Connection) -> bool:
    """The file is written anew without what is free in it; False if somebody still reads what was before."""
    connection.execute("PRAGMA temp_store=FILE")  # it may be larger than memory
    try:
        connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute("PRAGMA temp_store=MEMORY")
    return not busy


def _forget_results(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[bytes]:
    """Deletes records of results, as far as they are not needed by now; returns their keys."""
    chosen = [
        row
        for batch in rows.batches(numbers)
        for row in connection.execute(
            f"SELECT number, key FROM results WHERE number IN ({rows.marks(batch)}) AND NOT ({_NEEDED})", batch
        )
    ]
    gone = [(number,) for number, _ in chosen]
    touched = [_groups_of(connection, pairs, group, gone) for _, pairs, group, *_ in _SHARED]
    for table, column in _OF_RESULTS:
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", gone)
    for (groups, pairs, group, members, things, thing), left in zip(_SHARED, touched, strict=True):
        for number in left:
            if connection.execute(f"SELECT 1 FROM {pairs} WHERE {group} = ?", (number,)).fetchone():
                continue
            inside = connection.execute(f"SELECT {thing} FROM {members} WHERE {group} = ?", (number,)).fetchall()
            connection.execute(f"DELETE FROM {members} WHERE {group} = ?", (number,))
            connection.execute(f"DELETE FROM {groups} WHERE number = ?", (number,))
            alone = f"NOT EXISTS (SELECT 1 FROM {members} WHERE {thing} = {things}.number)"
            connection.executemany(f"DELETE FROM {things} WHERE number = ? AND {alone}", inside)
    return [key for _, key in chosen]


def _groups_of(connection: sqlite3.Connection, pairs: str, group: str, numbers: Sequence[tuple[int]]) -> set[int]:
    statement = f"SELECT {group} FROM {pairs} WHERE result = ?"
    return {found for number in numbers for (found,) in connection.execute(statement, number)}


def _labels(connection: sqlite3.Connection, before: float, most: int) -> list[str]:
    """Labels of recipes whose results nobody can reach: neither an entry, nor a name, nor what was made from them."""
    found: list[str] = []
    after = _LABELS[0]
    statement = (
        "SELECT label, MAX(COALESCE(recipes.since, 0)) FROM versions LEFT JOIN recipes ON recipes.identity = "
        "versions.trace WHERE label > ? AND label < ? GROUP BY label ORDER BY label LIMIT 500"
    )
    while len(found) < most:
        batch = connection.execute(statement, (after, _LABELS[1])).fetchall()
        if not batch:
            break
        after = batch[-1][0]
        found += _still_unneeded(connection, [label for label, since in batch if since < before])
    return found[:most]


def _labels_of(connection: sqlite3.Connection, keys: Sequence[bytes], before: float) -> list[str]:
    """Labels of the recipes of these results, unless one of them was written lately."""
    found: list[str] = []
    for batch in rows.batches([f"{RECIPE_LABEL}{key.hex()}" for key in keys]):
        statement = (
            "SELECT label FROM versions LEFT JOIN recipes ON recipes.identity = versions.trace "
            f"WHERE label IN ({rows.marks(batch)}) GROUP BY label HAVING MAX(COALESCE(recipes.since, 0)) < ?"
        )
        found += [label for (label,) in connection.execute(statement, (*batch, before))]
    return found


def _still_unneeded(connection: sqlite3.Connection, labels: Sequence[str]) -> list[str]:
    """Those labels of recipes whose result has no entry, no name and no record."""
    of = {_key_of(label): label for label in labels}
    needed: set[bytes] = set()
    for table in ("entries", "names", "results"):
        for batch in rows.batches(list(of)):
            statement = f"SELECT key FROM {table} WHERE key IN ({rows.marks(batch)})"
            needed.update(key for (key,) in connection.execute(statement, batch))
    return [label for key, label in of.items() if key not in needed]


def _key_of(label: str) -> bytes:
    try:
        return bytes.fromhex(label.removeprefix(RECIPE_LABEL))
    except ValueError:  # damaged: nobody finds it by a key
        return label.encode("utf-8", "surrogatepass")


def _forget_recipes(connection: sqlite3.Connection, labels: Sequence[str], before: float) -> int:
    """Deletes that these labels lead to recipes, and recipes that nothing leads to; returns how many rows went."""
    connection.executemany("DELETE FROM versions WHERE label = ?", [(label,) for label in labels])
    return len(labels) + _drop_orphans(connection, before)


def _drop_orphans(connection: sqlite3.Connection, before: float) -> int:
    """Deletes recipes to which neither a label nor an entry leads, their parts, and texts of no function."""
    orphans = connection.execute(
        "SELECT identity, parts FROM recipes WHERE since < ? AND identity NOT IN (SELECT trace FROM versions) "
        "AND identity NOT IN (SELECT recipe FROM entries WHERE recipe IS NOT NULL)",
        (before,),
    ).fetchall()
    connection.executemany("DELETE FROM recipes WHERE identity = ?", [(identity,) for identity, _ in orphans])
    parts = {part for _, listed in orphans for part in rows.digests_in(listed)}
    if parts:
        for (listed,) in connection.execute("SELECT parts FROM recipes"):
            parts.difference_update(rows.digests_in(listed))
    connection.executemany("DELETE FROM recipe_parts WHERE identity = ?", [(part,) for part in parts])
    connection.execute(
        "DELETE FROM function_texts WHERE identity NOT IN (SELECT text FROM functions WHERE text IS NOT NULL)"
    )
    return len(orphans)
