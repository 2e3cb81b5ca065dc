"""SECURITY.md: every test that it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py|\.\.\.)(?:::(\w+))?`")


def test_every_test_that_is_named_is_there():
    path, missing, found = "", [], 0
    for file, test in NAMED.findall(PAGE):
        path = path if file == "..." else file
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        found += 1
        if not text or f"def {test}(" not in text and test:
            missing.append(f"{path}::{test}")
    assert missing == []
    assert found > 40


def test_it_speaks_of_each_attacker():
    heads = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert heads[1:6] == [
        "Another user of the machine", "Somebody who can write into the store", "A cloned repository",
        "A hostile data file", "A colleague with a shared home",
    ]  # fmt: skip
