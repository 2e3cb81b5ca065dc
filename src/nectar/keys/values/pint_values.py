"""Expander of registries of units (pint): what they define, and what they remember of it, each in an order of its own.

A registry parses thousands of units when it is made, some of them in the order of a set, which is another in every
process; nothing is looked up in it but by name. Units that a registry makes itself of a prefix and a unit count as
remembered. What these hold is written in brief: they are frozen, and a walk over them takes half a second.
Whatever is not as it usually is (units of another kind, contexts that define units anew) is walked as any object is.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from nectar.keys.atoms import ATOMS
from nectar.keys.expansion import Expander, Expansion, WalkContext, joined, sized
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES
from nectar.keys.origin import origin_of_class
from nectar.keys.scheme import digest_of
from nectar.model.origin import APPLICATION

_IN_BRIEF: Final = ("_units", "_cache", "_caches")
_OF_MADE: Final = frozenset({"name", "defined_symbol", "aliases", "converter", "reference", "_is_base"})
_CONTAINER: Final = frozenset({"_d", "_hash", "_one", "_non_int_type"})  # what a container of units holds
_MOST: Final = 8  # how deep values of a registry hold each other


class _Unusual(Exception):
    """Something that is not known to be frozen."""


def expand_registry(value: Any, walk: WalkContext) -> Expansion:
    """A registry: its attributes; of units and what is remembered of them a digest."""
    attributes = dict(object.__getattribute__(value, "__dict__"))
    held = {name: attributes.pop(name, None) for name in _IN_BRIEF}
    try:
        defined, remembered = _in_brief(held, attributes.get("_prefixes"))
    except (_Unusual, AttributeError):  # a registry of another version
        return Expansion("object")
    walk.observe(HOLDS_CACHES)
    if WITHOUT_CACHES in walk.observed:
        remembered = b""
    names = sorted(attributes)
    payload = joined("units", defined, remembered, *names)
    parts = [attributes[name] for name in names]
    labels = [f".{name}" for name in names]
    still = _Still(value, attributes, held)
    return Expansion("object", payload, parts, labels, attributes=True, still=still)


def _in_brief(held: dict[str, Any], prefixes: Any) -> tuple[bytes, bytes]:
    """Digests of what is defined, and of what is remembered. Raises _Unusual."""
    if type(prefixes) is not dict:
        raise _Unusual
    units, cache = _units_in(held["_units"]), held["_cache"]
    if type(held["_caches"]) is not dict or list(held["_caches"]) != [()] or held["_caches"][()] is not cache:
        raise _Unusual
    made = {name for name, unit in units.items() if _is_made_of_prefix(name, unit, units, prefixes)}
    brief = {name: _bytes(unit) for name, unit in units.items()}
    defined = joined(*(part for name in brief if name not in made for part in (name, brief[name])))
    tables = [table for name, table in sorted(vars(cache).items())]
    if not all(type(table) is dict for table in tables):
        raise _Unusual
    remembered = [_unordered(table.items()) for table in tables]
    return digest_of(defined), digest_of(joined(_unordered((name, units[name]) for name in made), *remembered))


def _units_in(units: Any) -> dict[str, Any]:
    inner = units.maps[0] if type(units) is ChainMap and len(units.maps) == 1 else units
    if not isinstance(inner, dict):
        raise _Unusual
    return inner


def _is_made_of_prefix(name: str, unit: Any, units: Mapping[str, Any], prefixes: Any) -> bool:
    """Whether it is the very unit that a registry makes itself when it is asked for one of this name."""
    held = vars(unit)
    reference = held.get("reference")
    if not held.keys() <= _OF_MADE or unit.name != name or unit.aliases or reference is None or len(reference._d) != 1:
        return False
    ((base, power),) = reference._d.items()
    prefix = prefixes.get(name.removesuffix(base)) if name != base and name.endswith(base) else None
    if prefix is None or base not in units or power != 1 or type(unit.converter).__name__ != "ScaleConverter":
        return False
    symbol = _symbol(prefix) + _symbol(units[base])
    return _bytes(unit.converter.scale) == _bytes(prefix.value) and unit.defined_symbol == symbol


def _symbol(definition: Any) -> str:
    return str(definition.defined_symbol or definition.name)


def _unordered(members: Iterable[tuple[Any, Any]]) -> bytes:
    return joined(*sorted(joined(_bytes(key, is_key=True), _bytes(value)) for key, value in members))


def _bytes(value: Any, depth: int = 0, is_key: bool = False) -> bytes:
    """A frozen value, in brief. is_key: what it is equal to is all that counts. Raises _Unusual for any other."""
    kind: type = type(value)
    atom = ATOMS.get(kind)
    if atom is not None:
        return atom(value)
    if depth > _MOST:
        raise _Unusual
    if kind is tuple:
        return joined("t", *(_bytes(each, depth + 1, is_key) for each in value))
    if kind in (set, frozenset):
        return joined(kind.__name__, *sorted(_bytes(each, depth + 1) for each in value))
    if kind is type and value.__module__ in ("builtins", "decimal", "fractions"):
        return joined("type", value.__qualname__)
    return _writer(kind)(value, depth, is_key)


@lru_cache(maxsize=64)
def _writer(kind: type) -> Callable[[Any, int, bool], bytes]:
    """How values of a class of pint are written. Raises _Unusual for classes that are not known to be frozen."""
    if origin_of_class(kind) is APPLICATION or kind.__module__.partition(".")[0] != "pint":
        raise _Unusual
    name = sized(f"{kind.__module__}.{kind.__qualname__}".encode())
    if any({"_d", "_non_int_type"} <= vars(base).keys() for base in kind.__mro__):
        return lambda value, depth, is_key: name + _container(kind, value, depth, is_key)
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise _Unusual
    lazy = {each for base in kind.__mro__ for each, part in vars(base).items() if _is_lazy(part)}

    def write(value: Any, depth: int, is_key: bool) -> bytes:
        names = sorted(vars(value).keys() - lazy)
        return name + joined(*names, b"", *(_bytes(vars(value)[each], depth + 1) for each in names))

    return write


def _is_lazy(part: object) -> bool:
    return type(part).__name__ == "cached_property"


def _container(kind: type, value: Any, depth: int, is_key: bool) -> bytes:
    """A container of units, with their powers; the scale as well, if it has one."""
    slots = {name for base in kind.__mro__ for name in vars(base).get("__slots__", ())}
    if not slots <= _CONTAINER | {"scale"}:
        raise _Unusual
    items = [joined(*(_bytes(part, depth + 1) for part in pair)) for pair in value._d.items()]
    if is_key:  # equal ones may have their units in another order
        items.sort()
    scale = _bytes(value.scale, depth + 1) if "scale" in slots else b""
    return joined(_bytes(value._one), _bytes(value._non_int_type), scale, *items)


class _Still:
    """Whether a registry holds the very same attributes, units and remembered values as before."""

    __slots__ = ("attributes", "cls", "held", "tables", "value")

    def __init__(self, value: Any, attributes: dict[str, Any], held: dict[str, Any]) -> None:
        self.value, self.cls = value, type(value)
        self.attributes, self.held = attributes, held
        self.tables = [(table, _held_by(table)) for table in self._tables()]

    def _tables(self) -> list[Mapping[Any, Any]]:
        return [_units_in(self.held["_units"]), self.held["_caches"], *vars(self.held["_cache"]).values()]

    def __call__(self) -> bool:
        now = dict(object.__getattribute__(self.value, "__dict__"))
        return (
            type(self.value) is self.cls
            and now.keys() == self.attributes.keys() | self.held.keys()
            and all(now[name] is part for each in (self.attributes, self.held) for name, part in each.items())
            and all(one is other for one, (other, _) in zip(self._tables(), self.tables, strict=True))
            and all(_are_same(_held_by(table), then) for table, then in self.tables)
        )


def _held_by(table: Mapping[Any, Any]) -> tuple[list[object], list[object]]:
    """What lies in a table; of the sets in it copies."""
    return list(table), [frozenset(each) if type(each) is set else each for each in table.values()]


def _are_same(now: tuple[list[object], list[object]], then: tuple[list[object], list[object]]) -> bool:
    return all(len(one) == len(other) and all(map(_is_same, one, other)) for one, other in zip(now, then, strict=True))


def _is_same(now: object, then: object) -> bool:
    return now is then or (type(now) is type(then) is frozenset and now == then)


def _expanders() -> dict[type, Expander]:
    module: Any = sys.modules.get("pint.facets.plain")
    base = getattr(module, "GenericPlainRegistry", None)
    return {} if base is None else {base: expand_registry}


EXPANDERS: dict[type, Expander] = _expanders()
