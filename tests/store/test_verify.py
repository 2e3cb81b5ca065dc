import os
import threading
import time

import pyarrow as pa
import pytest
from tests.store.making import folder_of, fresh_url, put_table

from nectar.clock import ManualClock
from nectar.errors import StoreFailure
from nectar.faults import nowhere
from nectar.store.local import LocalFiles
from nectar.store.problem import Damaged
from nectar.store.read import Result
from nectar.store.store import Store
from nectar.store.verify import Verified, Verifier

TABLE = pa.table({"a": list(range(100))})
DAY = 86400.0


def at_rest():
    """A time at which files that were written just now are at rest."""
    return time.time_ns() + 10**10


def verified_in(path=None):
    return Verified(path, wall=at_rest)


def damage(store, entry, offset=None):
    """One bit is another one; the stamps of the file move."""
    path = folder_of(store, entry) / "table-00000.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if offset is None else offset] ^= 1
    path.write_bytes(bytes(data))


class Reads:
    """Counts what is read of parts."""

    def __init__(self):
        self.steps = []

    def __call__(self, step):
        self.steps.append(step)

    @property
    def count(self):
        found, self.steps = self.steps.count("read part"), []
        return found


def test_result_is_hashed_once_as_long_as_its_stamps_stay(tmp_path):
    entry, reads = put_table(Store(tmp_path / "s"), TABLE), Reads()
    for expected in (1, 0, 0):
        store = Store(tmp_path / "s", verified=verified_in(tmp_path / "verified"), reach=reads)
        assert isinstance(store.open(entry), Result)
        assert isinstance(store.open(entry), Result)
        assert reads.count == expected
    damage(store, entry)
    for store in (store, Store(tmp_path / "s", verified=verified_in(tmp_path / "verified"))):  # noqa: B020
        assert isinstance(store.open(entry), Damaged)


def test_what_was_changed_a_moment_ago_is_hashed_each_time(tmp_path):
    entry, reads = put_table(Store(tmp_path / "s"), TABLE), Reads()
    moment = max(os.stat(folder_of(Store(tmp_path / "s"), entry) / "table-00000.arrow")[8:10]) * 10**9
    store = Store(tmp_path / "s", verified=Verified(tmp_path / "verified", wall=lambda: moment), reach=reads)
    assert isinstance(store.open(entry), Result)
    assert isinstance(store.open(entry), Result)
    assert reads.count == 2
    assert not (tmp_path / "verified").exists()


def test_old_marks_are_renewed_beside_the_work_and_older_ones_before_it(tmp_path):
    clock, reads = ManualClock(), Reads()
    store = Store(tmp_path / "s", verified=verified_in(), reach=reads, clock=clock, background=True)
    entry = put_table(store, TABLE)
    assert isinstance(store.open(entry), Result)
    reads.steps.clear()
    for days, in_front, in_all in ((1, 0, 0), (3, 0, 1), (8, 1, 1), (-30, 1, 1)):  # a clock may go back, too
        clock.move(days * DAY)
        quiet = Store(tmp_path / "s", verified=store.verified, reach=reads, clock=clock)
        if in_front:
            assert isinstance(quiet.open(entry), Result)
            assert reads.count == 1
        else:
            assert isinstance(store.open(entry), Result)
            store.settle()
            assert reads.count == in_all
    store.close()


def test_damage_without_a_new_stamp_is_found_when_the_mark_is_old(tmp_path, monkeypatch):
    clock = ManualClock()
    store = Store(tmp_path / "s", verified=verified_in(), clock=clock)
    entry = put_table(store, TABLE)
    stamp = LocalFiles(str(folder_of(store, entry)), nowhere).source("table-00000.arrow").stamp
    monkeypatch.setattr("nectar.store.chunks.Checked.stamp", stamp)  # a disk that loses bits without a word
    assert isinstance(store.open(entry), Result)
    damage(store, entry)
    assert isinstance(store.open(entry), Result)
    clock.move(8 * DAY)
    assert isinstance(store.open(entry), Damaged)


def test_damaged_and_torn_lines_count_for_nothing(tmp_path):
    store, reads = Store(tmp_path / "s", verified=verified_in(tmp_path / "verified")), Reads()
    entry = put_table(store, TABLE)
    store.open(entry)
    path = tmp_path / "verified"
    line = path.read_text()

    def is_hashed():
        again = Store(tmp_path / "s", verified=verified_in(path), reach=reads)
        assert isinstance(again.open(entry), Result)
        return bool(reads.count)

    assert not is_hashed()
    older = line.split()
    older[1] = str(int(older[1]) + 3)
    for torn in (line[:-2], line[5:], line[:40] + line, "\0" * 100, "é", " ".join(older)):
        path.write_text(torn, encoding="utf-8")
        assert is_hashed(), torn
    path.write_text(f"{line[:30]}\n{line}{line[:20]}")
    assert not is_hashed()


def test_what_is_no_longer_alive_is_forgotten(tmp_path):
    store = Store(tmp_path / "s", verified=verified_in(tmp_path / "verified"))
    first, second = put_table(store, TABLE), put_table(store, TABLE)
    store.open(first)
    store.open(second)
    store.verified.keep(lambda location: location == second.location)
    assert len(Verified(tmp_path / "verified")) == len(store.verified) == 1


