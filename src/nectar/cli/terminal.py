"""What the command line prints: text in which nothing is left that a terminal would obey.

In: text with names of files, notes and messages, which others may have chosen. Out: the same, with each control
character written as people can read it. Law: only styles of our own reach a terminal.
"""

from __future__ import annotations

import re
from typing import IO, Any, Final

import click

# Control characters but tabs and line feeds; marks that turn the direction of what follows; half characters.
_OBEYED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text without anything that a terminal would obey."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def echo(text: object = "", *, err: bool = False, file: IO[str] | None = None) -> None:
    """Prints a line."""
    click.echo(printable(str(text)), err=err, file=file)


def secho(text: object = "", **styles: Any) -> None:
    """Prints a line with a style."""
    click.secho(printable(str(text)), **styles)
