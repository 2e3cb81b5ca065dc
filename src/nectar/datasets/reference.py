"""Names as people write them: team/top_urls, team/top_urls@2, team/top_urls@2026-11-01.

In: text, and the history of a name. Out: one version of it. Law: what stands behind the @ is a number, which means one
version for ever, or a moment in UTC, which means the version that was in force then; a day means its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from nectar.errors import UnknownNameError
from nectar.model.entry import Name

POINTER: Final = ".nectar.json"
SUFFIXES: Final = (".parquet", ".arrow")  # under which the file interface shows a name
_PART: Final = re.compile(r"\w([\w.+-]*[\w+-])?")
_LONGEST: Final = 200
_RULES: Final = (
    "a name is made of parts with a slash in between, such as team/top_urls; a part begins with a letter, a digit or "
    "an underscore, and has no other signs than . + - besides"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name, and which version of it: a number, a moment, or neither for the one in force now."""

    name: str
    version: int | None = None
    before: float | None = None  # the moment by which the version was in force


def checked_name(text: str) -> str:
    """The text, once it is known to be a name that can be given."""
    if not all(map(_PART.fullmatch, text.split("/"))):
        raise UnknownNameError(f"{text!r} cannot be a name: {_RULES}")
    if len(text) > _LONGEST:
        raise UnknownNameError(f"{text[:40]!r}... cannot be a name: it has more than {_LONGEST} characters")
    if text.lower().endswith((POINTER, *SUFFIXES)):
        raise UnknownNameError(
            f"{text!r} cannot be a name: {', '.join(SUFFIXES)} and {POINTER} are what its files are shown as"
        )
    return text


def parsed(text: str) -> Reference:
    """The reference that a person meant."""
    name, at, version = text.partition("@")
    checked_name(name)
    if not at:
        return Reference(name)
    if version.isascii() and version.isdigit():
        return Reference(name, version=int(version))
    try:
        return Reference(name, before=_moment(version))
    except ValueError as error:
        raise UnknownNameError(
            f"{version!r} in {text!r} is neither the number of a version nor a moment: write {name}@2, "
            f"{name}@2026-11-01 or {name}@2026-11-01T12:00 (UTC)"
        ) from error


def _moment(text: str) -> float:
    if len(text) <= len("2026-11-01"):
        day = date.fromisoformat(text)
        return (datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)).timestamp()
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def chosen(reference: Reference, history: Sequence[Name]) -> Name:
    """The version that is meant. history: newest first."""
    if not history:
        raise UnknownNameError(f"there is no name {reference.name!r}: `nectar ls --names` shows those there are")
    found = next((name for name in history if _is_meant(reference, name)), None)
    if found is None and reference.version is not None:
        raise UnknownNameError(
            f"{reference.name!r} has no version {reference.version}: the latest is {history[0].version}"
        )
    if found is None:
        raise UnknownNameError(
            f"{reference.name!r} is younger than that: it was first given {shown(history[-1].since)}"
        )
    if found.removed:
        raise UnknownNameError(
            f"the name {reference.name!r} was removed {shown(found.since)} by {found.by or 'somebody'}"
            + (f" ({found.note})" if found.note else "")
            + f"; earlier versions can be had as {reference.name}@{found.version - 1}"
        )
    return found


def _is_meant(reference: Reference, name: Name) -> bool:
    if reference.version is not None:
        return name.version == reference.version
    return reference.before is None or name.since <= reference.before


def shown(moment: float) -> str:
    """A moment, for people; it can be written behind an @."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
