"""Messages within messages of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def children_of(message: Any) -> list[Any]:
    """The messages that a message directly consists of; maps stand for their values."""
    found: list[Any] = []
    for descriptor, value in message.ListFields():
        kind = descriptor.message_type
        if kind is None:
            continue
        if kind.GetOptions().map_entry:
            if kind.fields_by_name["value"].message_type is not None:
                found += value.values()
        elif descriptor.is_repeated:
            found += value
        else:
            found.append(value)
    return found


def messages_in(message: Any) -> Iterator[Any]:
    """A message and all messages within it, of any depth."""
    pending = [message]
    while pending:
        each = pending.pop()
        yield each
        pending += children_of(each)


def named(message: Any, *names: str) -> bool:
    """Whether a message is of one of these kinds, which are named without the name of the protocol."""
    return message.DESCRIPTOR.full_name.removeprefix("spark.connect.") in names
