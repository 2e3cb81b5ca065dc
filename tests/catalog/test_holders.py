"""Who holds a row, and whether they are gone: the dead are known, whatever has their number now; the living never."""

import os
import shutil
import subprocess
import sys

import pytest
from tests.catalog.making import dead_process, process_as

from nectar.catalog import holders
from nectar.catalog.holders import FILE, Holder, Presence, parsed

linux = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only /proc tells when a process was started")
HERE = holders._this_process(os.getpid())


@pytest.fixture
def presence(tmp_path):
    presence = Presence(tmp_path)
    yield presence
    presence.close()


def test_a_holder_reads_as_it_was_written(presence):
    holder = parsed(presence.name)
    assert holder == HERE._replace(byte=holder.byte)
    assert holder.process == os.getpid()
    assert holder.byte > 0


@pytest.mark.parametrize(
    "text", ["", "host", "host:", "host:abc", "host:1", f"{'h' * 300}:1", "a:1/b/c", "a:1/b/c/d/e/x"]
)
def test_rows_that_say_too_little_name_nobody_who_is_gone(presence, text):
    assert parsed(text) is None
    assert not presence.has_gone(text)


def test_this_process_lives(presence, tmp_path):
    assert not presence.has_gone(presence.name)
    assert not Presence().has_gone(presence.name), "another catalog of this process"
    once_more = Presence(tmp_path)
    assert once_more.name == presence.name
    once_more.close()
    assert not presence.has_gone(presence.name)


@linux
def test_a_process_that_has_ended_is_gone(presence):
    assert presence.has_gone(dead_process())


@linux
def test_a_process_that_lives_is_not(presence):
    assert not presence.has_gone(process_as(1))


@linux
def test_a_later_process_of_the_same_number_is_another_one(presence):
    """Its number lives; the process does not."""
    assert presence.has_gone(process_as(1, start="999999999"))


@linux
def test_a_child_that_nobody_has_asked_after_is_gone(presence):
    """A zombie has a number and a start, and does nothing any more."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process_as(child.pid)
    assert not presence.has_gone(name)
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert presence.has_gone(name)
    child.wait()


@linux
def test_a_stopped_process_lives(presence):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.send_signal(19)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert not presence.has_gone(process_as(child.pid))
    child.kill()
    child.wait()


def test_what_was_before_this_start_of_the_machine_is_gone(presence):
    assert presence.has_gone(str(HERE._replace(boot="0" * 16, machine="1" * 16))) is False, "another machine"
    if HERE.machine and HERE.boot:
        assert presence.has_gone(str(HERE._replace(boot="0" * 16)))


@pytest.mark.parametrize(
    "change", [{"machine": "", "boot": "0" * 16}, {"boot": ""}, {"machine": "1" * 16, "boot": "0" * 16}]
)
def test_of_other_machines_nothing_is_known(presence, change):
    assert not presence.has_gone(str(HERE._replace(process=999999999, host="elsewhere", **change)))


def test_nothing_is_known_of_another_container_without_a_lock(presence):
    assert not presence.has_gone(str(HERE._replace(space="2" * 16, process=1, byte=0)))


CHILD = """
import sys
from pathlib import Path
from nectar.catalog.holders import Presence
presence = Presence(Path(sys.argv[1]))
print(presence.name, flush=True)
input()
"""


def child_in(folder, *before):
    """A process that shows in a home until its input ends; and its name."""
    command = [*before, sys.executable, "-c", CHILD, str(folder)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return child, child.stdout.readline().strip()


def test_a_lock_tells_who_lives_in_another_container(presence, tmp_path):
    """Its number says nothing here."""
    child, name = child_in(tmp_path)
    holder = parsed(name)
    if not holder.byte:
        pytest.skip("no locks on this file system")
    elsewhere = str(holder._replace(space="2" * 16, process=1))
    assert not presence.has_gone(elsewhere)
    child.kill()
    child.wait()
    assert presence.has_gone(elsewhere)


@linux
def test_a_process_of_a_real_container_is_told_apart(presence, tmp_path):
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip("needs unshare, and root")
    child, name = child_in(tmp_path, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if not name:
        child.wait()
        pytest.skip("no namespaces here")
    holder = parsed(name)
    assert holder.process == 1
    assert holder.space != HERE.space
    assert (holder.boot, holder.machine) == (HERE.boot, HERE.machine)
    assert not presence.has_gone(name)
    child.kill()
    child.communicate()
    assert presence.has_gone(name)


def test_a_forked_child_has_a_name_of_its_own(presence, tmp_path):
    before, (reading, writing) = presence.name, os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, f"{presence.name}\n{presence.has_gone(before)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    name, parent_gone = os.read(reading, 4096).decode().splitlines()
    assert parent_gone == "False"
    assert parsed(name).process == child
    assert parsed(name).byte != parsed(before).byte
    assert presence.has_gone(name)
    assert presence.name == before
    other, _ = child_in(tmp_path)
    asked = "import sys; from pathlib import Path; from nectar.catalog.holders import Presence; "
    asked += "print(Presence(Path(sys.argv[1])).has_gone(sys.argv[2]))"
    elsewhere = str(parsed(before)._replace(space="2" * 16))
    done = subprocess.run([sys.executable, "-c", asked, str(tmp_path), elsewhere], capture_output=True, text=True)
    assert done.stdout.strip() == "False", "the child that ended has taken no lock of its parent with it"
    other.communicate()


def test_the_file_of_locks_takes_no_room_and_is_never_a_link(tmp_path):
    first = Presence(tmp_path)
    assert parsed(first.name).byte
    assert (tmp_path / FILE).stat().st_size == 0
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    first.close()
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(tmp_path / "victim")
    second = Presence(tmp_path)
    assert parsed(second.name).byte == 0, "its number has to do"
    assert not (tmp_path / "victim").exists()
    second.close()


def test_descriptors_are_given_back(tmp_path):
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        one, two = Presence(folder), Presence(folder)
        assert one.name == two.name
        held = len(holders._Lock._open)
        one.close()
        assert len(holders._Lock._open) == held, "the other one still needs it"
        two.close()
        assert len(holders._Lock._open) == held - 1


def test_all_fields_of_a_holder_are_plain_text():
    assert str(Holder("host", 1, "m", "b", "s", "5", 7)) == "host:1/m/b/s/5/7"
