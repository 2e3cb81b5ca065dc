"""Holding a result that is waited for: whoever has it made again gets to read it, however small the budget."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from nectar.errors import EnvironmentFailure
from nectar.model.entry import Lease

if TYPE_CHECKING:
    from nectar.catalog.service import Catalog

_LONGEST: Final = 3600.0  # seconds, should whoever holds it never come back


@contextmanager
def holding(catalog: Catalog, key: bytes) -> Iterator[None]:
    """While this lasts, the result of a key is not evicted to make room, be it there or still to come.

    Then it goes as others do, at once if the budget asks for it.
    """
    if catalog.read_only:
        yield
        return
    now = catalog.clock.now()
    lease = Lease(uuid.uuid4().hex, catalog.store.new_location(key), catalog.presence.name, now + _LONGEST)
    catalog.index.announce(lease, None, now)
    try:
        yield
    finally:
        with suppress(EnvironmentFailure):  # then it ends by itself
            catalog.index.drop_leases([lease.token])
            if catalog.collector.needed().pressing:
                catalog.collector.enforce()
