"""What is run and cannot be read may change anything, however it came to run."""

import os
import py_compile
import subprocess
import sys
import zipapp

import pytest
from tests.recipes.projects import write_distribution

from nectar.keys import program_text

LIBRARY = "TABLE = {'a': 1}\n\ndef find(name):\n    return TABLE[name]\n"
LOADER = """\
import importlib.util

kept = []

def load(path):
    spec = importlib.util.spec_from_file_location("nt_plugin", path)
    kept.append(importlib.util.module_from_spec(spec))
    spec.loader.exec_module(kept[-1])
"""
SAYS = """\
import nt_gauge
import nectar

@nectar.memo
def find(name):
    return nt_gauge.find(name)

def said():
    print(find("a"), nectar.last_run().parts[-1].outcome)
"""
CHANGES = "import nt_gauge\nnt_gauge.TABLE['a'] = 2\n"
PROGRAM = "import nt_says\n{}nt_says.said()\n"


@pytest.fixture
def folder(tmp_path):
    """A folder with installed libraries, and a module of the program that says what a memoised function gives."""
    site = tmp_path / "site-packages"
    site.mkdir()
    write_distribution(site, "nt_gauge", "1.0", {"nt_gauge.py": LIBRARY})
    write_distribution(site, "nt_loader", "1.0", {"nt_loader.py": LOADER})
    (tmp_path / "nt_says.py").write_text(SAYS)
    return tmp_path


def run(folder, *options, given=""):
    """The lines that Python prints."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *options],
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "NECTAR_HOME": str(folder / "home"),
            "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "site-packages"), *sys.path]),
        },
        **({"input": given} if isinstance(given, str) else {"stdin": given}),
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def in_two_runs(folder, name, text_of):
    """What a program says that changes nothing, and then one that does. text_of: how it is written."""
    found = []
    for changes in ("", CHANGES):
        text_of(folder / name, PROGRAM.format(changes))
        found += run(folder, name)
    return found


def test_a_mark_at_the_beginning_is_no_reason_to_pass_a_source_over(folder):
    def write(path, text):
        path.write_text(text, encoding="utf-8-sig")

    assert in_two_runs(folder, "main.py", write) == ["1 computed", "2 uncacheable"]


def test_a_source_is_read_as_it_says_that_it_is_encoded(folder):
    def write(path, text):
        path.write_bytes(f"# -*- coding: latin-1 -*-\n# \xe9\n{text}".encode("latin-1"))

    assert in_two_runs(folder, "main.py", write) == ["1 computed", "2 uncacheable"]


def test_a_script_counts_whatever_it_is_called(folder):
    assert in_two_runs(folder, "main", lambda path, text: path.write_text(text)) == ["1 computed", "2 uncacheable"]


def test_what_lies_in_an_archive_counts(folder):
    def write(path, text):
        (folder / "app").mkdir(exist_ok=True)
        (folder / "app" / "__main__.py").write_text(text)
        zipapp.create_archive(folder / "app", path)

    assert in_two_runs(folder, "main.pyz", write) == ["1 computed", "2 uncacheable"]


def test_what_was_compiled_and_has_no_source_counts_by_what_it_uses(folder):
    def write(path, text):
        (folder / "main.py").write_text(text)
        py_compile.compile(str(folder / "main.py"), cfile=str(path))
        (folder / "main.py").unlink()

    assert in_two_runs(folder, "main.pyc", write) == ["1 computed", "2 uncacheable"]


def test_a_source_that_is_too_long_to_be_taken_apart_counts_by_what_it_uses(folder):
    def write(path, text):
        path.write_text(f"{text}DATA = {'x' * program_text._LONGEST!r}\n")

    assert in_two_runs(folder, "main.py", write) == ["1 computed", "2 uncacheable"]


HOOK = """\
import sys, importlib.abc, importlib.util

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "nt_hidden" else None

    def exec_module(self, module):
        exec(compile("import nt_gauge; nt_gauge.TABLE['a'] = 2", "nt_hidden", "exec"), vars(module))

