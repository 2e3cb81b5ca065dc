"""Nectar gets between programs and Polars, or goes. Loaded with Polars, and so it loads next to nothing itself."""

from __future__ import annotations

from nectar.dialects.polars import engine, writers


def install() -> None:
    """From now on queries run through Nectar, and files that frames write are known by their content."""
    engine.install()
    writers.install()


def uninstall() -> None:
    """From now on everything runs as plain Polars."""
    writers.uninstall()
    engine.uninstall()
