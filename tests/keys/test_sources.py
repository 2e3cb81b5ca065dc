"""The functions a fingerprint is made from, with their texts as they were."""

import importlib.util
import os
import subprocess
import sys

import pytest

from nectar.keys.outcome import outcome_of
from nectar.keys.sources import functions_of, text_of, used_as
from nectar.trust.literals import code_without_secrets

PROGRAM = '''
RATE = 3

def helper(x):
    return x * RATE

def clean(x):
    """Says what it does."""
    return [helper(each) for each in x]

double = lambda x: x + x

class Cleaner:
    def run(self, x):
        return clean(x)
'''


def load(path, text=PROGRAM, name="etl_of_a_test"):
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_function_reached_is_told_with_its_text(tmp_path):
    module = load(tmp_path / "etl.py")
    found = {each.name.rpartition(".")[2]: each for each in functions_of(outcome_of(module.clean).walk)}
    assert set(found) == {"clean", "helper"}
    assert (
        found["clean"].text
        == '''def clean(x):
    """Says what it does."""
    return [helper(each) for each in x]
'''
    )
    assert found["helper"].place == "etl.py:4"
    assert found["helper"].text == "def helper(x):\n    return x * RATE\n"


def test_methods_and_lambdas(tmp_path):
    module = load(tmp_path / "etl.py")
    assert used_as(module.Cleaner.run).name == "etl_of_a_test.Cleaner.run"
    assert "return clean(x)" in used_as(module.Cleaner.run).text
    assert used_as(module.double).text == "double = lambda x: x + x\n"


def test_the_text_of_a_file_that_was_edited_since_is_not_told(tmp_path):
    module = load(tmp_path / "etl.py")
    before = text_of(module.clean.__code__)
    (tmp_path / "etl.py").write_text(PROGRAM.replace("x * RATE", "x * RATE + 1"), encoding="utf-8")
    os.utime(tmp_path / "etl.py", (1, 1))
    assert text_of(module.clean.__code__) == before, "it is the same in the new file"
    assert text_of(module.helper.__code__) == ""
    (tmp_path / "etl.py").unlink()
    assert text_of(module.clean.__code__) == ""


def test_another_function_in_the_same_lines_is_not_taken_for_it(tmp_path):
    module = load(tmp_path / "etl.py")
    (tmp_path / "etl.py").write_text(PROGRAM.replace("def helper", "def hidden"), encoding="utf-8")
    assert text_of(module.helper.__code__) == ""


def test_code_without_a_file(tmp_path):
    namespace = {"__name__": "made"}
    exec("def f(x): return x + 1\ndef g(x): return x + 2", namespace)
    first, second = used_as(namespace["f"]), used_as(namespace["g"])
    assert first.text == second.text == ""
    assert first.digest != second.digest
    exec("def f(x): return x + 3", namespace)
    assert used_as(namespace["f"]).digest != first.digest


def test_digests_are_the_same_in_every_process(tmp_path):
    load(tmp_path / "etl.py", PROGRAM + "\ndef sets(x): return x in {'a', 'b', 'c', 'd'}\n")
    code = (
        "import etl\nfrom nectar.keys.sources import used_as\n"
        "print(*[used_as(f).digest.hex() for f in (etl.clean, etl.double, etl.sets)])"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1


@pytest.mark.parametrize(
    "line",
    [
        'PASSWORD = "hunter2"',
        "password: str = 'hunter2'",
        'connect(user="me", api_key="hunter2")',
        'settings["secret_token"] = "hunter2"',
        "{'aws_secret_access_key': 'hunter2'}",
        'url = "postgres://me:hunter2@host/db"',
        "TOKEN = b'hunter2'",
        'passwd = """hunter2"""',
    ],
)
def test_credentials_in_a_text_are_left_out(line):
    assert "hunter2" not in code_without_secrets(f"def f():\n    {line}\n    return 1\n")


def test_other_text_stays_as_it_is():
    text = 'def f(tokens, x="a"):\n    words = "token"  # of a sentence: "x"\n    return {"a": "b@c"}\n'
    assert code_without_secrets(text) == text
