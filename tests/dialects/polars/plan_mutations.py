"""Serialised plans with one field changed at a time.

In: a plan as Polars writes it. Out: for each field of each step the plan in which nothing but that field is other than
it was. A field may get a value that Polars would not take: the key of a plan is made from what is written, so that it
has to be another one all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from nectar.dialects.polars.plan import HEADER
from nectar.keys.values.polars_plans import is_python, said_and_pickle

INPUTS = ("input", "input_left", "input_right", "idxs", "inputs", "dsl")
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mutation:
    """A changed plan. path: the kind of the step, and the keys below it that lead to the field."""

    path: Path
    header: bytes
    arena: Any

    @property
    def data(self) -> bytes:
        """The plan as Polars would write it."""
        return self.header + msgspec.msgpack.encode(self.arena)

    @property
    def field(self) -> tuple[str, ...]:
        """The path without places in lists."""
        return tuple(key for key in self.path if isinstance(key, str))


def mutations(data: bytes) -> Iterator[Mutation]:
    """The plan with each field of its steps, and each of its frames, changed in turn."""
    arena = msgspec.msgpack.decode(data[HEADER:])
    for slot, each in enumerate(arena["dsl_plans"]):
        for path, value in _changed_steps(each["value"]) if slot else ():
            slots = [*arena["dsl_plans"]]
            slots[slot] = {**each, "value": value}
            yield Mutation(path, data[:HEADER], {**arena, "dsl_plans": slots})
    for number, frame in enumerate(arena["dataframes"]):
        for path, value in _changed(frame, ("frame",)) if number else ():
            frames = [*arena["dataframes"]]
            frames[number] = value
            yield Mutation(path, data[:HEADER], {**arena, "dataframes": frames})


def _changed_steps(step: Any) -> Iterator[tuple[Path, Any]]:
    """A step in every way that differs in one field; steps that it holds in place included, references not."""
    if not isinstance(step, dict) or step.keys() == {"idx", "version"}:
        return
    ((kind, content),) = step.items()
    yield (kind,), {kind: {**content, "one more": 1}}
    for name, value in content.items():
        if name not in INPUTS:
            changed = _changed(value, (kind, name))
        elif isinstance(value, list):
            changed = _changed_within(value)
        else:
            changed = _changed_steps(value)
        for path, other in changed:
            yield path, {kind: {**content, name: other}}


def _changed_within(steps: list[Any]) -> Iterator[tuple[Path, Any]]:
    for at, step in enumerate(steps):
        for path, other in _changed_steps(step):
            yield path, [*steps[:at], other, *steps[at + 1 :]]


def _changed(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """A value in every way that differs in one field."""
    if _is_reference(value):  # to a frame: the frame itself is changed
        return
    if isinstance(value, dict):
        yield path, {**value, "one more": 1}
        for name, inner in value.items():
            rest = {key: each for key, each in value.items() if key != name}
            yield (*path, name), rest
            yield (*path, name), {**rest, f"{name} by another name": inner}
            for deeper, other in _changed(inner, (*path, name)):
                yield deeper, {**value, name: other}
    elif isinstance(value, bytes):
        yield from _changed_bytes(value, path)
    elif isinstance(value, list) and _is_bytes(value):
        for deeper, other in _changed_bytes(bytes(value), path):
            yield deeper, list(other)
    elif isinstance(value, list):
        yield path, [*value, "one more"]
        for at, inner in enumerate(value):
            yield (*path, at), value[:at] + value[at + 1 :]
            for deeper, other in _changed(inner, (*path, at)):
                yield deeper, [*value[:at], other, *value[at + 1 :]]
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int | float):
        yield path, value + 1 if value < value + 1 else 0  # neither infinity nor what is no number
    elif isinstance(value, str):
        yield path, f"{value} changed"
    else:
        yield path, 1


def _changed_bytes(value: bytes, path: Path) -> Iterator[tuple[Path, bytes]]:
    """Bytes with the last one changed; of Python functions, what Polars says of them is changed field by field."""
    names = tuple(str(key) for key in path if isinstance(key, str))
    if is_python(names):
        said, pickled = said_and_pickle(value, "a plan")
        begin = value.index(said) if said else 0
        for deeper, other in _changed(msgspec.msgpack.decode(said), (*path, "said")) if said else ():
            yield deeper, value[:begin] + msgspec.msgpack.encode(other) + value[begin + len(said) :]
        return
    yield path, value[:-1] + bytes([value[-1] ^ 1]) if value else b"x"


def _is_bytes(value: list[Any]) -> bool:
    return len(value) > 8 and all(type(each) is int and 0 <= each < 256 for each in value)


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"idx", "version"}
