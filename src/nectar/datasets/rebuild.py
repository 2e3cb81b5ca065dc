"""A deleted dataset is made again by its recipe; if that cannot be, the error says what can be done."""

from __future__ import annotations

from nectar.catalog.service import Catalog
from nectar.errors import DeletedError, RebuildError
from nectar.model.entry import Entry
from nectar.recipes.rebuild import rebuild
from nectar.settings import load_settings


def made_again(catalog: Catalog, key: bytes, label: str = "") -> Entry:
    """The entry of a key whose result was deleted, after the program that made it ran again.

    Raises DeletedError if it cannot: it names every reason, and what would have to be run by hand.
    """
    try:
        return rebuild(catalog, key, catalog.settings or load_settings())
    except RebuildError as failure:
        lines = [*failure.reasons, *_by_hand(catalog, key)]
        raise DeletedError(
            f"{label or key.hex()[:12]} was deleted to make room, and {failure.what} cannot be rebuilt:\n"
            + "\n".join(f"  - {line}" for line in lines)
        ) from None


def _by_hand(catalog: Catalog, key: bytes) -> list[str]:
    """What a person can do, as far as it is on record."""
    made = catalog.index.made([key]).get(key)
    if made is None:
        return []
    site = f" in {made.site}" if made.site else ""
    by = made.by or "somebody"
    return [f"once you have fixed this, it comes back by itself; or run the query{site} again, which {by} ran"]
