"""What is made in homes, stores and configuration is made by `trust/`, which makes it private and follows no link."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "nectar"
MAKERS = {"mkdir", "makedirs", "mkfifo", "mknod", "mkdtemp", "TemporaryDirectory", "symlink", "symlink_to"}
FREE = {  # what may make folders and files by itself, and where
    "trust/files.py": "the makers",
    "trust/folders.py": "the makers",
    "store/remote.py": "behind a URL, where there are no modes",
    "cli/demos": "in a folder of their own, made by tempfile",
    "recipes/rebuild.py": "tempfile, which makes a private folder",
    "dialects/spark/sight.py": "tempfile",
    "dialects/spark/incremental/files.py": "below a private folder made by tempfile",
    "dialects/spark/incremental/delta.py": "as above",
    "dialects/polars/incremental/extents.py": "tempfile",
}


def makers(path: Path) -> list[str]:
    """Calls in a file that make something."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in MAKERS:
                found.append(f"{path.name}:{node.lineno} {name}")
            if name == "open" and any(getattr(each, "attr", "") == "O_CREAT" for each in ast.walk(node)):
                found.append(f"{path.name}:{node.lineno} O_CREAT")
    return found


def test_only_trust_makes_folders_and_files():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        if not any(where == free or where.startswith(f"{free}/") for free in FREE):
            found += [f"{where}: {each}" for each in makers(path)]
    assert found == [], "use nectar.trust.files or nectar.trust.folders"


@pytest.mark.parametrize("where", sorted(FREE))
def test_no_exception_is_left_over(where):
    path = SOURCE / where
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert any(map(makers, files)), f"{where} makes nothing any more"
