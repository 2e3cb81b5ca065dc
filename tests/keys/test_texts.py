"""What the program is made of, wherever it lies: what it does to libraries is found there."""

import linecache
import os
import subprocess
import sys

import pytest
from tests.recipes.projects import write_distribution

from nectar.keys import texts
from nectar.keys.changes import change_of
from nectar.keys.statements import assigned_to

# A library with a table, and a function that looks something up in it.
LIBRARY = "TABLE = {'a': 1}\n\ndef find(name):\n    return TABLE[name]\n"
BEFORE = """\
import nt_gauge, nt_setup
import nectar

@nectar.memo
def find(name):
    return nt_gauge.find(name)

def said():
    print(find("a"), nectar.last_run().parts[-1].outcome)

"""
PROGRAM = BEFORE + "said()\nnt_gauge.TABLE['a'] = 2\nsaid()\n"
REFUSED = ["1 uncacheable", "2 uncacheable"]


@pytest.fixture
def folder(tmp_path):
    """A folder with an installed library, and a module of the program."""
    site = tmp_path / "site-packages"
    site.mkdir()
    write_distribution(site, "nt_gauge", "1.0", {"nt_gauge.py": LIBRARY})
    (tmp_path / "nt_setup.py").write_text("x = 1\n")
    return tmp_path


def run(folder, *options, given=""):
    """The lines that Python prints. given: its input, a text for a pipe or a file."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *options],
        env={
            **os.environ,
            "NECTAR_HOME": str(folder / "home"),
            "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "site-packages"), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        **({"input": given} if isinstance(given, str) else {"stdin": given}),
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_the_text_of_an_option_counts(folder):
    assert run(folder, "-c", PROGRAM) == REFUSED
    assert run(folder, "-B", "-Xdev", "-c", BEFORE + "said()") == ["1 computed"], "it is no concern of other programs"


def test_the_text_of_an_option_that_stands_right_behind_it_counts(folder):
    assert run(folder, f"-Bc{PROGRAM}") == REFUSED


def test_a_text_that_is_read_from_a_file_counts(folder):
    path = folder / "text"
    path.write_text(PROGRAM)
    with path.open() as opened:
        assert run(folder, given=opened) == REFUSED


def test_a_text_that_nobody_can_read_again_counts(folder):
    assert run(folder, "-", given=PROGRAM) == REFUSED
    unchanged = BEFORE + "import os\nos.environ['NT_A'] = 'b'\nx = [1]\nx[0] = nt_gauge.TABLE['a']\nsaid()\n"
    assert run(folder, "-", given=unchanged) == ["1 computed"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.b['c'] = d.e", {"a"}),
        ("a.b.c = d(e)", {"a"}),
        ("a['b', c] += d", {"a"}),
        ("del a.b[c.d], e.f", {"a", "e"}),
        ("a.b(c)['d'] = e", {"a"}),
        ("a(b).c[:2] = d", {"a"}),
        ("t = a.b.c\nu = t.d\nu['e'] = f", {"a", "t", "u"}),
        ("t = a(b)\nt['c'] = d", {"t"}),
        ("def f(x):\n    a.b[x] = c", {"a"}),
        ("(a if b else c).d = 1", {"a", "c"}),  # on some versions of Python bytecode does not tell: all names count
        ("def f(x):\n    x.y = a.b", {"y", "a", "b"}),
        ("a = b\nprint(a.c)", set()),
        ("class A:\n    b = a.c", set()),
    ],
)
def test_names_that_code_assigns_to_parts_of(text, names):
    found = assigned_to([compile(text, "<stdin>", "exec")])
    assert found >= names if "+=" in text or " if " in text else found == names


def test_names_are_known_from_one_statement_to_the_next():
    assert assigned_to(compile(text, "<stdin>", "single") for text in ("t = a.b", "t[0] = 1")) == {"a", "t"}


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its console keeps what is typed, and needs a terminal")
def test_statements_that_are_typed_count(folder):
    typed = PROGRAM.replace("\nsaid()", "\n\nsaid()")
    assert run(folder, "-i", "-q", given=typed) == ["1 computed", "2 uncacheable"]


def test_statements_of_a_console_within_the_program_count(folder):
    typed = "console = code.InteractiveInterpreter(globals())\nconsole.runsource({!r})\n"
    (folder / "main.py").write_text(
        "import code\n" + BEFORE + "said()\n" + typed.format("nt_gauge.TABLE['a'] = 2") + "said()\n"
    )
    assert run(folder, "main.py") == ["1 computed", "2 uncacheable"]


def test_a_module_that_is_loaded_again_counts_as_it_is_now(folder):
    again = "import pathlib, importlib\npathlib.Path('nt_setup.py').write_text({!r})\nimportlib.reload(nt_setup)\n"
    changed = again.format("import nt_gauge\nnt_gauge.TABLE['a'] = 2\n")
    (folder / "main.py").write_text(BEFORE + "said()\n" + changed + "said()\n")
    assert run(folder, "main.py") == ["1 computed", "2 uncacheable"]


def test_a_file_that_is_run_and_becomes_no_module_counts(folder):
    (folder / "change.py").write_text("import nt_gauge\nnt_gauge.TABLE['a'] = 2\n")
    path = "path = ''.join(['change', '.py'])"
    ran = f"def ran():\n    {path}\n    exec(compile(open(path).read(), path, 'exec'))\n"
    (folder / "main.py").write_text(BEFORE + ran + "said()\nran()\nsaid()\n")
    assert run(folder, "main.py")[1] == "2 uncacheable"


@pytest.fixture
def cells(monkeypatch):
    """Keeps texts as a notebook does."""
    monkeypatch.setattr(linecache, "cache", dict(linecache.cache))

    def keep(name, text):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)

    return keep


def test_the_cells_of_a_notebook_count_as_one_text(cells):
    cells("<ipython-input-1-aa>", "import fractions as gauges")
    cells("<ipython-input-2-bb>", "%no python")
    cells("<ipython-input-3-cc>", "def main():\n    pass\n\ngauges.TABLE['a'] = 1")
    assert change_of("fractions") == "<ipython-input-3-cc>:4"
    cells("<attrs generated init a.B>", "import statistics\nstatistics.TABLE[0] = 1")
    assert not change_of("statistics"), "a library has written that"
    cells(f"{os.sep}tmp{os.sep}ipykernel_1{os.sep}2.py", "import statistics\nstatistics.TABLE[0] = 1\n")
    assert change_of("statistics").endswith("2.py:2")


def test_what_is_run_without_a_file_is_no_reason_to_look_again():
    before = texts.version()
    for number in range(3):
        exec(compile(f"x = {number}", "<text>", "exec"), {})
    assert texts.version() == before