def test_registry_that_cannot_be_written_is_no_failure(tmp_path):
    reads = Reads()
    store = Store(tmp_path / "s", verified=verified_in(tmp_path / "no" / "such" / "folder"), reach=reads)
    entry = put_table(store, TABLE)
    assert isinstance(store.open(entry), Result)
    assert isinstance(store.open(entry), Result)
    assert reads.count == 1


def test_damage_is_found_in_the_background_if_that_is_chosen(tmp_path):
    heard = []
    store = Store(tmp_path / "s", background=True, verified=verified_in(), on_damage=lambda *each: heard.append(each))
    good, bad = put_table(store, TABLE), put_table(store, TABLE)
    damage(store, bad)
    assert isinstance(store.open(good, verify="length"), Result)
    assert isinstance(store.open(bad, verify="length"), Result)
    store.settle()
    assert [(entry, problem.what) for entry, problem in heard] == [(bad, "checksum")]
    assert store.is_sound(good)
    assert not store.is_sound(bad)
    store.close()


WIDE = pa.table({f"c{number}": pa.array(range(300_000), pa.int64()) for number in range(13)})


def test_one_column_of_thirteen_is_verified_alone(tmp_path):
    reads = Reads()
    store = Store(tmp_path / "s", verified=verified_in(), reach=reads)
    entry = put_table(store, WIDE)
    with store.open(entry, in_part=True) as result:
        assert result.schema_ahead() is not None
        frame = result.to_polars(["c5"])
    assert frame.columns == ["c5"]
    assert frame["c5"].sum() == 300_000 * 299_999 // 2
    seen = len([step for step in reads.steps if step == "read part"])
    assert seen < 12, "of some thirty chunks those that hold the column, the footer and the description"
    reads.steps.clear()
    with store.open(entry, in_part=True) as result:
        result.to_polars(["c5"])
    assert reads.count <= 4, "what was verified by this process is not verified again"


@pytest.mark.parametrize("column", ["c0", "c5", "c12"])
def test_damage_beside_a_column_is_none_of_it(tmp_path, column):
    store = Store(tmp_path / "s", verified=verified_in())
    entry = put_table(store, WIDE)
    damage(store, entry, offset=6 * 2_400_000 + 1_200_000)  # within c6, away from what describes the file
    with store.open(entry, in_part=True) as result:
        assert result.to_polars([column])[column].to_list() == list(range(300_000))
        with pytest.raises(StoreFailure, match="damaged"):
            result.to_polars(["c6"])
        with pytest.raises(StoreFailure, match="damaged"):
            result.to_arrow()
    assert not store.is_sound(entry)


def test_evicted_meanwhile_is_no_damage(tmp_path):
    heard = []
    store = Store(tmp_path / "s", background=True, on_damage=lambda *what: heard.append(what))
    entry = put_table(store, TABLE)
    store.delete(entry.location)
    store._verify(entry)
    assert heard == []


def test_queue_is_bounded_and_takes_each_once(local):
    entries = [put_table(local, TABLE) for _ in range(4)]
    begun, gate, done = threading.Event(), threading.Event(), []

    def examine(entry):
        begun.set()
        gate.wait()
        done.append(entry)
        raise RuntimeError("one that fails does not stop the others")

    verifier = Verifier(examine, limit=2)
    assert verifier.submit(entries[0])
    assert begun.wait(60)
    assert [verifier.submit(entry) for entry in entries[1:]] == [True, True, False]
    assert verifier.submit(entries[0])  # it is being verified
    assert verifier.submit(entries[1])  # it waits already
    gate.set()
    assert verifier.drain(60)
    assert done == entries[:3]
    verifier.close()
    assert not verifier.submit(entries[0])


def test_nothing_that_is_raised_keeps_others_from_being_verified(local):
    entries, done = [put_table(local, TABLE) for _ in range(3)], []

    def examine(entry):
        done.append(entry)
        raise SystemExit

    verifier = Verifier(examine)
    for entry in entries:
        assert verifier.submit(entry)
    assert verifier.drain(60)
    assert done == entries
    verifier.close()


def test_who_closes_waits_for_one_chunk_at_most(tmp_path):
    begun, gate = threading.Event(), threading.Event()

    def reach(step):
        if step == "read part":
            begun.set()
            gate.wait(60)

    reads = Reads()
    put = put_table(Store(tmp_path / "s"), WIDE)
    store = Store(tmp_path / "s", background=True, reach=lambda step: (reads(step), reach(step)))
    assert isinstance(store.open(put, verify="length"), Result)
    assert begun.wait(60)
    closing = threading.Thread(target=store.close)
    closing.start()
    while not store._verifier.closed:
        time.sleep(0.001)
    gate.set()
    closing.join(60)
    assert reads.count == 1


def test_what_was_fetched_is_verified_each_time_and_not_fetched_to_be_kept(tmp_path):
    reads = Reads()
    store = Store(fresh_url(), reach=reads)
    entry = put_table(store, TABLE)
    for _ in range(2):
        assert isinstance(store.open(entry), Result)
    reads.steps.clear()
    assert store.is_sound(entry)
    assert reads.steps == []
    folder = store._files._at(f"data/{entry.location}")
    store._files._system.pipe_file(f"{folder}/table-00000.arrow", b"ARROW1" * 200)
    assert isinstance(store.open(entry), Damaged)
    assert not store.is_sound(entry)
