"""The `nectar` command: its groups of commands and its exit codes.

0: good. 1: failed. 2: wrong usage. Errors are a paragraph on stderr; stdout carries results only.
"""

from __future__ import annotations

import click

from nectar import __version__
from nectar.cli.demo import demo
from nectar.cli.fingerprints import fingerprint, why


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="nectar", message="%(prog)s %(version)s")
def main() -> None:
    """Recognise computations that were done before.

    Today: fingerprints of Python functions. Start with `nectar demo`.
    """


main.add_command(demo)
main.add_command(fingerprint)
main.add_command(why)
