"""Files that a function is handed: whatever is done to them, no later call gets an answer about other bytes."""

import os
import threading
import time

import pandas as pd
import polars as pl
import pytest
from tests.dialects.python.programs import OUTCOMES

import nectar
from nectar.clock import ManualClock
from nectar.errors import NectarWarning
from nectar.keys import patience as patience_module
from nectar.overhead import allowance
from nectar.overhead.steering import Steering
from nectar.session import Session
from nectar.store.inputs import local as inputs_local

pytestmark = pytest.mark.usefixtures("enabled")


@nectar.memo
def read(file):
    with file.open() as opened:
        return opened.read()


@nectar.memo
def read_all(folder):
    return [(file.name, file.read_text()) for file in folder]


def outcome():
    return nectar.last_run().parts[-1].outcome


def age(path, seconds=100.0):
    """The file has not been changed for a while, as far as its times of modification tell."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("one")
    return path


def test_a_file_is_read_once_as_long_as_it_is_the_same(path):
    assert read(nectar.File(path)) == "one"
    assert read(nectar.File(str(path))) == "one"
    assert outcome() == "reused"
    path.write_text("two")
    assert read(nectar.File(path)) == "two"
    assert outcome() == "computed"
    path.write_text("one")
    assert read(nectar.File(path)) == "one"


@pytest.mark.parametrize("content", ["origin", "content"])
def test_rewritten_with_equal_size_and_restored_times(path, home, content):
    with nectar.reuse(home=home, reserve=0, identity=content):
        for text in ("one", "two", "six", "one"):
            before = path.stat()
            path.write_text(text)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert read(nectar.File(path)) == text
            assert read(nectar.File(path)) == text


def test_replaced_by_rename(path, tmp_path):
    age(path)
    assert read(nectar.File(path)) == "one"
    before = path.stat()
    for text in ("two", "six"):
        other = tmp_path / "other"
        other.write_text(text)
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.rename(path)
        assert read(nectar.File(path)) == text


def test_swapped_with_another_file_and_back(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("two")
    age(path)
    age(other)
    for expected in ("one", "two", "one", "two"):
        assert read(nectar.File(path)) == expected
        path.rename(tmp_path / "third")
        other.rename(path)
        (tmp_path / "third").rename(other)


def test_a_link_that_leads_elsewhere(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("two")
    age(path)
    age(other)
    link = tmp_path / "link"
    for target, text in ((path, "one"), (other, "two"), (path, "one")):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert read(nectar.File(link)) == text


def test_rewritten_during_the_call(path):
    @nectar.pure
    def rewrite(file):
        with open(file.path, "w") as opened:
            opened.write("six")

    @nectar.memo
    def interrupted(file, change):
        before = file.read_text()
        if change:
            rewrite(file)
        return before

    assert interrupted(nectar.File(path), True) == "one"
    part = nectar.last_run().parts[-1]
    assert part.keeping.startswith("not kept: ")
    assert str(path) in part.keeping
    assert interrupted(nectar.File(path), False) == "six"
    path.write_text("one")
    assert interrupted(nectar.File(path), True) == "one"
    assert interrupted(nectar.File(path), False) == "six"


def test_rewritten_by_another_thread_while_it_is_read_again_and_again(path):
    """An answer is about bytes that were there during the call, and the last one about the last bytes."""
    stop = threading.Event()

    def rewrite():
        number = 0
        while not stop.is_set():
            number += 1
            other = path.with_suffix(".new")
            other.write_text(f"{number:06d}")
            other.rename(path)

    thread = threading.Thread(target=rewrite)
    path.write_text("000000")
    thread.start()
    try:
        for _ in range(30):
            low = int(path.read_text())
            answer = int(read(nectar.File(path)))
            high = int(path.read_text())
            assert low <= answer <= high
    finally:
        stop.set()
        thread.join()
    assert read(nectar.File(path)) == path.read_text()


def test_a_file_that_goes_away_is_missed_as_without_nectar(path):
    anew = nectar.memo(read.func)  # of which nothing was said yet
    assert anew(nectar.File(path)) == "one"
    path.unlink()
    with pytest.warns(nectar.NectarWarning, match="data.txt"), pytest.raises(FileNotFoundError):
        anew(nectar.File(path))


def test_two_files_with_the_same_bytes_are_two_places(tmp_path):
    @nectar.memo
    def place_and_text(file):
        return file.name, file.read_text()

    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
    assert place_and_text(nectar.File(tmp_path / "a")) == ("a", "same")
    assert place_and_text(nectar.File(tmp_path / "b")) == ("b", "same")


def test_several_files_in_an_argument(tmp_path):
    @nectar.memo
    def joined(files, more):
        return "".join(file.read_text() for file in files) + "".join(file.read_text() for file in more["x"])

    files = [nectar.File(tmp_path / name) for name in "abc"]
    for file in files:
        (tmp_path / file.name).write_text(file.name)
    last = {"x": [files[2]]}
    assert joined(files, last) == "abcc"
    assert joined(files[::-1], last) == "cbac"
    assert joined(files[:1], last) == "ac"
    assert joined(files, last) == "abcc"
    assert outcome() == "reused"
    (tmp_path / "c").write_text("C")
    assert joined(files, last) == "abCC"
    assert joined(files[:1], last) == "aC"
    (tmp_path / "a").write_text("C")
    (tmp_path / "c").write_text("a")
    assert joined(files, last) == "Cbaa", "contents exchanged"


def test_folders(tmp_path):
    place = tmp_path / "folder"
    place.mkdir()
    (place / "a.txt").write_text("1")
    folder = nectar.Folder(place)
    assert read_all(folder) == [("a.txt", "1")]
    assert read_all(folder) == [("a.txt", "1")]
    assert outcome() == "reused"
    (place / "b.txt").write_text("2")
    assert read_all(folder) == [("a.txt", "1"), ("b.txt", "2")]
    (place / "a.txt").rename(place / "c.txt")
    assert read_all(folder) == [("b.txt", "2"), ("c.txt", "1")]
    (place / "b.txt").write_text("3")
    assert read_all(folder) == [("b.txt", "3"), ("c.txt", "1")]
    (place / "b.txt").unlink()
    assert read_all(folder) == [("c.txt", "1")]
    (place / "c.txt").unlink()
    assert read_all(folder) == []
    (place / "sub").mkdir()
    (place / "sub" / "d.csv").write_text("4")
    chosen = nectar.Folder(place, "**/*.csv")
    assert [text for _, text in read_all(chosen)] == ["4"]
    (place / "e.txt").write_text("5")
    assert [text for _, text in read_all(chosen)] == ["4"]
    assert outcome() == "reused", "a file that the pattern does not name"
    (place / "sub" / "f.csv").write_text("6")
    assert [text for _, text in read_all(chosen)] == ["4", "6"]


def test_a_file_added_to_a_folder_during_the_call(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("1")

    @nectar.pure
    def add(folder):
        with open(f"{folder.path}/b", "w") as opened:
            opened.write("2")

    @nectar.memo
    def interrupted(folder, change):
        names = [file.name for file in folder]
        if change:
            add(folder)
        return names

    folder = nectar.Folder(tmp_path / "in")
    assert interrupted(folder, True) == ["a"]
    assert nectar.last_run().parts[-1].keeping.startswith("not kept: ")
    assert interrupted(folder, False) == ["a", "b"]


def test_declared_files_may_be_given_to_readers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    readers = [
        lambda file: pd.read_csv(file.path), lambda file: pl.read_csv(file.path), lambda file: open(file.path).read(),
        lambda file: pd.read_csv(file), lambda file: pl.scan_csv(file.path).collect(),
    ]  # fmt: skip
    outcomes = []
    for reader in readers:
        path.write_text("a,b\n1,2\n")
        memoised = nectar.memo(reader)
        file = nectar.File(path)
        first = memoised(file)
        again = memoised(file)
        outcomes.append(outcome())
        assert str(again) == str(first) == str(reader(file))
        path.write_text("a,b\n3,4\n")
        assert str(memoised(file)) == str(reader(file)) != str(first)
    assert outcomes[:3] == ["reused"] * 3
    assert outcomes[4] == "reused"


def test_a_path_beside_the_declared_one_is_a_hidden_input(tmp_path):
    (tmp_path / "data.txt").write_text("x")
    for number, reader in enumerate(
        (
            lambda file, other: open(other).read(), lambda file, other: open(file.path + ".side").read(),
            lambda file, other: pd.read_csv(other).to_csv(), lambda file, other: open([file.path, other][1]).read(),
            lambda file, other: open(file.path.replace("data", "other")).read(),
            lambda file, other: open(os.path.join(os.path.dirname(file.path), "other.txt")).read(),
            lambda file, other: [open(each).read() for each in (file, other)][1],
            lambda file, other: "".join(open(p).read() for p in {"p": file.path, "q": other}.values()),
        )
    ):  # fmt: skip
        memoised = nectar.memo(reader)
        results = []
        for text in ("a\n1\n", "a\n2\n"):
            (tmp_path / "other.txt").write_text(text)
            (tmp_path / "data.txt.side").write_text(text)
            args = nectar.File(tmp_path / "data.txt"), str(tmp_path / "other.txt")
            with pytest.warns() if text == "a\n1\n" else _quietly():
                results.append(memoised(*args))
            assert results[-1] == reader(*args), f"reader {number}"


class _quietly:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def test_writing_to_a_declared_file_is_refused(path):
    with pytest.raises(nectar.UserError, match="input"):
        nectar.File(path).open("w")

    def writes(file):
        with open(file.path, "a") as opened:
            opened.write("!")
        return 1

    memoised = nectar.memo(writes)
    with pytest.warns(nectar.NectarWarning):
        memoised(nectar.File(path))
    memoised(nectar.File(path))
    assert path.read_text() == "one!!", "an effect happens each time"


def test_depends_on_a_file(path):
    where = str(path)

    @nectar.memo(depends_on=[nectar.File(path)])
    def reads_by_name():
        with open(where) as opened:
            return opened.read()

    assert reads_by_name() == "one"
    assert reads_by_name() == "one"
    assert outcome() == "reused"
    path.write_text("two")
    assert reads_by_name() == "two"
    path.write_text("one")
    age(path)
    assert reads_by_name() == "one"


def test_a_captured_file_counts(path):
    file = nectar.File(path)

    @nectar.memo
    def captured():
        return file.read_text()

    assert [captured(), captured()] == ["one", "one"]
    assert outcome() == "reused"
    path.write_text("two")
    assert captured() == "two"


def test_sources_that_are_good_for_a_while(home, monkeypatch):
    from nectar import session

    clock = ManualClock(1_000_000 * 86400.0)
    ours = Session(session._settings({"home": home / "clock", "reserve": 0}), clock)
    monkeypatch.setattr(session, "_chosen", ours)
    answers = home.parent / "answers"

    @nectar.memo
    def fetched(source):
        with open(source.path) as opened:
            return opened.read()

    source = nectar.valid_for(str(answers), "1d")
    answers.write_text("monday")
    assert fetched(source) == "monday"
    answers.write_text("tuesday")
    clock.move(86399.0)
    assert fetched(source) == "monday"
    assert outcome() == "reused"
    clock.move(1.0)
    assert fetched(source) == "tuesday"
    assert fetched(nectar.valid_for(str(answers), "2d")) == "tuesday"
    assert outcome() == "computed", "another period is another promise"
    for wrong in ("soon", "0d", -1, 0):
        with pytest.raises(nectar.UserError):
            nectar.valid_for("x", wrong)
    ours.close()


def test_a_period_that_ends_during_the_call(home, monkeypatch):
    from nectar import session

    clock = ManualClock(1_000_000 * 86400.0 - 1)
    ours = Session(session._settings({"home": home / "clock", "reserve": 0}), clock)
    monkeypatch.setattr(session, "_chosen", ours)
    answers = home.parent / "answers"
    answers.write_text("old")

    @nectar.memo
    def fetched(source):
        with open(source.path) as opened:
            return opened.read()

    assert fetched(nectar.valid_for(str(answers), "1d")) == "old"
    clock.move(1.0)
    answers.write_text("new")
    assert fetched(nectar.valid_for(str(answers), "1d")) == "new"
    ours.close()


def test_in_another_process(program):
    program.write(
        script=f"""
