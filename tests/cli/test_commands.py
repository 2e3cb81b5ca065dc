"""The command line as a person meets it: what it prints where, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nectar

HEX = 64

PROGRAM = {
    "etl.py": "from cleaning import clean\n\ndef load(x):\n    return clean(x) + 1\n",
    "cleaning.py": "SCALE = 3\n\ndef clean(x):\n    return x * SCALE\n",
    "clocked.py": "import time\n\ndef stamp(x):\n    return x, time.time()\n",
    "noisy.py": "print('hello from the module')\n\ndef f(x):\n    return x\n",
    "boxes.py": "class Box:\n    def get(self):\n        return 1\n",
    "broken.py": "raise ValueError('not today')\n",
    "leaving.py": "import sys\nsys.exit(0)\n",
    "needy.py": "import no_such_dependency\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return write(tmp_path, PROGRAM)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(nectar.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-P", "-m", "nectar.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )


def failure(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_version(here):
    done = run(here, "--version")
    assert done.stdout == f"nectar {nectar.__version__}\n"


def test_help_names_every_command(here):
    text = run(here, "--help").stdout
    assert all(command in text for command in ("demo", "fingerprint", "why"))


def test_fingerprint_prints_hex_and_nothing_else(here):
    done = run(here, "fingerprint", "etl:load")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip()) == HEX
    assert int(done.stdout, 16)


def test_module_and_path_give_one_fingerprint(here, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    by_name = run(here, "fingerprint", "etl:load").stdout
    assert run(here, "fingerprint", "etl.py:load").stdout == by_name
    assert run(elsewhere, "fingerprint", "../etl.py:load").stdout == by_name
    assert run(elsewhere, "fingerprint", f"{here / 'etl.py'}:load").stdout == by_name


def test_path_inside_a_package_is_imported_as_part_of_it(tmp_path):
    files = {"shop/__init__.py": "", "shop/a.py": "from .b import g\n\ndef f(x):\n    return g(x)\n"}
    write(tmp_path, {**files, "shop/b.py": "def g(x):\n    return x\n"})
    by_path = run(tmp_path, "fingerprint", "shop/a.py:f")
    assert by_path.returncode == 0, by_path.stderr
    assert by_path.stdout == run(tmp_path, "fingerprint", "shop.a:f").stdout


def test_file_named_like_a_loaded_module_is_not_mistaken_for_it(tmp_path):
    write(tmp_path, {"json.py": "def dumps(x):\n    return x + 41\n"})
    mine = run(tmp_path, "fingerprint", "json.py:dumps")
    theirs = run(tmp_path, "fingerprint", "json:dumps")
    assert mine.returncode == 0, mine.stderr
    assert mine.stdout != theirs.stdout


def test_method_is_found_by_its_dotted_name(here):
    assert run(here, "fingerprint", "boxes:Box.get").returncode == 0


def test_what_a_module_prints_goes_to_stderr(here):
    done = run(here, "fingerprint", "noisy:f", "--json")
    assert set(json.loads(done.stdout)) == {"target", "fingerprint", "scheme"}
    assert "hello from the module" in done.stderr


def test_trace_shows_the_helper(here):
    done = run(here, "fingerprint", "etl:load", "--trace")
    first, *tree = done.stdout.splitlines()
    assert len(first) == HEX
    assert any("clean" in line for line in tree)


def test_trace_as_json(here):
    record = json.loads(run(here, "fingerprint", "etl:load", "--trace", "--json").stdout)
    assert "clean" in json.dumps(record["trace"])


def test_refusal_says_why_and_ends_with_1(here):
    done = run(here, "fingerprint", "clocked:stamp")
    assert "time.time" in failure(done, 1)
    assert done.stdout == ""


def test_refusal_as_json(here):
    done = run(here, "fingerprint", "clocked:stamp", "--json")
    failure(done, 1)
    record = json.loads(done.stdout)
    assert record["target"] == "clocked:stamp"
    assert record["error"]["type"] == "UncacheableError"
    assert record["error"]["refusals"][0]["kind"] == "clock"


def test_why_says_what_changed_between_two_folders(here, tmp_path):
    other = write(tmp_path / "other", {**PROGRAM, "cleaning.py": PROGRAM["cleaning.py"].replace("3", "4")})
    done = run(tmp_path, "why", "etl.py:load", f"{other / 'etl.py'}:load")
    assert done.returncode == 0, done.stderr
    assert "SCALE" in done.stdout
    assert "4" in done.stdout


def test_why_of_two_functions_as_json(here):
    record = json.loads(run(here, "why", "etl:load", "cleaning:clean", "--json").stdout)
    assert record["same"] is False
    assert record["first"]["fingerprint"] != record["second"]["fingerprint"]
    assert record["explanation"]


def test_why_of_the_same_function_says_so(here):
    record = json.loads(run(here, "why", "etl:load", "etl.py:load", "--json").stdout)
    assert record["same"] is True


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("etl", "module:function"),
        ("etl:", "module:function"),
        (":load", "module:function"),
        ("etl:lo ad", "module:function"),
        ("nowhere:f", "nowhere"),
        ("etl.inner:f", "etl.inner"),
        ("nowhere.py:f", "nowhere.py"),
        ("etl:lod", "lod"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(here, target, said):
    assert said in failure(run(here, "fingerprint", target), 2)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("broken:f", "ValueError: not today"),
        ("broken.py:f", "ValueError: not today"),
        ("leaving:f", "SystemExit"),
        ("needy:f", "no_such_dependency"),
    ],
)
def test_module_that_cannot_be_imported_ends_with_1(here, target, said):
    assert said in failure(run(here, "fingerprint", target), 1)


def test_module_that_cannot_be_imported_as_json(here):
    done = run(here, "fingerprint", "broken:f", "--json")
    failure(done, 1)
    assert json.loads(done.stdout)["error"]["type"] == "ValueError"


def test_unknown_command_ends_with_2(here):
    failure(run(here, "fingerprnt"), 2)
