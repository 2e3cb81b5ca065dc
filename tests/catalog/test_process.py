"""What the system says of processes: one place, whatever they are called, and nothing where there is nothing to say."""

import os
import subprocess
import sys

import pytest

from nectar.catalog import process
from nectar.catalog.life import is_running
from nectar.catalog.process import Status, boot, is_there, status_of, text_of

linux = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only /proc tells of processes")


@linux
def test_a_process_is_told_by_its_start_and_state():
    mine = status_of(os.getpid())
    assert mine == status_of(os.getpid())
    assert int(mine.start) > 0
    assert mine.state == "R"
    assert boot() == text_of("/proc/sys/kernel/random/boot_id") != ""


@pytest.mark.parametrize("name", ["python", "a) Z 1 2 (b", "((", "x y z"])
def test_the_name_of_a_process_says_nothing_of_its_state(monkeypatch, name):
    fields = " ".join(["S", *map(str, range(4, 53))])
    monkeypatch.setattr(process, "text_of", lambda _: f"7 ({name}) {fields}")
    assert status_of(7) == Status("22", "S")


@pytest.mark.parametrize("text", ["", "7 (python)", "7 (python) S 1 2"])
def test_where_there_is_no_telling_nothing_is_said(monkeypatch, text):
    monkeypatch.setattr(process, "text_of", lambda _: text)
    assert status_of(7) == Status()
    assert is_running(os.getpid()), "in doubt it does"


def test_a_process_that_has_ended_is_there_no_more():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_there(child.pid)
    child.communicate(b"\n")
    assert is_there(child.pid) is False
    assert status_of(child.pid) == Status()
    assert not is_running(child.pid)
    assert is_there(1 << 80) is None, "no process has such a number, and nobody may ask"


def test_what_cannot_be_read_is_empty(tmp_path):
    assert text_of(str(tmp_path)) == text_of(str(tmp_path / "none")) == ""
