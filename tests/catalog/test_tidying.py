"""Small files in a home: what was left goes, what is in use or not ours stays."""

import os
import time

import pytest
from tests.catalog.making import key, manual_clock, opened, value

from nectar.catalog import tidying
from nectar.trust import files

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path / "home", manual_clock())
    yield catalog
    catalog.close()


def put(home, name, age):
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    os.utime(path, (time.time() - age,) * 2)
    return path


ASIDE = "0123456789abcdef" * 2
SITES = f"{ASIDE}.json"
MARKS = "verified-01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    ("name", "age", "stays"),
    [
        (f"programs/{SITES}.{ASIDE}", 2 * HOUR, False), (f"programs/{SITES}.{ASIDE}", HOUR / 2, True),
        (f"{MARKS}.{ASIDE}", 2 * HOUR, False), (f"rebuilds/ab12.{ASIDE}", 2 * HOUR, False),
        (f"shared.json.{ASIDE}", 2 * HOUR, False), (f"rebuilds/ab12-allowed.{ASIDE}", 2 * HOUR, False),
        (f"programs/{SITES}", 100 * DAY, True), ("rebuilds/ab12", 2 * DAY, False), ("rebuilds/ab12", DAY / 2, True),
        ("rebuilds/ab12-allowed", 2 * DAY, False), (MARKS, 8 * DAY, False), (MARKS, 6 * DAY, True),
        ("shared.json", 100 * DAY, True),
        # of the user
        (f"backup.{ASIDE}", 100 * DAY, True), (f"programs/backup.json.{ASIDE}", 100 * DAY, True),
        (f"rebuilds/notes.txt.{ASIDE}", 100 * DAY, True), (f"verified-1.{ASIDE}", 100 * DAY, True),
        (f"{SITES}.{ASIDE}", 100 * DAY, True), (f"rebuilds/{SITES}.{ASIDE}", 100 * DAY, True), (ASIDE, 100 * DAY, True),
        ("rebuilds/notes.txt", 100 * DAY, True), ("programs/ab12", 100 * DAY, True), ("ab12", 2 * DAY, True),
        ("verified-results.txt", 100 * DAY, True), (f"{MARKS}.txt", 100 * DAY, True), (f"old-{MARKS}", 100 * DAY, True),
        (f"mine/{SITES}.{ASIDE}", 100 * DAY, True),
    ],
)  # fmt: skip
def test_what_was_left_goes(catalog, tmp_path, name, age, stays):
    path = put(tmp_path / "home", name, age)
    assert tidying.tidy(tmp_path / "home", catalog.index, catalog.store, time.time()) == (not stays)
    assert path.exists() is stays


def test_to_open_a_catalog_deletes_nothing(tmp_path):
    """Marks of another start may be those of another machine, which uses the same home."""
    home = tmp_path / "home"
    opened(home).close()
    paths = [put(home, name, 100 * DAY) for name in (MARKS, "verified-results.txt", f"backup.{ASIDE}")]
    opened(home).close()
    assert all(path.exists() for path in paths)


def test_links_and_folders_stay(catalog, tmp_path):
    home = tmp_path / "home"
    (home / "rebuilds").mkdir()
    victim = put(tmp_path, "victim", 100 * DAY)
    (home / "rebuilds" / "ab12").symlink_to(victim)
    (home / "rebuilds" / "ab13").mkdir()
    assert tidying.tidy(home, catalog.index, catalog.store, time.time() + 100 * DAY) == 0
    assert victim.exists()
    assert (home / "rebuilds" / "ab12").is_symlink()


def test_a_replacement_that_is_killed_leaves_nothing_for_long(catalog, tmp_path, monkeypatch):
    """The names that are swept are those that are given."""
    home = tmp_path / "home"
    (home / "programs").mkdir()
    monkeypatch.setattr(os, "replace", lambda *_: os._exit(0))
    child = os.fork()
    if child == 0:
        files.replace(home / "programs" / SITES, b"{}")
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list((home / "programs").iterdir())) == 1
    assert tidying.tidy(home, catalog.index, catalog.store, time.time() + 2 * HOUR) == 1
    assert list((home / "programs").iterdir()) == []


def test_marks_of_results_that_are_gone_go(catalog, tmp_path, monkeypatch):
    monkeypatch.setattr(tidying, "_LONG", 0)
    entries = [catalog.keep(key(number), key(0), value(number)).entry for number in range(4)]
    time.sleep(0.06)  # until the next change of a file would show in its stamps
    for entry in entries:
        catalog.open(entry).close()
    marks = next((tmp_path / "home").glob("verified-*"), None)
    if marks is None:
        pytest.skip("no telling when this machine was started")
    assert len(marks.read_text().splitlines()) == 4
    catalog.discard(entries[:3])
    catalog.collector.sweep()
    assert [line.split()[0] for line in marks.read_text().splitlines()] == [entries[3].location]
    again = opened(tmp_path / "home", catalog.clock)
    assert again.store.verified.locations() == [entries[3].location]
    again.close()


def test_a_sweep_tidies_and_a_dry_run_does_not(catalog, tmp_path):
    path = put(tmp_path / "home", "rebuilds/ab12", 2 * DAY)
    catalog.collector.sweep(apply=False)
    assert path.exists()
    catalog.collector.sweep()
    assert not path.exists()
