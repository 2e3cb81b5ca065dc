"""Identities of local files. The clock is moved by hand; the times of files are the system's, or set by the test."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import blake3
import pytest

from nectar.clock import ManualClock
from nectar.errors import InputFailure, MissingInputError
from nectar.store.inputs import local as inputs_local
from nectar.store.inputs.identify import Content, Inputs, RememberedHere


class On:
    """All files lie on this kind of file system."""

    def __init__(self, kind):
        self.name = kind

    def kind(self, path, device, now):
        return self.name


class Counting(RememberedHere):
    """Counts what is remembered."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def remember(self, contents):
        self.calls.append(dict(contents))
        super().remember(contents)


@pytest.fixture
def reads(monkeypatch):
    """How many files were read."""
    read, done = inputs_local._digest, []
    monkeypatch.setattr(inputs_local, "_digest", lambda fd, size, *more: done.append(size) or read(fd, size, *more))
    return done


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"first")
    return path


def digest(data):
    return blake3.blake3(data).digest()


def clock_after(path, seconds):
    status = os.stat(path)
    return ManualClock(max(status.st_mtime, status.st_ctime) + seconds)


def inputs(clock, remembered=None, kind="ext4", **options):
    return Inputs(remembered or RememberedHere(), clock, mounts=On(kind), **{"host": "here", **options})


def rewrite(path, data):
    """Writes until the system's clock has gone on: its ticks may be milliseconds long."""
    before = os.stat(path).st_ctime_ns
    while os.stat(path).st_ctime_ns == before:
        time.sleep(0.001)
        path.write_bytes(data)


def test_quiet_file_is_known_by_its_origin_and_not_read(file, reads):
    (identity,) = inputs(clock_after(file, 10)).identify([file])
    assert (identity.url, identity.size, identity.content) == (str(file), 5, None)
    assert identity.names == (identity.origin,)
    assert len(identity.origin) == 32
    assert reads == []


def test_origin_is_the_same_in_another_process(file):
    code = (
        "import sys\n"
        "from tests.store.inputs.test_identify import inputs, clock_after\n"
        "print(inputs(clock_after(sys.argv[1], 10)).identify([sys.argv[1]])[0].origin.hex())"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code, str(file)], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == inputs(clock_after(file, 10)).identify([file])[0].origin.hex()


@pytest.mark.parametrize("age", [0.0, 1.9, -5.0, -1e6])
def test_file_changed_a_moment_ago_or_in_the_future_is_known_by_content(file, age):
    (identity,) = inputs(clock_after(file, age)).identify([file])
    assert identity.names == (digest(b"first"),)
    assert identity.origin is None


def test_file_whose_time_was_set_back_a_moment_ago_is_known_by_content(file):
    """As tar, cp -p and rsync -t leave it: an old modification time, and a change just now."""
    os.utime(file, (1000, 1000))
    (identity,) = inputs(ManualClock(os.stat(file).st_ctime)).identify([file])
    assert identity.names == (digest(b"first"),)


def test_size_is_part_of_the_origin(file, monkeypatch):
    clock, frozen = clock_after(file, 100), os.stat(file)
    times = {"st_mtime_ns": frozen.st_mtime_ns, "st_ctime_ns": frozen.st_ctime_ns}
    sized = [os.stat_result((*frozen[:6], size, *frozen[7:]), times) for size in (5, 6)]
    monkeypatch.setattr(inputs_local, "status_at", lambda path: sized.pop())
    assert inputs(clock).identify([file])[0].origin != inputs(clock).identify([file])[0].origin


