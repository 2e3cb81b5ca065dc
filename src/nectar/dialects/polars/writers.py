"""Files that frames write without a query that Nectar's engine would see: learned as those of sinks are.

Polars writes Parquet and Arrow files by a query on an engine that it finds by name, and text by one on an engine of its
own, which all eager methods share. Law: what is written, returned and raised is what it is without Nectar.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import polars as pl

from nectar.dialects.polars.engine import learn_content
from nectar.session import current
from nectar.trust.secrets import logger

_METHODS: Final = ("write_csv", "write_ndjson")
_replaced: Final[dict[str, Callable[..., Any]]] = {}
_log: Final = logger("nectar.polars")


def install() -> None:
    """From now on files that frames write are learned."""
    for name in _METHODS:
        method = getattr(pl.DataFrame, name)
        if not hasattr(method, "learns"):  # two threads may be here at once: what is put back is always plain
            _replaced[name] = method
            setattr(pl.DataFrame, name, _learning(method))


def uninstall() -> None:
    """From now on frames write as without Nectar."""
    while _replaced:
        setattr(pl.DataFrame, *_replaced.popitem())


def _learning(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, after which the file it has written is learned."""

    @functools.wraps(method)
    def write(self: pl.DataFrame, *arguments: Any, **named: Any) -> Any:
        done = method(self, *arguments, **named)
        target = arguments[0] if arguments else named.get("file")
        if isinstance(target, str | Path):
            _learn(str(target))
        return done

    write.learns = True  # type: ignore[attr-defined]
    return write


def _learn(path: str) -> None:
    try:
        session = current()
        if session is not None:
            learn_content(session, path)
    except Exception:  # the file is there; whoever reads it knows it by its origin
        _log.debug("%s is not learned", path, exc_info=True)
