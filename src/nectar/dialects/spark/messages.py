"""Messages within messages of the protocol, of any depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def messages_in(message: Any) -> Iterator[Any]:
    """A message and all messages within it."""
    pending = [message]
    while pending:
        each = pending.pop()
        yield each
        for descriptor, value in each.ListFields():
            kind = descriptor.message_type
            if kind is None:
                continue
            if kind.GetOptions().map_entry:
                if kind.fields_by_name["value"].message_type is not None:
                    pending.extend(value.values())
            elif descriptor.is_repeated:
                pending.extend(value)
            else:
                pending.append(value)


def named(message: Any, *names: str) -> bool:
    """Whether a message is of one of these kinds, which are named without the name of the protocol."""
    return message.DESCRIPTOR.full_name.removeprefix("spark.connect.") in names
