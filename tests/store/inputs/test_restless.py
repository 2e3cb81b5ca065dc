"""Files are read within bounds: of their size when they were opened, of attempts, of the time that looking may take."""

import os

import pytest
from tests.store.inputs.test_identify import clock_after, digest, inputs

from nectar.clock import ManualClock
from nectar.errors import InputFailure, UnreadInputError
from nectar.keys.patience import patience
from nectar.overhead import allowance
from nectar.store.inputs import local as inputs_local
from nectar.store.inputs import restless as restless_module
from nectar.store.inputs.identify import RememberedHere
from nectar.store.inputs.restless import Restless


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"first")
    return path


@pytest.fixture
def passes(monkeypatch):
    """The sizes, as they were expected, of the files that were read."""
    read, done = inputs_local._digest, []
    monkeypatch.setattr(inputs_local, "_digest", lambda fd, size, *more: done.append(size) or read(fd, size, *more))
    return done


@pytest.fixture
def all_large(monkeypatch):
    """Every file is large enough to be left alone."""
    monkeypatch.setattr(restless_module, "_SMALL", 0)


def seconds_for(size):
    return size / allowance._SPEED + allowance._FILE


# how far


def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_it_was_seen(file, monkeypatch):
    """Its owner can make it grow faster than anybody reads; it would be read for as long as they like."""
    monkeypatch.setattr(inputs_local, "_BLOCK", 4)
    expected, got, read = [], [], inputs_local._digest

    def grown(fd, size, *more):
        os.truncate(file, 1 << 40)
        expected.append(size)
        found = read(fd, size, *more)
        got.append(found[1])
        return found

    monkeypatch.setattr(inputs_local, "_digest", grown)
    with pytest.raises(InputFailure, match="changes all the time|nearly all holes"):
        inputs(clock_after(file, 0)).identify([file])
    assert (expected, got) == ([5], [6])


def test_a_file_that_is_larger_when_it_is_looked_at_again_is_not_read_again(file, passes, monkeypatch):
    one, frozen = inputs(clock_after(file, 0)), os.stat(file)
    before = one.identify([file])
    file.write_bytes(b"far more than there was")
    monkeypatch.setattr(inputs_local, "status_at", lambda path: frozen)  # it grows after it was looked at
    assert len(one.changed(before)) == 1
    assert passes == [5]


def test_what_a_system_does_not_tell_the_size_of_is_read_whole(tmp_path, monkeypatch):
    """As of /proc, whose files are all said to be empty."""
    path = tmp_path / "status"
    path.write_bytes(b"some text")

    def untold(which):
        status = os.stat(which)
        times = {"st_mtime_ns": status.st_mtime_ns, "st_ctime_ns": status.st_ctime_ns}
        return os.stat_result((*status[:6], 0, *status[7:]), times)

    monkeypatch.setattr(inputs_local, "status_of", untold)
    monkeypatch.setattr(inputs_local, "status_at", untold)
    (identity,) = inputs(ManualClock(0), kind="proc").identify([path])
    assert (identity.content, identity.size) == (digest(b"some text"), 9)
    monkeypatch.setattr(inputs_local, "_UNTOLD", 4)
    with pytest.raises(UnreadInputError):
        inputs(ManualClock(0), kind="proc").identify([path])


# how long


def test_a_file_that_there_is_no_time_for_is_not_read(file, passes):
    one = inputs(clock_after(file, 0))
    os.truncate(file, 1 << 30)
    with pytest.raises(UnreadInputError, match=rf"it reads {file}, too much to be known by its content"), patience(0.1):
        one.identify([file])
    assert passes == []
    os.truncate(file, 1 << 20)
    with patience(0.1):
        assert one.identify([file])[0].content is not None


def test_many_files_that_there_is_no_time_for_are_not_read(tmp_path, passes):
    names = [tmp_path / f"{number}" for number in range(30)]
    for name in names:
        name.write_bytes(b"x")
    with pytest.raises(UnreadInputError, match="and others, too much"), patience(10 * allowance._FILE):
        inputs(ManualClock(0)).identify(names)
    assert passes == []
    with patience(40 * allowance._FILE):
        assert len(inputs(ManualClock(0)).identify(names)) == 30


