"""Which columns may hold texts, and which may hold moments: as far as types are written somewhere.

In: types as plans, schemas and files have them. Out: sets of two letters, as numbers. What is not written is both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa

from nectar.dialects.spark.messages import messages_in

NEITHER: Final = 0
TEXT: Final = 1
TIME: Final = 2  # a timestamp or an interval; no date: no engine takes a time of day for a date
EITHER: Final = TEXT | TIME
Kinds = tuple[int, ...]

_MOST: Final = 64  # files that are looked at to learn the order of columns
_TEXTS: Final = frozenset({"string", "varchar", "char", "binary", "variant", "str"})
_TIMES: Final = ("timestamp", "interval", "variant", "calendarinterval", "daytime")
_WORD: Final = re.compile(r"[a-z_]+")
_TIME_OF_DAY: Final = re.compile(r"\s*(t\s*\d|\d{1,2}\s*:)", re.IGNORECASE)
_TYPES: Final[dict[str, int]] = {
    "String": TEXT, "Char": TEXT, "VarChar": TEXT, "Binary": TEXT, "Timestamp": TIME, "TimestampNTZ": TIME,
    "CalendarInterval": TIME, "YearMonthInterval": TIME, "DayTimeInterval": TIME, "Variant": EITHER, "UDT": EITHER,
}  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """The columns of a relation. named: by their names. rest: of those that have other names.

    find_order: tells what they are by position.
    """

    named: Mapping[str, int] = field(default_factory=dict)
    rest: int = EITHER
    find_order: Callable[[], Kinds | None] = field(default=lambda: None, compare=False)

    @cached_property
    def lowered(self) -> Mapping[str, int]:
        """By their names in small letters: two that differ in capitals only may be one column, or two."""
        found: dict[str, int] = {}
        for name, kind in self.named.items():
            found[name.lower()] = found.get(name.lower(), NEITHER) | kind
        return found

    @property
    def ordered(self) -> Kinds | None:
        """What the columns are by position, if that is known."""
        return self.find_order()

    @property
    def all(self) -> int:
        """What any of them may hold."""
        return joined_kinds((*self.named.values(), self.rest))


def joined_kinds(kinds: Iterable[int]) -> int:
    """What values of any of these kinds may be."""
    found = NEITHER
    for each in kinds:
        found |= each
    return found


def meet(kinds: Iterable[int]) -> bool:
    """Whether a text may be brought to the type of a timestamp beside it."""
    found = list(kinds)
    return any(
        one & TEXT and another & TIME
        for at, one in enumerate(found)
        for beside, another in enumerate(found)
        if at != beside
    )


def columns_of(fields: Iterable[tuple[str, int]]) -> Columns:
    """Columns that are all known."""
    ordered = tuple(fields)
    named: dict[str, int] = {}
    for name, kind in ordered:
        named[name] = named.get(name, NEITHER) | kind
    return Columns(named, NEITHER, lambda: tuple(kind for _, kind in ordered))


def looked_up(name: str, relations: Sequence[Columns]) -> int:
    """What a column may hold that is called so, in one of these relations."""
    others = joined_kinds(each.rest for each in relations)
    if "`" in name:  # there may be points in it
        return joined_kinds(each.all for each in relations) if relations else EITHER
    parts = name.lower().split(".")
    if not any(parts[-1] in each.lowered for each in relations):  # a field of a struct, or of a relation around this
        return others or EITHER
    return others | joined_kinds(each.lowered[part] for each in relations for part in parts if part in each.lowered)


def of_text(text: str) -> int:
    """What becomes of a literal: only one that begins as a time of day does is ever given today's date."""
    return TEXT if _TIME_OF_DAY.match(text) else NEITHER


def of_words(text: str) -> int:
    """What values of a type may be that is written as text, such as `array<string>`."""
    found = NEITHER
    for word in _WORD.findall(text.lower()):
        found |= TEXT if word in _TEXTS else NEITHER
        found |= TIME if word.startswith(_TIMES) else NEITHER
    return found


def of_type(message: Any) -> int:
    """What values of a type of the protocol may be."""
    found = NEITHER
    for each in messages_in(message):
        name = each.DESCRIPTOR.name
        found |= of_words(each.data_type_string) if name == "Unparsed" else _TYPES.get(name, NEITHER)
    return found


def of_arrow(kind: pa.DataType) -> int:
    """What values of a type of Arrow may be."""
    if kind.num_fields:
        return joined_kinds(of_arrow(kind.field(number).type) for number in range(kind.num_fields))
    if isinstance(kind, pa.DictionaryType):
        return of_arrow(kind.value_type)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return TIME
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    plain = plain or pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_time(kind)
    return NEITHER if plain else TIME | TEXT if pa.types.is_null(kind) else TEXT


def of_schema(text: str) -> Columns:
    """The columns of a schema, as JSON or as `name type, name type`; all may be anything if it is neither."""
    with suppress(ValueError, KeyError, TypeError):
        return columns_of((each["name"], of_words(json.dumps(each["type"]))) for each in json.loads(text)["fields"])
    fields = _split(text)
    words = [field.replace(":", " ", 1).split(None, 1) for field in fields]
    if not all(len(each) == 2 for each in words) or "`" in text:
        return Columns(rest=of_words(text))
    return columns_of((name, of_words(rest)) for name, rest in words)


def _split(text: str) -> list[str]:
    """The fields of a schema: what stands between commas that are in no brackets."""
    fields, depth = [""], 0
    for sign in text:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            fields.append("")
        else:
            fields[-1] += sign
    return fields


def of_parquet(files: Sequence[tuple[str, bytes]]) -> Columns:
    """The columns of files that are read together. files: paths, with what is in each.

    One of them is looked at: engines refuse to read files together in which a column is a text here and a timestamp
    there. In which order columns come, any of them may say.
    """
    found = next((each for file in files if (each := _of_file(*file))), None)
    if found is None:
        return Columns()

    def order() -> Kinds | None:
        alike = len(files) <= _MOST and all(_of_file(*file) in (found, None) for file in files)
        return tuple(kind for _, kind in found) if alike and not is_cut else None

    is_cut = any("=" in path for path, _ in files)  # partitions are columns, too
    return Columns(columns_of(found).named, EITHER if is_cut else NEITHER, order)


@lru_cache(1024)
def _of_file(path: str, name: bytes) -> tuple[tuple[str, int], ...] | None:
    """The columns of a file; None if it is none of Parquet. name: what is in it, since files change."""
    import pyarrow.parquet  # takes long to load

    try:
        return tuple((each.name, of_arrow(each.type)) for each in pyarrow.parquet.read_schema(path))
    except (OSError, pa.ArrowException):
        return None
