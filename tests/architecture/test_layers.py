"""The contracts of import-linter see what they should see: a forbidden import is found, the tree as it is passes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source tree that a test may break."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(folder / 'src')!r}); sys.argv[1:] = ['--no-cache']; {LINT}"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_layers_hold(copy):
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("model/refusal.py", "import nectar.keys.scheme"),
        ("keys/scheme.py", "import nectar.cli.app"),
        ("keys/scheme.py", "import polars"),
        ("keys/scheme.py", "import click"),
        ("cli/app.py", "import numpy"),
        ("session.py", "import pyspark"),
        ("dialects/polars/plan.py", "import pyspark"),
    ],
)
def test_import_in_the_wrong_direction_is_found(copy, file, line):
    path = copy / "src" / "nectar" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr


def test_new_part_without_a_layer_is_found(copy):
    (copy / "src" / "nectar" / "stray.py").write_text("", encoding="utf-8")
    done = lint(copy)
    assert done.returncode == 1
    assert "stray" in done.stdout
