"""Law: over any history of a file, two moments with different bytes never share a name, and every change is told."""

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.inputs.test_identify import On

from nectar.clock import ManualClock
from nectar.store.inputs import local as inputs_local
from nectar.store.inputs.identify import Inputs, RememberedHere

TICK = 1.0  # seconds: a coarse clock, as file systems have or had it
BYTES = st.sampled_from([b"", b"aa", b"bb", b"cc", b"long"])
STEPS = st.one_of(
    st.tuples(st.just("write"), BYTES),
    st.tuples(st.just("replace"), BYTES),
    st.tuples(st.just("touch"), st.sampled_from([0.0, 999_990.0, 1_000_000.0])),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.6, 1.0, 1.9, 2.0, 50.0])),
    st.tuples(st.just("look"), st.sampled_from(["same process", "other process", "by content"])),
)


class File:
    """A file whose times come from a clock with a coarse tick; its inode is used again after every other rename."""

    def __init__(self, path, clock):
        self.path, self.clock = path, clock
        self.inode, self.modified, self.changed, self.bytes = 1, 0, 0, b""
        self.write(b"")

    def tick(self):
        return int(self.clock.now() // TICK) * 10**9

    def write(self, data):
        self.path.write_bytes(data)
        self.bytes, self.modified, self.changed = data, self.tick(), self.tick()

    def replace(self, data):
        self.inode = 3 - self.inode
        self.write(data)

    def touch(self, seconds):
        self.modified, self.changed = int(seconds * 1e9), self.tick()

    def status(self, _):
        found = os.stat(self.path)
        times = {"st_mtime_ns": self.modified, "st_ctime_ns": self.changed}
        return os.stat_result((found.st_mode, self.inode, *found[2:]), times)


def play(steps, guard=2.0):
    """The names seen, each with all bytes it stood for; fails if a change was not told, or told without one."""
    meanings = {}
    clock, remembered = ManualClock(), RememberedHere()
    with tempfile.TemporaryDirectory() as folder:
        file = File(Path(folder) / "file", clock)
        options = {"mounts": On("ext4"), "host": "here", "guard": guard}
        process = Inputs(remembered, clock, **options)
        last, touched = None, False
        with (
            patch.object(inputs_local, "status_at", file.status),
            patch.object(inputs_local, "status_of", file.status),
        ):
            for step, value in steps:
                if step == "wait":
                    clock.move(value)
                elif step == "look":
                    if last is not None:
                        told = process.changed([last[0]])
                        assert told or last[1] == file.bytes
                        assert touched or not told
                    kind = "content" if value == "by content" else "origin"
                    looker = process if value == "same process" else Inputs(remembered, clock, identity=kind, **options)
                    (identity,) = looker.identify([file.path])
                    assert identity.names
                    for name in identity.names:
                        meanings.setdefault(name, set()).add(file.bytes)
                    last, touched = (identity, file.bytes), False
                else:
                    getattr(file, step)(value)
                    touched = True
    return meanings


@given(st.lists(STEPS, min_size=2, max_size=25))
def test_no_name_stands_for_two_contents(steps):
    assert all(len(meanings) == 1 for meanings in play([*steps, ("look", "same process")]).values())


def test_without_the_guard_the_law_is_broken():
    """The history is told in enough detail to find a guard that is missing."""
    steps = [("write", b"aa"), ("look", "same process"), ("write", b"bb"), ("look", "other process")]
    assert all(len(meanings) == 1 for meanings in play(steps).values())
    with pytest.raises(AssertionError):
        play(steps, guard=-10.0)
