"""Files that frames write without a query that Nectar's engine would see: learned as those of sinks are.

Polars writes Parquet and Arrow files by a query on an engine that it finds by name, and text by one on an engine of its
own, which all eager methods share. Law: what is written, returned and raised is what it is without Nectar.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import polars as pl

from nectar.dialects.polars.engine import learn_content
from nectar.session import current

_METHODS: Final = ("write_csv", "write_ndjson")
_replaced: Final[dict[str, Callable[..., Any]]] = {}
_log: Final = logging.getLogger("nectar.polars")


def install() -> None:
    """From now on files that frames write are learned."""
    for name in _METHODS if not _replaced else ():
        _replaced[name] = getattr(pl.DataFrame, name)
        setattr(pl.DataFrame, name, _learning(_replaced[name]))


def uninstall() -> None:
    """From now on frames write as without Nectar."""
    for name, method in _replaced.items():
        setattr(pl.DataFrame, name, method)
    _replaced.clear()


def _learning(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, after which the file it has written is learned."""

    @functools.wraps(method)
    def write(self: pl.DataFrame, *arguments: Any, **named: Any) -> Any:
        done = method(self, *arguments, **named)
        target = arguments[0] if arguments else named.get("file")
        if isinstance(target, str | Path):
            _learn(str(target))
        return done

    return write


def _learn(path: str) -> None:
    try:
        session = current()
        if session is not None:
            learn_content(session, path)
    except Exception:  # the file is there; whoever reads it knows it by its origin
        _log.debug("%s is not learned", path, exc_info=True)
