"""Messages of the protocol, written down as a list: each relation by itself, without those below it.

The client reads messages that are nested a hundred deep, and plans are deeper. In: a message that holds relations. Out:
bytes for it and for each relation in it, those above first; and the message again. What only says where in a program an
expression was written is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nectar.dialects.spark.messages import children_of

_RELATION: Final = "spark.connect.Relation"
_ABOUT_EXPRESSIONS: Final = "spark.connect.ExpressionCommon"


def flattened(message: Any) -> tuple[bytes, ...]:
    """A message as a list."""
    copy = type(message)()
    copy.CopyFrom(message)
    found = list(_preorder(copy))
    pieces: list[bytes] = []
    for each in reversed(found):  # those below first: a relation is written when they are empty
        _without_sites(each)
        pieces.append(each.SerializeToString(deterministic=True))
        each.Clear()
    return tuple(reversed(pieces))


def restored(kind: type[Any], pieces: Sequence[bytes]) -> Any:
    """The message of a list. Raises an error of the protocol if it cannot be read."""
    made = kind()
    left = iter(pieces)
    pending = [made]
    while pending:
        message = pending.pop()
        message.MergeFromString(next(left))
        pending.extend(reversed(_relations_in(message)))
    return made


def _preorder(message: Any) -> Iterator[Any]:
    pending = [message]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(_relations_in(each)))


def _relations_in(message: Any) -> list[Any]:
    """The relations directly below a message, in the order of its fields."""
    found: list[Any] = []
    pending = list(reversed(children_of(message)))
    while pending:
        each = pending.pop()
        if each.DESCRIPTOR.full_name == _RELATION:
            found.append(each)
        else:
            pending.extend(reversed(children_of(each)))
    return found


def _without_sites(message: Any) -> None:
    """Of what is said about a relation its plan id is left; of what is said about its expressions nothing."""
    if message.DESCRIPTOR.full_name == _RELATION and message.HasField("common"):
        plan_id = message.common.plan_id if message.common.HasField("plan_id") else None
        message.ClearField("common")
        if plan_id is not None:
            message.common.plan_id = plan_id
    pending = [message]
    while pending:
        each = pending.pop()
        common = each.DESCRIPTOR.fields_by_name.get("common")
        if common is not None and common.message_type.full_name == _ABOUT_EXPRESSIONS:
            each.ClearField("common")
        pending += children_of(each)
