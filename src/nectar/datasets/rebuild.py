"""A deleted dataset is made again by its recipe; if that cannot be, the error says what can be done."""

from __future__ import annotations

from nectar.catalog.service import Catalog
from nectar.errors import DeletedError, RebuildError
from nectar.model.entry import Entry
from nectar.recipes.rebuild import rebuild
from nectar.settings import Settings


def made_again(catalog: Catalog, key: bytes, settings: Settings, label: str = "") -> Entry:
    """The entry of a key whose result was deleted, after the program that made it ran again.

    Raises DeletedError if it cannot: it names every reason, and what would have to be run by hand.
    """
    try:
        return rebuild(catalog, key, settings)
    except RebuildError as failure:
        raise DeletedError(
            f"{label or key.hex()[:12]} was deleted to make room. {failure}{_by_hand(catalog, key)}"
        ) from None


def _by_hand(catalog: Catalog, key: bytes) -> str:
    """What a person can do, as far as it is on record."""
    made = catalog.index.made([key]).get(key)
    if made is None:
        return ""
    site = f" in {made.site}" if made.site else ""
    return f". Or run the query{site} again, which {made.by or 'somebody'} ran: it then has the same key"
