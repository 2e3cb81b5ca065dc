from pathlib import Path

import pytest

import nectar.cli
from nectar.cli.terminal import echo, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ü, 漢字 and 🐝\n\tsecond line", "plain, ü, 漢字 and 🐝\n\tsecond line"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("back\x08\rover", "back\\x08\\rover"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("gnp.\u202efdp", "gnp.\\u202efdp"),
        ("half \udcff", "half \\udcff"),
    ],
)
def test_nothing_is_left_that_a_terminal_obeys(capsys, text, shown):
    assert printable(text) == shown
    echo(text)
    assert capsys.readouterr().out == f"{shown}\n"


def test_commands_print_through_it_alone():
    """Demos print what they have made themselves."""
    folder = Path(nectar.cli.__file__).parent
    direct = [
        path.name for path in folder.glob("*.py") if "click.echo(" in path.read_text() or ".secho(" in path.read_text()
    ]
    assert direct == ["terminal.py"]
