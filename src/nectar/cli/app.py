"""The `nectar` command: its commands and its exit codes.

0: good. 1: failed, or something is wrong. 2: wrong usage. Errors are a paragraph on stderr; stdout carries results.
"""

from __future__ import annotations

import importlib
from typing import Final

import click

from nectar import __version__

# A command loads its own part of Nectar and no other: a fingerprint needs no catalog, a listing needs no bytecode.
COMMANDS: Final = {
    "run": "nectar.cli.running",
    "explain": "nectar.cli.explaining",
    "demo": "nectar.cli.demo",
    "fingerprint": "nectar.cli.fingerprints",
    "why": "nectar.cli.fingerprints",
    "ls": "nectar.cli.listing",
    "show": "nectar.cli.showing",
    "lineage": "nectar.cli.lineages",
    "export": "nectar.cli.exporting",
    "mount": "nectar.cli.mounting",
    "init": "nectar.cli.trusting",
    "trust": "nectar.cli.trusting",
    "pin": "nectar.cli.pins",
    "unpin": "nectar.cli.pins",
    "rm": "nectar.cli.removing",
    "stats": "nectar.cli.statistics",
    "rebuild": "nectar.cli.rebuilding",
    "gc": "nectar.cli.collection",
    "check": "nectar.cli.checking",
    "forget": "nectar.cli.forgetting",
}


class Commands(click.Group):
    """Commands that are loaded when they are called, listed in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="nectar", message="%(prog)s %(version)s")
def main() -> None:
    """Recognise computations that were done before, and keep their results.

    Start with `nectar demo`; then `nectar run your_program.py`. What is kept: `nectar ls`, `nectar stats`.
    """