def test_a_quiet_file_is_known_by_its_origin_however_little_time_there_is(file, passes):
    with patience(0.0):
        (identity,) = inputs(clock_after(file, 10)).identify([file])
    assert identity.names == (identity.origin,)
    assert passes == []


def test_a_content_that_is_not_certain_is_none_while_there_is_no_time_to_make_sure(file, passes):
    remembered, clock = RememberedHere(), clock_after(file, 0)
    inputs(clock, remembered).identify([file])
    clock.move(10)
    with patience(0.0):
        (identity,) = inputs(clock, remembered).identify([file])
    assert identity.names == (identity.origin,)
    assert len(passes) == 1
    with patience(1.0):
        (identity,) = inputs(clock, remembered).identify([file])
    assert identity.content == digest(b"first")


def test_who_wants_files_to_be_known_by_content_has_each_read_once(file, passes):
    one = inputs(clock_after(file, 10), identity="content")
    with patience(0.0):
        assert one.identify([file]) == one.identify([file])
        assert one.identify([file])[0].content == digest(b"first")
    assert len(passes) == 1


def test_a_file_on_a_slow_disk_is_given_up(file, monkeypatch):
    monkeypatch.setattr(inputs_local, "_BLOCK", 2)
    monkeypatch.setattr(allowance.Allowance, "is_over", lambda self: True)
    with pytest.raises(UnreadInputError, match="takes longer to read"), patience(1.0):
        inputs(clock_after(file, 0)).identify([file])


# how often


def always_touched(file, monkeypatch):
    read, times = inputs_local._digest, []

    def touched(fd, size, *more):
        times.append(size)
        os.utime(file, ns=(len(times), len(times)))
        return read(fd, size, *more)

    monkeypatch.setattr(inputs_local, "_digest", touched)
    return times


def test_a_file_that_changes_while_it_is_read_is_read_once_more_and_then_left_alone(file, monkeypatch, all_large):
    times, clock = always_touched(file, monkeypatch), clock_after(file, 0)
    one = inputs(clock)
    for _ in range(3):
        with pytest.raises(UnreadInputError, match="changes all the time"):
            one.identify([file])
    assert len(times) == 2
    clock.move(61)
    os.utime(file, (clock.now(), clock.now()))
    with pytest.raises(UnreadInputError, match="changes all the time"):
        one.identify([file])
    assert len(times) == 4


def test_a_file_that_changes_is_read_once_more_only_if_there_is_time(file, monkeypatch):
    times = always_touched(file, monkeypatch)
    with pytest.raises(UnreadInputError, match="changes all the time"), patience(1.5 * seconds_for(5)):
        inputs(clock_after(file, 0)).identify([file])
    assert len(times) == 1


def test_a_file_that_is_left_alone_is_known_once_it_is_quiet(file, monkeypatch, all_large):
    always_touched(file, monkeypatch)
    clock = clock_after(file, 0)
    one = inputs(clock)
    with pytest.raises(UnreadInputError):
        one.identify([file])
    clock.move(10)
    assert one.identify([file])[0].origin is not None


def test_a_file_that_changes_before_anything_is_kept_is_left_alone_after_a_second_time(file, passes, all_large):
    clock = clock_after(file, 0)
    one = inputs(clock)
    for number in (2, 3):
        before = one.identify([file])
        file.write_bytes(b"x" * number * 7)
        assert one.changed(before)
    with pytest.raises(UnreadInputError, match="changes all the time"):
        one.identify([file])
    assert len(passes) == 2


def test_small_files_are_never_left_alone(file, monkeypatch):
    times = always_touched(file, monkeypatch)
    one = inputs(clock_after(file, 0))
    for _ in range(3):
        with pytest.raises(UnreadInputError):
            one.identify([file])
    assert len(times) == 6


def test_what_was_seen_has_a_bound(monkeypatch):
    monkeypatch.setattr(restless_module, "_MOST", 3)
    seen = Restless(ManualClock(0))
    for number in range(10):
        seen.note_at_once(f"/{number}")
    assert len(seen._seen) <= 3
    assert seen.is_left_alone("/9", 1 << 30)
    assert seen.is_left_alone("/9", None)
    assert not seen.is_left_alone("/9", 10)
    assert not seen.is_left_alone("/0", 1 << 30)
