"""Recipes in the SQLite index: each part once however many recipes share it, under its digest.

Law: what is handed out has the digests it was asked for by. Whoever imports or unpickles a part of a recipe gets what
was written down, or DamagedRecipeError.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import blake3

from nectar.catalog.index import rows
from nectar.catalog.index.transactions import Transactions
from nectar.errors import DamagedRecipeError, UserError
from nectar.model.entry import BrokenRecipe
from nectar.trust.secrets import looks_secret

_PUT: Final = (  # one that was damaged is mended by whoever writes it again
    "INSERT INTO recipe_parts (identity, content) VALUES (?, ?) ON CONFLICT (identity) "
    "DO UPDATE SET content = excluded.content WHERE recipe_parts.content <> excluded.content"
)
_LEAST_FREE: Final = 16 << 20  # bytes of a file that are worth writing it anew for
_LIST: Final = (
    "INSERT INTO recipes (identity, parts, since) VALUES (?, ?, ?) ON CONFLICT (identity) "
    "DO UPDATE SET parts = excluded.parts, since = excluded.since"
)


class RecipeRows(Transactions):
    """The recipes of an index."""

    def put_recipe(self, parts: Sequence[bytes], now: float = 0.0) -> bytes:
        """Keeps a recipe, each part once however many recipes share it; returns its identity.

        Raises UserError if anything in it looks like a credential: who writes recipes has seen to it before.
        """
        if any(map(looks_secret, parts)):
            raise UserError("it holds what may be a credential, and nothing of that kind is written down")
        identities = [blake3.blake3(part).digest() for part in parts]
        listed = b"".join(identities)
        identity = blake3.blake3(listed).digest()
        packed = [(part_id, zlib.compress(part, 6)) for part_id, part in zip(identities, parts, strict=True)]

        def put(connection: sqlite3.Connection) -> None:
            connection.executemany(_PUT, packed)
            connection.execute(_LIST, (identity, listed, now))

        self._write("put recipe", put)
        return identity

    def renew_recipe(self, identity: bytes, now: float) -> bool:
        """A recipe is about to be needed, and stays for a while though nothing leads to it; False if there is none."""
        statement = "UPDATE recipes SET since = ? WHERE identity = ?"
        return self._write(
            "renew recipe", lambda connection: connection.execute(statement, (now, identity)).rowcount > 0
        )

    def get_recipe(self, identity: bytes) -> list[bytes] | None:
        """The parts of a recipe, whose digests are right; None if there is none. Raises DamagedRecipeError."""

        def get(connection: sqlite3.Connection) -> tuple[bytes | None, dict[bytes, object]]:
            row = connection.execute("SELECT parts FROM recipes WHERE identity = ?", (identity,)).fetchone()
            wanted = _listed(row[0], identity) if row else None
            found: dict[bytes, object] = {}
            for batch in rows.batches(wanted or ()):
                statement = f"SELECT identity, content FROM recipe_parts WHERE identity IN ({rows.marks(batch)})"
                found.update(connection.execute(statement, batch))
            return row[0] if row else None, found

        listed, found = self._read(get)
        if listed is None:
            return None
        wanted = _listed(listed, identity)
        parts = [] if wanted is None else [_part(found.get(part), part) for part in wanted]
        if wanted is None or any(part is None for part in parts):
            raise DamagedRecipeError(_damage(listed, identity, found))
        return [part for part in parts if part is not None]

    def broken_recipes(self) -> list[BrokenRecipe]:
        """All recipes that cannot be handed out, and for which labels they were kept; every byte is read."""
        bad = {identity for identity, content in self._pieces() if _part(content, identity) is None}

        def select(connection: sqlite3.Connection) -> list[BrokenRecipe]:
            labels: dict[bytes, list[str]] = {}
            for label, trace in connection.execute("SELECT label, trace FROM versions"):
                labels.setdefault(trace, []).append(label)
            sound = {identity for (identity,) in connection.execute("SELECT identity FROM recipe_parts")} - bad
            broken = {}
            for identity, listed in connection.execute("SELECT identity, parts FROM recipes").fetchall():
                known = labels.pop(identity, [])
                wanted = _listed(listed, identity)
                if wanted is None or not sound.issuperset(wanted):
                    broken[identity] = BrokenRecipe(identity, _told(wanted, sound, bad), tuple(known))
            for identity, known in labels.items():
                broken[identity] = BrokenRecipe(identity, "it is missing", tuple(known))
            return list(broken.values())

        return self._snapshot(select)

    def drop_recipes(self, identities: Sequence[bytes]) -> None:
        """Forgets recipes that cannot be handed out, and that labels led to them; parts that are right stay."""
        bad = [(identity,) for identity, content in self._pieces() if _part(content, identity) is None]
        values = [(identity,) for identity in identities]

        def drop(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM recipes WHERE identity = ?", values)
            connection.executemany("DELETE FROM versions WHERE trace = ?", values)
            connection.executemany("DELETE FROM recipe_parts WHERE identity = ?", bad)

        self._write("drop recipes", drop)

    def _pieces(self) -> Iterator[tuple[bytes, object]]:
        """Every part, a few at a time."""
        statement = "SELECT rowid, identity, content FROM recipe_parts WHERE rowid > ? ORDER BY rowid LIMIT 50"
        after = -1
        while found := self._read(lambda connection, after=after: connection.execute(statement, (after,)).fetchall()):  # type: ignore[misc]
            yield from ((identity, content) for _, identity, content in found)
            after = found[-1][0]


class UnneededRows(Transactions):
    """What an index can do without: recipes, provenance, and what is remembered of inputs and programs."""

    def forget_unneeded(self, before: float, most: int) -> int:
        """Deletes records of so many results at most that nobody can reach, and recipes; returns how many rows went.

        The oldest first; of recipes and results that were written down since then none.
        """
        from nectar.catalog.index.unneeded import forget, unneeded

        found = self._read(lambda connection: unneeded(connection, before, most))
        return self._free("forget unneeded", lambda connection: forget(connection, found, before)) if any(found) else 0

    def forget_old(self, before: float) -> int:
        """Deletes what is remembered of inputs and programs that nobody has seen since; returns how many rows went.

        Of each function the latest versions stay. All of it is found out again when it is needed.
        """
        from nectar.catalog.index.unneeded import forget_old

        return self._free("forget old", lambda connection: forget_old(connection, before))

    def passed(self, what: str) -> float:
        """When a pass of this kind was last made, by whichever process; minus infinity if never."""
        statement = "SELECT at FROM passes WHERE what = ?"
        row = self._read(lambda connection: connection.execute(statement, (what,)).fetchone())
        return float(row[0]) if row else float("-inf")

    def note_pass(self, what: str, now: float) -> None:
        """Says that a pass of this kind is made now."""
        statement = "INSERT INTO passes (what, at) VALUES (?, ?) ON CONFLICT (what) DO UPDATE SET at = excluded.at"
        self._free("note pass", lambda connection: connection.execute(statement, (what, now)))

    def shrink(self, free: int | None) -> int:
        """The file is not much larger than what it holds; bytes that this gave back. free: those of the disk."""
        size, pages, unused = (self._pragma(name) for name in ("page_size", "page_count", "freelist_count"))
        held = (pages - unused) * size
        if unused * size < _LEAST_FREE or 4 * unused < pages or (free is not None and free < 3 * held):
            return 0
        from nectar.catalog.index.unneeded import vacuum

        self._reach("sql vacuum")
        self._read(vacuum)
        return max(0, (pages - self._pragma("page_count")) * size)

    def _pragma(self, name: str) -> int:
        return int(self._read(lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0]))


def _listed(listed: object, identity: bytes) -> list[bytes] | None:
    """The digests of the parts of a recipe; None if this list is not the one it was kept with."""
    if not isinstance(listed, bytes) or blake3.blake3(listed).digest() != identity:
        return None
    return rows.digests_in(listed)


def _part(content: object, identity: bytes) -> bytes | None:
    """The part with this digest, or None if these bytes are not it."""
    try:
        part = zlib.decompress(content) if isinstance(content, bytes) else None
    except zlib.error:
        return None
    return part if part is not None and blake3.blake3(part).digest() == identity else None


def _damage(listed: object, identity: bytes, found: Mapping[bytes, object]) -> str:
    bad = {part for part, content in found.items() if _part(content, part) is None}
    told = _told(_listed(listed, identity), set(found) - bad, bad)
    return (
        f"the recipe {identity.hex()[:12]} in the catalog is damaged: {told}; run the program that made the result "
        "again, and `nectar check --thorough --repair`"
    )


def _told(wanted: Sequence[bytes] | None, sound: set[bytes], bad: set[bytes]) -> str:
    if wanted is None:
        return "the list of its parts is not the one that was written"
    damaged = sum(part in bad for part in wanted)
    missing = sum(part not in bad and part not in sound for part in wanted)
    told = [f"{damaged} of its {len(wanted)} parts are damaged"] * bool(damaged)
    return ", ".join([*told, *[f"{missing} of its {len(wanted)} parts are missing"] * bool(missing)])
