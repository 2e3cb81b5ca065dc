"""Whether a path leads where it led before a moment."""

import os
import time

import pytest

from nectar.store.inputs.paths import leads_there_since


@pytest.fixture
def place(tmp_path):
    """Two folders with a file of the same name, links to the first, in a folder of their own that nobody else changes."""
    tmp_path = tmp_path / "inner" / "place"
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").write_text(name)
    (tmp_path / "relative").symlink_to("one")
    (tmp_path / "absolute").symlink_to(tmp_path / "one")
    (tmp_path / "chain").symlink_to("relative")
    (tmp_path / "up").symlink_to("two/../one")
    time.sleep(0.05)  # the system's clock of files may be some milliseconds behind
    return tmp_path


PATHS = ["one/inner/file", "relative/inner/file", "absolute/inner/file", "chain/inner/file", "up/inner/file"]


@pytest.mark.parametrize("path", PATHS)
def test_what_nobody_touched_leads_where_it_led(place, path):
    moment = time.time_ns()
    assert leads_there_since(str(place / path), moment)
    (place / "beside").write_text("a file beside others makes no difference")
    (place / "one" / "beside").write_text("nor here")
    assert leads_there_since(str(place / path), moment)


@pytest.mark.parametrize("path", PATHS)
def test_another_folder_in_its_place_is_seen(place, path):
    moment = time.time_ns()
    time.sleep(0.05)
    (place / "one").rename(place / "old")
    (place / "two").rename(place / "one")
    (place / "two" / "..").parent.mkdir(exist_ok=True)
    assert (place / path).read_text() == "two"
    assert not leads_there_since(str(place / path), moment)


@pytest.mark.parametrize("path", [path for path in PATHS if not path.startswith("one")])
def test_another_link_in_its_place_is_seen(place, path):
    moment = time.time_ns()
    time.sleep(0.05)
    link = place / ("relative" if path.startswith("chain") else path.split("/")[0])
    (place / "new").symlink_to("two")
    os.replace(place / "new", link)
    assert (place / path).read_text() == "two"
    assert not leads_there_since(str(place / path), moment)


def test_another_file_in_its_place_is_seen_by_its_own_time(place):
    moment = time.time_ns()
    time.sleep(0.05)
    os.replace(place / "two" / "inner" / "file", place / "one" / "inner" / "file")
    assert not leads_there_since(str(place / "one/inner/file"), moment)


def test_links_that_lead_to_themselves_lead_nowhere(place):
    (place / "round").symlink_to("round")
    assert not leads_there_since(str(place / "round" / "file"), time.time_ns())
    with pytest.raises(OSError):
        leads_there_since(str(place / "nowhere"), time.time_ns())