import json, sys
import nectar

@nectar.memo
def read(file):
    return file.read_text()
{OUTCOMES}
print(json.dumps(outcomes(read, nectar.File("data.txt"))))
"""
    )
    data = program.folder / "data.txt"
    data.write_text("one")
    assert program.told("script") == ["one", "read computed"]
    assert program.told("script") == ["one", "read reused"]
    before = data.stat()
    data.write_text("two")
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert program.told("script") == ["two", "read computed"]
    other = program.folder / "other"
    other.write_text("six")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(data)
    assert program.told("script") == ["six", "read computed"]


# how long looking at them takes


@pytest.fixture
def strict(enabled):
    """Nectar has no time left for anything."""
    enabled.steering = Steering(0.0, 0.0, None, program="", age=0.0)
    return enabled


@pytest.fixture
def passes(monkeypatch):
    """How many files were read to be known by their content."""
    digest, done = inputs_local._digest, []
    monkeypatch.setattr(inputs_local, "_digest", lambda fd, size, *more: done.append(size) or digest(fd, size, *more))
    return done


def test_a_new_file_of_some_megabytes_is_known_at_once(strict, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"x" * (5 << 20))

    size = nectar.memo(lambda file: len(file.read_bytes()))
    assert size(nectar.File(path)) == 5 << 20
    assert outcome() == "computed"


def test_a_new_file_that_is_too_large_to_be_known_by_its_content_is_not_read_by_us(strict, tmp_path, passes):
    path = tmp_path / "data.csv"
    path.write_text("1")
    os.truncate(path, 1 << 30)

    @nectar.memo
    def first(file):
        with file.open("rb") as opened:
            return opened.read(1)

    with pytest.warns(NectarWarning, match=f"it reads {path}, too much to be known by its content"):
        assert first(nectar.File(path)) == b"1"
    assert outcome() == "uncacheable"
    assert first(nectar.File(path)) == b"1"
    assert passes == []


def many(place):
    place.mkdir()
    for number in range(30):
        (place / f"{number}").write_text("x")
    return place


def test_a_folder_of_many_new_files_is_not_read_by_us(strict, tmp_path, passes, monkeypatch):
    files = many(tmp_path / "many")
    monkeypatch.setattr(allowance, "_FILE", 1e-3)

    count = nectar.memo(lambda folder: len(list(folder)))
    with pytest.warns(NectarWarning, match="and others, too much to be known by its content"):
        assert count(nectar.Folder(files)) == 30
    assert passes == []


def test_a_folder_of_more_files_than_there_is_time_to_look_at(strict, tmp_path, monkeypatch):
    files = many(tmp_path / "many")
    monkeypatch.setattr(patience_module, "_MANY", 10)
    monkeypatch.setattr(patience_module, "_FILES", 1.0)
    identified = []
    monkeypatch.setattr(strict.inputs, "identify", identified.append)

    count = nectar.memo(lambda folder: len(list(folder)))
    with pytest.warns(NectarWarning, match="a folder of 30 files holds so much"):
        assert count(nectar.Folder(files)) == 30
    assert identified == []
