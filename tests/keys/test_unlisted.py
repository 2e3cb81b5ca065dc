"""Code of the application that no entry of `sys.modules` leads to changes libraries like any other."""

import importlib
import sys
from unittest import mock

import pytest

from nectar.keys.changes import change_of

# This file must not look like one that loads modules itself.
LOADER = """
import importlib.util
def load(path):
    spec = importlib.util.spec_from_file_location("nt_plugin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_{}(module)
    return module
""".format("module")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Imports a module of the application with the given text, beside a library that takes everything."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "nt_gauges", mock.MagicMock(name="nt_gauges"))

    def load(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        made.append(name)
        return importlib.import_module(name)

    made = []
    yield load
    for name in made:
        sys.modules.pop(name, None)


def test_modules_that_are_in_no_list_count(program, tmp_path):
    loader = program("nt_loader", LOADER)
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("import nt_gauges\n")
    second.write_text("import nt_gauges\n\nnt_gauges.TABLE['a'] = 1")
    plugins = [loader.load(str(first))]
    assert not change_of("nt_gauges")
    plugins.append(loader.load(str(second)))
    assert change_of("nt_gauges") == "second.py:3"


def test_files_that_are_run_count(program, tmp_path):
    path = tmp_path / "run.py"
    path.write_text("import nt_gauges\n\nnt_gauges.TABLE['a'] = 1")
    program("nt_runner", f"import runpy\nimport nt_gauges\nrunpy.run_path({str(path)!r})")
    assert change_of("nt_gauges") == "nt_runner.py:3"


def test_texts_that_are_run_count(program):
    program("nt_text", "import nt_gauges\nexec('x = 3' if nt_gauges is None else 'nt_gauges.TABLE[1] = 2')")
    assert change_of("nt_gauges") == "nt_text.py:2"