sys.meta_path.insert(0, Finder())
"""


def test_a_module_that_a_loader_makes_without_a_file_may_change_anything(folder):
    (folder / "nt_hook.py").write_text(HOOK)
    assert run(folder, "-c", PROGRAM.format("import nt_hook\n")) == ["1 computed"]
    assert run(folder, "-c", PROGRAM.format("import nt_hook, nt_hidden\n")) == ["2 uncacheable"]
    reason = "import nt_hook, nt_hidden, nt_says, nectar\nnectar.fingerprint(nt_says.find.__wrapped__)\n"
    said = f"try:\n    {reason.splitlines()[1]}\nexcept Exception as error:\n    print(error)\n"
    assert "nt_hidden has no text that can be read" in "".join(run(folder, "-c", reason.splitlines()[0] + "\n" + said))


def test_modules_that_a_library_invents_are_no_part_of_the_program(folder):
    site = folder / "site-packages"
    made = "import sys, types, importlib.machinery as m\n"
    made += "part = sys.modules[__name__ + '.parts'] = types.ModuleType(__name__ + '.parts')\n"
    made += "part.__file__ = 'parts.py'\n"
    made += "other = sys.modules[__name__ + '.more'] = types.ModuleType(__name__ + '.more')\n"
    made += "other.__spec__ = m.ModuleSpec(__name__ + '.more', object())\n"
    write_distribution(site, "nt_invents", "1.0", {"nt_invents.py": made})
    assert run(folder, "-c", PROGRAM.format("import nt_invents\n")) == ["1 computed"]


def test_a_module_that_has_changed_its_class_counts(folder):
    special = "import sys, types\nsys.modules[__name__].__class__ = type('Special', (types.ModuleType,), {})\n"
    (folder / "nt_special.py").write_text(special + CHANGES)
    assert run(folder, "-c", PROGRAM.format("import nt_special\n")) == ["2 uncacheable"]


def test_a_program_that_python_reads_from_a_file_has_a_text(folder):
    text = folder / "text"
    text.write_text(PROGRAM.format(""))
    with text.open() as opened:
        assert run(folder, given=opened) == ["1 computed"]
    text.write_text(PROGRAM.format(CHANGES))
    with text.open() as opened:
        assert run(folder, "-", given=opened) == ["2 uncacheable"]


def test_the_program_that_comes_through_a_pipe_counts_once(folder):
    assert run(folder, "-", given=PROGRAM.format("")) == ["1 computed"], "it uses no library but by way of a module"


def test_a_text_of_an_option_that_runs_something_unseen_counts(folder):
    text = PROGRAM.format("exec(input())\n")
    assert run(folder, "-c", text, given="x = 1\n") == ["1 uncacheable"]
    launcher = "import sys;exec(eval(sys.stdin.readline()))"
    assert run(folder, "-c", launcher, given=repr(PROGRAM.format(""))) == ["1 computed"]


def test_a_plugin_that_a_library_has_loaded_before_anybody_looked_counts(folder):
    (folder / "plugin.py").write_text(CHANGES)
    loaded = "import nt_loader\nnt_loader.load('plugin.py')\n"
    assert run(folder, "-c", PROGRAM.format(loaded)) == ["2 uncacheable"]
    (folder / "plugin.py").write_text("x = 1\n")
    assert run(folder, "-c", PROGRAM.format(loaded)) == ["1 computed"]


def test_what_was_imported_counts_and_not_what_was_written_there_later(folder):
    write = "import pathlib\nedited = pathlib.Path('nt_edited.py')\nedited.write_text({!r})\n"
    changes = write.format(CHANGES) + "import nt_edited\n" + write.format("x = 1\n")
    (folder / "main.py").write_text(PROGRAM.format(changes))
    assert run(folder, "main.py") == ["2 uncacheable"]
    (folder / "main.py").write_text("import nt_says\nnt_says.said()\n" + changes + "nt_says.said()\n")
    assert run(folder, "-B", "main.py") == ["1 computed", "2 uncacheable"]
    harmless = write.format("x = 1\n") + "import nt_edited\n"
    (folder / "main.py").write_text(PROGRAM.format(harmless))
    assert run(folder, "main.py") == ["1 reused"], "compiled code says from what it was made"
    assert run(folder, "-B", "main.py") == ["1 reused"], "nobody says that anything else was there"


@pytest.mark.parametrize("limit", ["_MOST_FILES", "_MOST_STATEMENTS"])
def test_beyond_a_limit_anything_may_have_changed(folder, limit):
    (folder / "plugin.py").write_text(CHANGES)
    ran = {
        "_MOST_FILES": "import runpy\nrunpy.run_path(''.join(['plug', 'in.py']))\n",
        "_MOST_STATEMENTS": "import code\ncode.InteractiveConsole().runsource('x = 1')\n",
    }[limit]
    first = f"from nectar.keys import executed\nexecuted.{limit} = 0\nimport nt_says\nnt_says.said()\n"
    assert run(folder, "-c", first + "nt_says.said()\n")[0] == "1 computed"
    text = f"import nt_run\n{first}nt_run.ran()\nnt_says.said()\n"
    body = "".join(f"    {line}\n" for line in ran.splitlines())
    (folder / "nt_run.py").write_text(f"def ran():\n{body}")
    assert run(folder, "-c", text)[1].endswith("uncacheable")


NOTEBOOK = """
import linecache, gc
number = 0

def cell(text):
    global number
    number += 1
    name = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())

cell('import nt_says, nt_gauge')
cell('nt_says.said()')
for each in range(8):
    linecache.cache[f"/tmp/{each}.py"] = (1, 1.0, ["x"], f"/tmp/{each}.py")
cell('asked, gc.get_objects = gc.get_objects, None')
cell('nt_says.said()')
linecache.checkcache()
cell('gc.get_objects = asked; nt_gauge.TABLE["a"] = 2')
cell('nt_says.said()')
"""


def test_cells_count_however_many_texts_are_kept_and_no_object_is_looked_for(folder):
    (folder / "main.py").write_text(NOTEBOOK)
    assert [each.split()[1] for each in run(folder, "main.py")] == ["computed", "reused", "uncacheable"]
