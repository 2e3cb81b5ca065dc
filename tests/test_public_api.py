"""The names `nectar` offers, and how they are loaded."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nectar

PUBLIC = {
    "Dataset",
    "File",
    "Fingerprint",
    "Folder",
    "NectarError",
    "NectarWarning",
    "PolarsEngine",
    "RunReport",
    "UncacheableError",
    "UnencodableError",
    "UserError",
    "aggregate",
    "collect",
    "depends_on",
    "disable",
    "enable",
    "explain",
    "fingerprint",
    "last_run",
    "memo",
    "open",
    "pure",
    "register_fingerprint",
    "reuse",
    "save",
    "scan",
    "trace",
    "valid_for",
    "why",
}


def test_public_names_are_exactly_these():
    assert set(nectar.__all__) == PUBLIC
    assert len(nectar.__all__) == len(PUBLIC)
    assert set(dir(nectar)) == PUBLIC | {"__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_can_be_loaded_and_is_described(name):
    value = getattr(nectar, name)
    assert value is getattr(nectar, name)
    assert value.__name__ == name
    assert value.__doc__


def test_type_checkers_see_the_same_names_from_the_same_homes():
    tree = ast.parse(Path(nectar.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == nectar._HOMES


def test_star_import_brings_the_public_names():
    namespace: dict[str, object] = {}
    exec("from nectar import *", namespace)
    assert set(namespace) - {"__builtins__"} == PUBLIC


def test_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no attribute 'fingerprnt'"):
        nectar.fingerprnt  # noqa: B018


def test_no_package_has_the_name_of_a_public_name():
    root = Path(nectar.__file__).parent
    assert {path.stem for path in root.iterdir()} & PUBLIC == set()


def test_import_alone_imports_nothing_else():
    code = "import sys; before = set(sys.modules); import nectar; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"nectar", "importlib", "importlib._bootstrap", "warnings", "_warnings"} | {
        "importlib._bootstrap_external", "nectar.arrival", "__future__",
    }  # fmt: skip


def test_package_is_marked_as_typed():
    assert (Path(nectar.__file__).parent / "py.typed").is_file()
