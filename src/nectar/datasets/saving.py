"""Where a result is to be saved under a name; asked before anything is computed."""

from __future__ import annotations

from nectar.catalog.service import Catalog
from nectar.datasets.reference import checked_name
from nectar.errors import NotSavedError
from nectar.session import Session, current


def place_for(name: str) -> tuple[Session, Catalog]:
    """The session and the catalog in which a name is given. Raises NotSavedError if it cannot be given now."""
    checked_name(name)
    session = current()
    if session is None:
        raise NotSavedError(f"nothing can be saved as {name!r} while Nectar is off: nectar.enable() switches it on")
    if session.catalog is None:
        raise NotSavedError(f"nothing can be saved as {name!r}: the catalog in {session.settings.home} cannot be used")
    if session.catalog.read_only:
        raise NotSavedError(
            f"nothing can be saved as {name!r}: the catalog in {session.settings.home} may only be read (its "
            "rights, or the setting read_only)"
        )
    return session, session.catalog
