"""The command line, one file per group of commands. The only part of Nectar that prints."""

from nectar.cli.app import main

__all__ = ["main"]