def test_name_that_is_no_text_has_an_identity(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.csv"
    with open(path, "wb") as file:
        file.write(b"x")
    (identity,) = inputs(clock_after(path, 100)).identify([os.fsdecode(path)])
    assert identity.origin is not None


def test_content_is_provisional_until_it_is_read_when_quiet(file, reads):
    remembered, clock = Counting(), clock_after(file, 0)
    one = inputs(clock, remembered)
    first = one.identify([file])[0]
    again = one.identify([file])[0]
    assert len(reads) == 2
    assert remembered.calls == [{first.stamp: Content(digest(b"first"), certain=False)}]  # the second told nothing new
    clock.move(2.1)
    quiet = inputs(clock, remembered).identify([file])[0]
    assert len(reads) == 3
    assert remembered.calls[1:] == [{first.stamp: Content(digest(b"first"), certain=True)}]
    later = inputs(clock, remembered).identify([file])[0]
    assert len(reads) == 3
    assert first.names[0] == again.names[0] == quiet.names[0] == later.names[0] == digest(b"first")
    assert later.names == (digest(b"first"), first.stamp)


def test_rewritten_within_a_tick_is_found_when_quiet(file, monkeypatch):
    """Two contents, one stamp: only the content tells them apart."""
    frozen = os.stat(file)
    monkeypatch.setattr(inputs_local, "status_at", lambda path: frozen)
    monkeypatch.setattr(inputs_local, "status_of", lambda fd: frozen)
    remembered, clock = RememberedHere(), clock_after(file, 0)
    one = inputs(clock, remembered)
    before = one.identify([file])
    file.write_bytes(b"other")
    assert one.changed(before) == [f"{file} was rewritten while it was read"]
    clock.move(3600)
    assert one.changed(before) == [f"{file} was rewritten while it was read"]
    (after,) = inputs(clock, remembered).identify([file])
    assert after.content == digest(b"other")
    assert not set(after.names) & set(before[0].names)


def test_equal_size_and_restored_time_is_found(file):
    clock = clock_after(file, 100)
    one = inputs(clock)
    before, status = one.identify([file]), os.stat(file)
    rewrite(file, b"other")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(file).st_mtime_ns == status.st_mtime_ns
    assert one.changed(before) == [f"{file} was rewritten, replaced or touched while it was read"]
    assert not set(one.identify([file])[0].names) & set(before[0].names)


def test_replaced_by_rename_is_found_even_if_all_times_are_equal(file, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_bytes(b"other")
    status = os.stat(file)

    def at(path):
        found = os.stat(path)
        return os.stat_result((found.st_mode, found.st_ino, *status[2:]), {
            "st_mtime_ns": status.st_mtime_ns, "st_ctime_ns": status.st_ctime_ns,
        })  # fmt: skip

    monkeypatch.setattr(inputs_local, "status_at", at)
    one = inputs(clock_after(file, 100))
    before = one.identify([file])
    os.replace(other, file)
    assert len(one.changed(before)) == 1
    assert one.identify([file])[0].names != before[0].names


def test_what_did_not_change_is_not_told(file, reads):
    one = inputs(clock_after(file, 100))
    assert one.changed(one.identify([file])) == []
    assert reads == []


def test_changed_tells_sizes_and_missing_files(file, tmp_path):
    other = tmp_path / "b.csv"
    other.write_bytes(b"b")
    one = inputs(clock_after(other, 100))
    before = one.identify([file, other])
    rewrite(file, b"longer than before")
    other.unlink()
    assert one.changed(before) == [
        f"{file} was rewritten while it was read: it had 5 bytes and has 18",
        f"{other} was deleted or moved away while it was read",
    ]


def test_quiet_look_at_the_end_makes_a_provisional_content_certain(file, reads):
    clock = clock_after(file, 0)
    one = inputs(clock)
    before = one.identify([file])
    clock.move(10)
    assert one.changed(before) == []
    assert len(reads) == 2
    assert one.identify([file])[0].content == digest(b"first")
    assert len(reads) == 2


def test_clock_is_read_before_the_file_is_looked_at(file, monkeypatch):
    """A long pause between the two must not make a young file look quiet."""
    clock = clock_after(file, 0)
    look = os.stat

    def slow(path):
        found = look(path)
        clock.move(100)
        return found

    monkeypatch.setattr(inputs_local, "status_at", slow)
    assert inputs(clock).identify([file])[0].content == digest(b"first")


def test_link_is_the_file_it_leads_to_now(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    link = tmp_path / "link"
    link.symlink_to("a")
    one = inputs(clock_after(tmp_path / "b", 100))
    before = one.identify([link])
    link.unlink()
    link.symlink_to("b")
    assert before[0].url == str(link)
    assert len(one.changed(before)) == 1
    assert not set(one.identify([link])[0].names) & set(before[0].names)


def test_folder_above_a_link_is_the_one_the_link_leads_to(tmp_path):
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (tmp_path / "far" / "x").write_bytes(b"far")
    (tmp_path / "x").write_bytes(b"near")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "inner")
    path = f"{tmp_path}/link/../x"
    (identity,) = inputs(ManualClock(0)).identify([path])
    assert open(path, "rb").read() == b"far"
    assert identity.content == digest(b"far")


def test_relative_paths_and_file_urls_are_paths(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    one = inputs(clock_after(file, 100))
    forms = ["a.csv", "./a.csv", str(file), file, f"file://{file}", f"file://localhost{file}", f"/{file}"]
    assert len(set(one.identify(forms))) == 1


@pytest.mark.parametrize("url", ["file://server/share/a.csv", "file://a.csv", "file:///tmp/a%20b.csv"])
def test_file_url_that_readers_understand_differently_is_refused(url):
    with pytest.raises(InputFailure, match=url):
        inputs(ManualClock()).identify([url])


def test_path_is_part_of_the_origin(file, tmp_path):
    os.link(file, tmp_path / "same")
    first, second = inputs(clock_after(file, 100)).identify([file, tmp_path / "same"])
    assert first.origin != second.origin


def test_host_is_part_of_the_origin_unless_the_mount_is_shared(file, tmp_path):
    clock = clock_after(file, 100)

    def origin(path=file, **options):
        return inputs(clock, **options).identify([path])[0].origin

    assert origin(host="a") != origin(host="b")
    assert origin(host="a", shared=[str(tmp_path)]) == origin(host="b", shared=[f"{tmp_path}/"])
    assert origin(host="a", shared=[f"{tmp_path}x", str(file)[:-1]]) != origin(host="b", shared=[f"{tmp_path}x"])


def test_link_from_a_shared_mount_to_a_file_of_the_host_carries_the_host(file, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "link").symlink_to(file)

    def at(path):
        found = os.stat(path)
        device = 7 if str(path).rstrip("/") == str(shared) else 8
        return os.stat_result((*found[:2], device, *found[3:]), {
            "st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": found.st_ctime_ns,
        })  # fmt: skip

    monkeypatch.setattr(inputs_local, "status_at", at)
    clock = clock_after(file, 100)
    first, second = (
        inputs(clock, host=host, shared=[str(shared)]).identify([shared / "link"])[0].origin for host in "ab"
    )
    assert first != second


def test_identity_by_content_reads_once_for_each_origin(file, tmp_path, reads):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(b"first")
    one = inputs(clock_after(copy, 100), identity="content")
    first, second = one.identify([file, copy])
    assert first.names[0] == second.names[0] == digest(b"first")
    assert first.origin != second.origin
    assert one.identify([file, copy]) == [first, second]
    assert len(reads) == 2


@pytest.mark.parametrize("kind", ["vfat", "squashfs", "proc", "fuse.sshfs", ""])
def test_file_system_without_a_change_time_is_read_each_time_and_never_remembered(file, reads, kind):
    remembered = Counting()
    one = inputs(clock_after(file, 1e6), remembered, kind=kind)
    before = one.identify([file])
    assert before[0].names == (digest(b"first"),)
    status = os.stat(file)
    file.write_bytes(b"other")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert one.identify([file])[0].names == (digest(b"other"),)
    assert len(reads) == 2
    assert remembered.calls == []
    assert len(one.changed(before)) == 1


def test_network_file_system_is_asked_by_opening(file, monkeypatch):
    """A client may answer stat() from its memory; what it says of an open file is fresh."""
    stale = os.stat(file)
    rewrite(file, b"other")
    monkeypatch.setattr(inputs_local, "status_at", lambda path: stale)
    clock = clock_after(file, 100)
    assert inputs(clock, kind="nfs4").identify([file]) != inputs(clock).identify([file])
    monkeypatch.undo()
    assert inputs(clock, kind="nfs4").identify([file]) == inputs(clock).identify([file])


def test_file_that_changes_while_it_is_read_is_read_again(file, monkeypatch):
    read, times = inputs_local._digest, []

    def disturbed(fd, size, *more):
        times.append(size)
        if len(times) < 2:
            file.write_bytes(b"longer" * len(times))
        return read(fd, size, *more)

    monkeypatch.setattr(inputs_local, "_digest", disturbed)
    (identity,) = inputs(clock_after(file, 0)).identify([file])
    assert (identity.content, identity.size, len(times)) == (digest(b"longer"), 6, 2)


def test_file_that_never_stops_changing_is_a_failure(file, monkeypatch):
    read = inputs_local._digest

    def growing(fd, size, *more):
        with open(file, "ab") as log:
            log.write(b"x")
        return read(fd, size, *more)

    monkeypatch.setattr(inputs_local, "_digest", growing)
    one = inputs(clock_after(file, 0))
    with pytest.raises(InputFailure, match=rf"it reads {file}, which changes all the time"):
        one.identify([file])


def test_missing_file_is_named(tmp_path):
    with pytest.raises(MissingInputError, match="nowhere.csv") as caught:
        inputs(ManualClock()).identify([tmp_path / "nowhere.csv"])
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.errno == errno.ENOENT


def test_folder_pipe_and_impossible_names_are_failures_that_name_them(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    one = inputs(ManualClock())
    with pytest.raises(InputFailure, match="is a folder"):
        one.identify([tmp_path])
    with pytest.raises(InputFailure, match="pipe is no plain file"):
        one.identify([tmp_path / "pipe"])
    with pytest.raises(InputFailure, match="cannot be read"):
        one.identify(["a\0b"])
    with pytest.raises(InputFailure, match="empty path"):
        one.identify([""])


def test_unreadable_file_keeps_its_errno(file, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, "no", path)

    monkeypatch.setattr(inputs_local, "status_at", refused)
    with pytest.raises(InputFailure, match="give yourself the right") as caught:
        inputs(ManualClock()).identify([file])
    assert caught.value.errno == errno.EACCES


def test_file_made_of_the_words_of_an_origin_has_another_name(file, monkeypatch):
    """Otherwise a file could be made that has the name of another."""
    encoded = []
    make = inputs_local.stamp_of
    monkeypatch.setattr(inputs_local, "stamp_of", lambda data: encoded.append(data) or make(data))
    (identity,) = inputs(clock_after(file, 100)).identify([file])
    assert digest(encoded[0]) != identity.origin


def test_many_files_slow_and_fast_keep_their_order(tmp_path, monkeypatch):
    names = [tmp_path / f"{n}" for n in range(40)]
    for name in names:
        name.write_bytes(name.name.encode())
    expected = [digest(name.name.encode()) for name in names]
    assert [one.content for one in inputs(ManualClock(0)).identify(names)] == expected
    threads = set()
    look = os.stat

    def slow(path):
        threads.add(threading.current_thread().name)
        time.sleep(0.005)
        return look(path)

    monkeypatch.setattr(inputs_local, "status_at", slow)
    assert [one.content for one in inputs(ManualClock(0)).identify(names)] == expected
    assert len(threads) > 1


def test_same_file_twice_is_read_once(file, reads):
    first, second = inputs(ManualClock(0)).identify([file, str(file)])
    assert first == second
    assert len(reads) == 1


def test_large_file_is_hashed_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs_local, "_BLOCK", 1 << 10)
    monkeypatch.setattr(inputs_local, "_SEVERAL_THREADS_FROM", 1 << 11)
    data = bytes(range(256)) * 41 + b"rest"
    (tmp_path / "large").write_bytes(data)
    (identity,) = inputs(ManualClock(0)).identify([tmp_path / "large"])
    assert (identity.content, identity.size) == (digest(data), len(data))


def test_local_files_import_no_fsspec(file):
    code = (
        "import sys\n"
        "from nectar.clock import SystemClock\n"
        "from nectar.store.inputs.expand import expand\n"
        "from nectar.store.inputs.identify import Inputs, RememberedHere\n"
        "one = Inputs(RememberedHere(), SystemClock())\n"
        "one.changed(one.identify(expand(sys.argv[1])))\n"
        "print('fsspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_file_that_is_nearly_all_holes_is_not_read(file, reads):
    """One of 10 TB is made in a moment, and read in hours."""
    os.truncate(file, 1 << 40)
    with pytest.raises(InputFailure, match="nearly all holes"):
        inputs(clock_after(file, 100), identity="content").identify([file])
    assert reads == []
    assert inputs(clock_after(file, 100)).identify([file])[0].content is None
