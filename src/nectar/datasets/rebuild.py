"""Making a deleted result again. Recipes that can be run are to come: until then the error says what to run."""

from __future__ import annotations

from nectar.catalog.service import Catalog
from nectar.errors import DeletedError
from nectar.model.entry import Entry


def rebuild(catalog: Catalog, key: bytes, label: str = "") -> Entry:
    """The entry of a key whose result was deleted, after the program that made it ran again.

    Raises DeletedError, always, for as long as no recipe can be run: it names what would have to be run by hand.
    """
    made = catalog.index.made([key]).get(key)
    what = label or f"the result {key.hex()[:12]}"
    if made is None:
        raise DeletedError(f"{what} is not in the store, and nothing is known about how it was made")
    site = f" in {made.site}" if made.site else ""
    raise DeletedError(
        f"{what} ({made.about}) was deleted to make room, and Nectar cannot run its program by itself yet: run the "
        f"query{site} again, which {made.by or 'somebody'} ran; it then has the same key, and this works again"
    )
