"""Expanders of the containers of the standard library."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Sequence

from nectar.keys.atoms import in_unusual_order, pack
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.patience import expect

_COUNT = 8


_NANS = (bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f8ff"))  # as doubles, little endian


def _block(values: Sequence[object]) -> bytes | None:
    """Atoms of one type in one block; not where NaNs may be among them, because whether those are one object shows."""
    expect(values)
    block = pack(values)
    if block is None:
        expect(values, one_by_one=True)
    if block is not None and block.startswith(b"d") and any(each in block for each in _NANS):
        return None
    return block


def sequence_parts(tag: str, values: Sequence[object]) -> Expansion:
    """An ordered run of values, in one block where they are atoms of one type."""
    block = _block(values)
    if block is not None:
        return Expansion(tag + "*", len(values).to_bytes(_COUNT, "little"), buffers=(block,))
    return Expansion(tag, len(values).to_bytes(_COUNT, "little"), values)


def expand_list(value: list[object], walk: WalkContext) -> Expansion:
    """A list: its elements in order."""
    elements = tuple(value)
    return sequence_parts("list", elements)._replace(still=lambda: _same_elements(value, elements))


def expand_tuple(value: tuple[object, ...], walk: WalkContext) -> Expansion:
    """A tuple that holds something with identity (others are atoms)."""
    return Expansion("tuple", len(value).to_bytes(_COUNT, "little"), value, still=always)


def expand_dict(value: dict[object, object], walk: WalkContext) -> Expansion:
    """A dict: keys and values in the order of insertion, which programs can see."""
    keys, values = tuple(value), tuple(value.values())
    return mapping_parts("dict", keys, values)._replace(
        still=lambda: _same_elements(value, keys) and _same_elements(value.values(), values)
    )


def mapping_parts(tag: str, keys: Sequence[object], values: Sequence[object]) -> Expansion:
    """Keys and values, in one block each where they are atoms of one type."""
    count = len(keys).to_bytes(_COUNT, "little")
    key_block, value_block = _block(keys), _block(values)
    if key_block is not None and value_block is not None:
        return Expansion(tag + "*", count, buffers=(key_block, value_block))
    children = [part for pair in zip(keys, values, strict=True) for part in pair]
    labels = [label for key in keys for label in (f"key {_short(key)}", f"[{_short(key)}]")]
    return Expansion(tag, count, children, labels)


def expand_set(value: set[object] | frozenset[object], walk: WalkContext) -> Expansion:
    """A set: its members in no order, unless they are numbers in another order than that of most sets of them."""
    members = tuple(value)
    tag = "set" if type(value) is set else "frozenset"
    still = lambda: _same_elements(value, members)  # noqa: E731 - a def would not say more
    if in_unusual_order(members):
        return sequence_parts(f"{tag} in order", members)._replace(still=still)
    return Expansion(tag, len(members).to_bytes(_COUNT, "little"), members, unordered=True, still=still)


def expand_deque(value: collections.deque[object], walk: WalkContext) -> Expansion:
    """A deque: its elements in order, and its bound."""
    return Expansion("deque", joined(repr(value.maxlen)), tuple(value))


def expand_defaultdict(value: collections.defaultdict[object, object], walk: WalkContext) -> Expansion:
    """A defaultdict: its factory, then its items."""
    items = [part for pair in value.items() for part in pair]
    return Expansion("defaultdict", b"", (value.default_factory, *items), ("default_factory",))


def expand_mapping_proxy(value: types.MappingProxyType[object, object], walk: WalkContext) -> Expansion:
    """A read-only view of a mapping: the items seen through it."""
    return Expansion("mappingproxy", b"", [part for pair in value.items() for part in pair])


def expand_namespace(value: types.SimpleNamespace, walk: WalkContext) -> Expansion:
    """A SimpleNamespace: its attributes in order, which its text shows."""
    names = list(vars(value))
    return Expansion("namespace", joined(*names), [vars(value)[name] for name in names], names)


def expand_bytearray(value: bytearray, walk: WalkContext) -> Expansion:
    """A bytearray: its bytes."""
    content = bytes(value)
    return Expansion("bytearray", b"", buffers=(content,), still=lambda: value == content)


def _same_elements(now: object, then: tuple[object, ...]) -> bool:
    return len(now) == len(then) and all(map(operator.is_, now, then))  # type: ignore[arg-type, call-overload]


def _short(key: object) -> str:
    return repr(key)[:40] if type(key) in (str, int, float, bool, bytes, type(None)) else type(key).__name__


EXPANDERS: dict[type, Expander] = {
    list: expand_list,
    tuple: expand_tuple,
    dict: expand_dict,
    set: expand_set,
    frozenset: expand_set,
    collections.deque: expand_deque,
    collections.defaultdict: expand_defaultdict,
    types.MappingProxyType: expand_mapping_proxy,
    types.SimpleNamespace: expand_namespace,
    bytearray: expand_bytearray,
}
