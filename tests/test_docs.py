"""Every Python example of the README and of docs/ runs: the blocks of a page, in order, as one program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nectar

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_examples_run(page, tmp_path):
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks(page)), encoding="utf-8")
    source = str(Path(nectar.__file__).parents[1].resolve())
    environment = {**os.environ, "PYTHONPATH": source, "NECTAR_HOME": str(tmp_path / "home")}
    command = [sys.executable, script.name]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert {name(page) for page in PAGES if blocks(page)} >= {
        "README.md",
        "docs/guide/fingerprints.md",
        "docs/guide/polars.md",
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page):
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []
