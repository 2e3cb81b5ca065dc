"""The rates of this machine: learned by every run that puts parts together, remembered in the catalog."""

from __future__ import annotations

import socket
from dataclasses import asdict, fields
from typing import Final
from weakref import WeakKeyDictionary

import polars as pl

from nectar.catalog.service import Catalog
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.rewrite.cost import Rates
from nectar.store.read import Result

_WORTH_TELLING: Final = 1.25  # times more or less than what is remembered
_known: Final[WeakKeyDictionary[Catalog, Rates]] = WeakKeyDictionary()
_remembered: Final[WeakKeyDictionary[Catalog, Rates]] = WeakKeyDictionary()


def rates_of(catalog: Catalog) -> Rates:
    """What is known of this machine; the usual if nothing is."""
    found = _known.get(catalog)
    if found is None:
        found = _known[catalog] = _remembered[catalog] = _read(catalog)
    return found


def learn(catalog: Catalog, size: int, seconds: float, *, states: bool) -> None:
    """From now on it is known that so many bytes were put together in so many seconds."""
    _known[catalog] = rates_of(catalog).learned(size, seconds, states)


def remember(catalog: Catalog) -> None:
    """What was learned is there for other processes, if it differs from what they know."""
    rates = rates_of(catalog)
    if _differ(rates, _remembered[catalog]):
        _remembered[catalog] = rates
        key = _key()
        catalog.keep(key, key, pl.DataFrame([asdict(rates)]), table=True, about="rates of this machine", replaces=True)


def _read(catalog: Catalog) -> Rates:
    key = _key()
    try:
        entry = catalog.index.lookup([key]).get(key)
        opened = None if entry is None else catalog.open(entry)
        row = opened.to_polars().row(0, named=True) if isinstance(opened, Result) else {}
        names = {field.name for field in fields(Rates)}
        return Rates(**{name: float(value) for name, value in row.items() if name in names and value > 0})
    except (EnvironmentFailure, TypeError, pl.exceptions.PolarsError):
        return Rates()


def _key() -> bytes:
    return digest_of(joined("rates", socket.gethostname()))


def _differ(one: Rates, other: Rates) -> bool:
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Rates)]
    return any(max(pair) > _WORTH_TELLING * min(pair) for pair in pairs)
