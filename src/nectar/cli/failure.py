"""How a command ends when it cannot do what was asked: one paragraph on stderr, exit code 1, no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from nectar.cli.terminal import echo
from nectar.errors import NectarError, UncacheableError


class Failure(click.ClickException):
    """A command failed; its message has been written for people."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes the message to stderr, or to file."""
        echo(f"nectar: {self.message}", file=file, err=file is None)


@contextmanager
def reported(as_json: bool, **context: object) -> Iterator[None]:
    """Errors of Nectar inside the block end the command; with as_json, stdout gets them as an object too."""
    try:
        yield
    except (NectarError, Failure) as error:
        message = error.message if isinstance(error, Failure) else str(error)
        if as_json:
            echo(json.dumps({**context, "error": _described(error, message)}))
        raise Failure(message) from error


def _described(error: Exception, message: str) -> dict[str, object]:
    named = error.__cause__ or error if isinstance(error, Failure) else error  # a Failure speaks for its cause
    described: dict[str, object] = {"type": type(named).__name__, "message": message}
    if isinstance(error, UncacheableError):
        described["refusals"] = [
            {"kind": refusal.kind, "reason": refusal.reason, "place": refusal.place} for refusal in error.refusals
        ]
    return described
