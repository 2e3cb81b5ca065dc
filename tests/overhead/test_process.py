"""When this process began."""

import os
import subprocess
import sys
import time

import pytest

from nectar.overhead import process


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not tell")
def test_it_is_told_to_the_hundredth_of_a_second_and_never_too_late():
    before = time.time()
    code = "import time; time.sleep(1); from nectar.overhead import process; print(process.began(), time.time())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    began, after = map(float, done.stdout.split())
    assert before - 0.1 <= began <= after - 1


def test_where_the_system_does_not_tell_nothing_is_older(monkeypatch):
    monkeypatch.setattr(process.Path, "read_text", lambda self: "nothing")
    assert process.began() == 0.0


@pytest.mark.parametrize("change", ["clock", "mount", "fork"])
def test_after_a_change_of_clock_mounts_or_process_nothing_is_older(monkeypatch, change):
    noted = process._note()  # since this process began somebody else may have mounted something
    monkeypatch.setattr(process, "_noted", noted)
    monkeypatch.setattr(process, "_note", lambda: noted)
    assert process.began() > 0
    if change == "clock":
        offset = process._offset()
        monkeypatch.setattr(process, "_offset", lambda: offset + 5)
    else:
        other = (noted[0] + 1, noted[1]) if change == "fork" else (noted[0], noted[1] + b"more")
        monkeypatch.setattr(process, "_note", lambda: other)
    assert process.began() == 0.0
