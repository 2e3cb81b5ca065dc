"""Expanders of what pydantic makes of a model: its validator and its serializer, which are native objects.

Both are made from a schema, a nest of dicts, and give it back. Classes are called in it by their addresses, so that
these are replaced by numbers in the order in which they are met.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from nectar.keys.expansion import Expander, Expansion, WalkContext, always

_REFERENCES: Final = frozenset({"ref", "schema_ref"})


def expand_schema(value: Any, walk: WalkContext) -> Expansion:
    """A validator or serializer: the schema it was made from, and its settings."""
    _, (schema, *settings) = value.__reduce__()
    children = (type(value), _without_addresses(schema, {}), *settings)
    return Expansion("pydantic schema", b"", children, ("class", "schema"), still=always)


def _without_addresses(part: Any, numbers: dict[str, int], key: object = None) -> Any:
    """A copy of a schema in which references are numbers."""
    kind = type(part)
    if kind is dict:
        return {name: _without_addresses(inner, numbers, name) for name, inner in part.items()}
    if kind is list or kind is tuple:
        return kind(_without_addresses(inner, numbers, key) for inner in part)
    if kind is str and key in _REFERENCES:
        return numbers.setdefault(part, len(numbers))
    return part


def _kinds() -> list[type]:
    core = sys.modules.get("pydantic_core")
    return [kind for name in ("SchemaValidator", "SchemaSerializer") if (kind := getattr(core, name, None)) is not None]


EXPANDERS: dict[type, Expander] = dict.fromkeys(_kinds(), expand_schema)
