"""The rates of this machine, for each engine: learned by runs that put parts together, remembered in the catalog."""

from __future__ import annotations

import socket
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import asdict, replace

from nectar.catalog.service import Catalog
from nectar.errors import NectarError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.rewrite.cost import Rates
from nectar.store.read import Result

_WORTH_TELLING: Final = 1.25  # times more or less than what is remembered


class LearnedRates:
    """What is known of how fast one engine puts parts together here, for each catalog. usual: if nothing is."""

    def __init__(self, engine: str, usual: Rates = Rates()) -> None:  # noqa: B008 - it is frozen
        self._engine, self._usual = engine, usual
        self._known: WeakKeyDictionary[Catalog, Rates] = WeakKeyDictionary()
        self._remembered: WeakKeyDictionary[Catalog, Rates] = WeakKeyDictionary()

    def of(self, catalog: Catalog) -> Rates:
        """What is known of this machine; the usual if nothing is."""
        found = self._known.get(catalog)
        if found is None:
            # in this order, for another thread that finds the one looks for the other
            found = self._remembered[catalog] = self._known[catalog] = self._read(catalog)
        return found

    def learn(self, catalog: Catalog, size: int, seconds: float, *, states: bool) -> None:
        """From now on it is known that so many bytes were put together in so many seconds."""
        self._known[catalog] = self.of(catalog).learned(size, seconds, states)

    def remember(self, catalog: Catalog) -> None:
        """What was learned is there for other processes, if it differs from what they know."""
        rates = self.of(catalog)
        if _differ(rates, self._remembered.get(catalog, self._usual)):
            self._remembered[catalog] = rates
            key = self._key()
            catalog.keep(key, key, asdict(rates), about=f"rates of {self._engine} on this machine", replaces=True)

    def forget(self) -> None:
        """What was learned and not remembered is gone."""
        self._known.clear()
        self._remembered.clear()

    def _read(self, catalog: Catalog) -> Rates:
        key = self._key()
        try:
            entry = catalog.index.lookup([key]).get(key)
            opened = None if entry is None else catalog.open(entry)
            found = opened.to_object() if isinstance(opened, Result) else {}
            known = {name: value for name, value in found.items() if name in Rates.__struct_fields__}
            read = {name: float(value) for name, value in known.items() if value > 0}
            return replace(self._usual, **read)
        except (NectarError, TypeError, AttributeError, ValueError):
            return self._usual

    def _key(self) -> bytes:
        return digest_of(joined("rates", self._engine, socket.gethostname()))


def _differ(one: Rates, other: Rates) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in Rates.__struct_fields__]
    return any(max(pair) > _WORTH_TELLING * min(pair) for pair in pairs)
