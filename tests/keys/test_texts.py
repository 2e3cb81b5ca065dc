"""What the program is made of, wherever it lies: what it does to libraries is found there."""

import linecache
import os
import subprocess
import sys

import pytest
from tests.recipes.projects import write_distribution

from nectar.keys import texts
from nectar.keys.changes import change_of
from nectar.keys.statements import assigned_to, changed_by_code

# A library with a table, and a function that looks something up in it.
LIBRARY = """\
TABLE = {'a': 1}

def find(name):
    return TABLE[name]

def put(name, value):
    TABLE[name] = value
"""
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


@pytest.mark.parametrize(
    "changed",
    [
        "nt_gauge.TABLE['a'] = 2",
        "nt_gauge.TABLE.update(a=2)",
        "nt_gauge.put('a', 2)",
        "from nt_gauge import TABLE\nTABLE['a'] = 2",
        "import sys\nsys.modules['nt_gauge'].TABLE['a'] = 2",
    ],
)
def test_a_text_that_nobody_can_read_again_may_change_what_it_uses(folder, changed):
    assert run(folder, "-", given=BEFORE + f"said()\n{changed}\nsaid()\n") == REFUSED


OTHER = """\
import os, math
import nectar, nt_setup

@nectar.memo
def count(number):
    return math.floor(number)

os.environ['NT_A'] = 'b'
count(1.5)
print(nectar.last_run().parts[-1].outcome)
"""


def test_a_text_that_nobody_can_read_again_does_not_concern_what_it_does_not_use(folder):
    assert run(folder, "-", given=OTHER) == ["computed"]


def test_a_first_look_in_a_thread_sees_what_other_threads_run(folder):
    looks = "import threading\nthread = threading.Thread(target=said)\nthread.start()\nthread.join()\n"
    assert run(folder, "-", given=BEFORE + looks + "nt_gauge.TABLE['a'] = 2\nsaid()\n") == REFUSED


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


@pytest.mark.parametrize(
    ("text", "used", "assigned"),
    [
        ("import nt_a\nnt_a.put()", {"nt_a"}, set()),
        ("import nt_a.b as c\nc.d[0] = 1", {"nt_a"}, {"nt_a"}),
        ("from nt_a.b import c\nc[0] = 1", {"nt_a"}, {"nt_a"}),
        ("from nt_a import b\nsetattr(b, 'c', 1)", {"nt_a"}, {"nt_a"}),
        ("from . import a\na.b = 1", set(), set()),
        ("import json\njson.dumps(1)", set(), set()),
        ("import json\njson.encoder.a = 1", set(), {"json"}),
        ("import os\nos.environ['a'] = 'b'", set(), set()),
        ("exec(input())", {"*"}, {"*"}),
        ("known['a'] = 1", {"*"}, {"*"}),
        ("print(number, unknown)", {"*"}, set()),
        ("print(number, len)", set(), set()),
        ("pytest.put()", {"pytest"}, set()),
        ("def f():\n    return pytest.put()", {"pytest"}, set()),
    ],
)
def test_what_code_without_a_text_may_change(text, used, assigned):
    code = compile(text, "<stdin>", "exec")
    assert changed_by_code([code], {"known": {}, "number": 1, "pytest": pytest}) == (used, assigned)


def test_names_are_known_from_one_statement_to_the_next():
    assert assigned_to(compile(text, "<stdin>", "single") for text in ("t = a.b", "t[0] = 1")) == {"a", "t"}


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its console keeps what is typed, and needs a terminal")
def test_statements_that_are_typed_count(folder):
    typed = PROGRAM.replace("\nsaid()", "\n\nsaid()")
    assert run(folder, "-i", "-q", given=typed) == REFUSED


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its console keeps what is typed, and needs a terminal")
@pytest.mark.parametrize("at", ["import nectar\n", "import nt_gauge, nt_setup\n"], ids=["after", "before"])
def test_statements_that_are_typed_before_the_first_look_count(folder, at):
    typed = BEFORE.replace(at, at + "nt_gauge.TABLE['a'] = 2\n").replace("\n\n", "\n\n\n")
    assert run(folder, "-i", "-q", given=typed + "\nsaid()\n") == ["2 uncacheable"]


def test_statements_of_a_console_within_the_program_count(folder):
    typed = "console = code.InteractiveInterpreter(globals())\nconsole.runsource({!r})\n"
    (folder / "main.py").write_text(
        "import code\n" + BEFORE + "said()\n" + typed.format("nt_gauge.TABLE['a'] = 2") + "said()\n"
    )
    assert run(folder, "main.py") == ["1 computed", "2 uncacheable"]


def test_statements_of_a_console_with_names_of_its_own_count(folder):
    typed = "code.InteractiveConsole({}).runsource(\"import nt_gauge; nt_gauge.TABLE['a'] = 2\")\n"
    (folder / "main.py").write_text("import code\n" + BEFORE + "said()\n" + typed + "said()\n")
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
    monkeypatch.setattr(texts, "_cells", {})

    def keep(name, text):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile("", name, "exec"))

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
    before = texts.version_of_program()
    for number in range(3):
        exec(compile(f"x = {number}", "<text>", "exec"), {})
    assert texts.version_of_program() == before
