"""Captured modules are imported from their texts, before any other of their names."""

import importlib
import inspect
import sys

import pytest

from nectar.recipes.importing import CapturedModules
from nectar.recipes.recipe import Module, digest_of_text


def captured(texts, packages=(), folder="/nowhere"):
    modules = [
        Module(name, name in packages, f"{folder}/{name.replace('.', '/')}.py", digest_of_text(text))
        for name, text in texts.items()
    ]
    return CapturedModules(modules, texts)


@pytest.fixture
def install():
    installed = []

    def install(finder):
        finder.install()
        installed.append(finder)

    yield install
    for finder in installed:
        finder.uninstall()


def test_a_package_and_its_modules_are_imported_from_texts(install):
    texts = {
        "captured_one": "from . import two\nLIMIT = 3",
        "captured_one.two": "from .three import deep\ndef f(x):\n    return deep(x)",
        "captured_one.three": "def deep(x):\n    return x + 1",
    }
    install(captured(texts, packages={"captured_one"}))
    module = importlib.import_module("captured_one.two")
    assert module.f(1) == 2
    assert inspect.getsource(module.f).rstrip() == "def f(x):\n    return deep(x)"
    assert importlib.import_module("captured_one").LIMIT == 3


def test_the_text_wins_over_a_file_of_the_same_name(install, tmp_path, monkeypatch):
    (tmp_path / "captured_two.py").write_text("VALUE = 'file'\ndef f():\n    return 'from the file'\n")
    monkeypatch.syspath_prepend(tmp_path)
    install(
        captured({"captured_two": "VALUE = 'recipe'\ndef f():\n    return 'from the text'\n"}, folder=str(tmp_path))
    )
    module = importlib.import_module("captured_two")
    assert module.VALUE == "recipe"
    assert "from the text" in inspect.getsource(module.f)
    assert [path.name for path in tmp_path.iterdir()] == ["captured_two.py"]  # nothing was written


def test_what_was_not_captured_is_not_found_in_a_captured_package(install, tmp_path, monkeypatch):
    (tmp_path / "captured_three").mkdir()
    (tmp_path / "captured_three" / "__init__.py").write_text("")
    (tmp_path / "captured_three" / "later.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    install(captured({"captured_three": ""}, packages={"captured_three"}, folder=str(tmp_path)))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("captured_three.later")


def test_modules_are_forgotten_afterwards():
    finder = captured({"captured_four": "x = 1"})
    finder.install()
    importlib.import_module("captured_four")
    finder.uninstall()
    assert "captured_four" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("captured_four")
