"""The shape of the source tree: what ARCHITECTURE.md says of it is true, and no file outgrows its reader."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nectar"
LONGEST = 500
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}

PACKAGES = sorted(path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py"))
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != "."])
def test_architecture_page_lists_every_package(package):
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert f"`{package}/`" in page, f"ARCHITECTURE.md does not say what `{package}/` is for; add it to its table"


def test_architecture_page_lists_no_package_that_is_gone():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("<!-- packages -->")[2].partition("<!-- /packages -->")[0]
    listed = {row.split("`")[1].rstrip("/") for row in table.splitlines() if row.startswith("| `") and "/`" in row}
    assert listed == set(PACKAGES) - {"."}


@pytest.mark.parametrize("file", FILES)
def test_no_file_is_longer_than_a_person_reads_at_once(file):
    lines = len((SOURCE / file).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"src/nectar/{file} has {lines} lines, more than {LONGEST}: split it by what it does"


@pytest.mark.parametrize("file", FILES)
def test_no_module_has_a_name_that_says_nothing(file):
    assert not set(Path(file).with_suffix("").parts) & VAGUE, f"{file}: name it after what it holds or does"


@pytest.mark.parametrize("file", FILES)
def test_types_are_decoded_by_decoders_that_are_made_when_the_module_is_loaded(file):
    """msgspec finds out what a type is when it first decodes it; two threads that do so at once may crash it."""
    text = (SOURCE / file).read_text(encoding="utf-8")
    assert not re.search(r"\.decode\([^\n]*\btype=", text), f"src/nectar/{file}: make a msgspec Decoder at its top"


# It reads SQL ahead, and does without where no thread can be had.
MAY_HAVE_EXECUTORS = {"dialects/spark/sql/queries.py"}


def test_threads_are_started_where_it_is_known_that_there_may_be_none():
    """At the end of a process, and where a system allows no more, starting a thread raises."""
    starts = re.compile(r"\b(Thread\(|Timer\(|to_thread\b|run_in_executor\b|ThreadPoolExecutor\b)")
    found = {file for file in FILES if starts.search((SOURCE / file).read_text(encoding="utf-8"))}
    assert found - MAY_HAVE_EXECUTORS == {"threads.py"}, "start threads with nectar.threads"


def test_what_is_done_around_a_fork_is_registered_in_one_place():
    """Hooks of several modules depend on each other, and on those of other libraries."""
    found = {file for file in FILES if "register_at_fork" in (SOURCE / file).read_text(encoding="utf-8")}
    assert found == {"forks.py"}, "have it done with nectar.forks"


def test_decisions_are_numbered_without_gaps():
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
