"""What the core imports, looked at in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

import nectar

ROOT = Path(nectar.__file__).parent
HEAVY = ("numpy", "pandas", "polars", "pyarrow")
ENGINES = ("polars", "spark")
LAZY = (*HEAVY, "pyspark", "pysail", "grpc", "click", "importlib.metadata")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def belongs_to_a_library(name: str) -> bool:
    """Encoders of a library's values, and the dialect of an engine: loaded only where the library is."""
    if name.startswith("nectar.dialects."):
        return name.split(".")[2] in ENGINES
    return name.startswith("nectar.keys.values.") and any(
        name.rpartition(".")[2].startswith(library) for library in (*HEAVY, "arrow")
    )


CORE = [
    name
    for name in sorted(map(module_name, ROOT.rglob("*.py")))
    if not name.startswith("nectar.cli") and not belongs_to_a_library(name)
]


def loaded_by(*names: str, of: tuple[str, ...]) -> list[str]:
    """Which of the modules `of` are loaded after importing all names, in a fresh interpreter."""
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {of!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_import_nectar_loads_nothing_heavy():
    assert loaded_by("nectar", of=LAZY) == []


def test_no_module_of_the_core_loads_a_data_library():
    if found := loaded_by(*CORE, of=(*HEAVY, "click")):
        culprits = [name for name in CORE if loaded_by(name, of=(*HEAVY, "click"))]
        pytest.fail(f"importing {culprits} also imports {found}; only nectar.keys.values.<library> may do that")


def test_fingerprint_of_a_plain_function_loads_no_data_library():
    code = (
        "import sys, nectar\n"
        "def f(x): return x + 1\n"
        "nectar.fingerprint(f)\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
