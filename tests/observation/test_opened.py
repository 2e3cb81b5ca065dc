"""Listeners tell of what happens to files from when they are added until they are given back, and are used again."""

import os
import socket
import subprocess
import sys

import pytest

from nectar.observation import opened
from nectar.observation.opened import new_listener

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")


@pytest.fixture(autouse=True)
def idle(monkeypatch):
    """No listener is idle at first."""
    found = []
    monkeypatch.setattr(opened, "_idle", found)
    yield found
    for listener in found:
        if listener.is_open():
            os.close(listener._descriptor)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a"
    path.write_text("1")
    return str(path)


def touch(path):
    with open(path) as file:
        file.read()


def test_tells_of_files_and_of_files_in_folders(tmp_path, file):
    listener = new_listener()
    assert listener.add(file)
    assert listener.add(str(tmp_path))
    touch(file)
    assert set(listener.heard()) == {(file, ""), (str(tmp_path), "a")}
    listener.give_back()


def test_what_is_not_there_cannot_be_added(tmp_path):
    listener = new_listener()
    assert not listener.add(str(tmp_path / "no"))
    listener.give_back()


def test_is_used_again_and_tells_nobody_of_what_was_before(file):
    listener = new_listener()
    listener.add(file)
    touch(file)
    listener.give_back()
    touch(file)
    again = new_listener()
    assert again is listener
    assert list(again.heard()) == []
    again.add(file)
    assert list(again.heard()) == []
    touch(file)
    assert list(again.heard()) == [(file, "")]
    again.give_back()


def test_those_at_the_same_time_are_different(file):
    first, second = new_listener(), new_listener()
    first.add(file)
    second.add(file)
    touch(file)
    assert list(first.heard()) == list(second.heard()) == [(file, "")]
    first.give_back()
    touch(file)
    assert list(second.heard()) == [(file, "")]
    second.give_back()


def replace(listener):
    """What somebody sends to a socket that has got the number of the listener's descriptor."""
    ours, theirs = socket.socketpair()
    os.dup2(ours.fileno(), listener._descriptor)
    ours.close()
    theirs.send(b"x" * 32)
    return socket.socket(fileno=listener._descriptor), theirs


def test_a_descriptor_that_the_program_took_over_is_not_read_while_idle(file, idle):
    listener = new_listener()
    listener.give_back()
    taken, theirs = replace(listener)
    with taken, theirs:
        other = new_listener()
        assert other is not listener
        assert taken.recv(64) == b"x" * 32
        other.give_back()


def test_a_descriptor_that_the_program_took_over_is_not_read_while_in_use(file, idle):
    listener = new_listener()
    listener.add(file)
    taken, theirs = replace(listener)
    with taken, theirs:
        with pytest.raises(OSError, match="closed"):
            list(listener.heard())
        listener.give_back()
        assert idle == []
        assert taken.recv(64) == b"x" * 32


def test_no_more_than_a_few_stay_open(idle):
    listeners = [new_listener() for _ in range(9)]
    for listener in listeners:
        listener.give_back()
    assert len(idle) == opened._MOST_IDLE
    assert sum(listener.is_open() for listener in listeners) == opened._MOST_IDLE


def test_a_forked_child_ends_nothing_that_its_parent_listens_to(file):
    program = (
        "import os, sys\n"
        "from nectar.observation.opened import new_listener\n"
        "listener = new_listener(); listener.add(sys.argv[1])\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    listener.give_back()\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "open(sys.argv[1]).close()\n"
        "assert list(listener.heard()) == [(sys.argv[1], '')]\n"
    )
    subprocess.run([sys.executable, "-c", program, file], check=True)


def test_a_forked_child_does_not_hear_what_its_parent_should(file):
    program = (
        "import os, sys\n"
        "from nectar.observation import opened\n"
        "from nectar.observation.opened import new_listener\n"
        "path = sys.argv[1]\n"
        "listener = new_listener(); listener.give_back()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    own = new_listener()\n"
        "    os._exit(0 if own._descriptor != listener._descriptor else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program, file], check=True)
