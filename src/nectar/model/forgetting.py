"""What is to be forgotten for good, and what was."""

from __future__ import annotations

from msgspec import Struct, field


class Asked(Struct, frozen=True):
    """What is to be forgotten.

    files: paths and URLs, those of folders included. people: users, or users at machines. texts: whatever they are.
    keys: of results that hold one of the texts. others: names that only begin or end like those of the files.
    """

    files: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    keys: tuple[bytes, ...] = ()
    others: tuple[str, ...] = ()

    def is_person(self, by: str) -> bool:
        """Whether somebody is one of the people, or named by one of the texts."""
        return by in self.people or by.partition("@")[0] in self.people or any(each in by for each in self.texts)

    def is_file(self, url: str) -> bool:
        """Whether a file is one of them, or lies in one of them, or has one of the texts in its name."""
        below = any(url == each or url.startswith(f"{each.rstrip('/')}/") for each in self.files)
        return below or any(text in url for text in self.texts)


class Forgotten(Struct, frozen=True):
    """What is gone, or would be.

    rows: of the catalog, by table. keys: of results. names: with versions that are gone. files: beside the catalog.
    damaged: results of which nobody can tell. left: what still holds a text, or may, and why. others: names in the
    catalog that only begin or end like those of the files, and stay.
    """

    rows: dict[str, int] = field(default_factory=dict)
    keys: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    damaged: tuple[bytes, ...] = ()
    left: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.keys or self.files or self.damaged)
