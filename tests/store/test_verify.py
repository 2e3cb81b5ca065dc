import threading

import pyarrow as pa
from tests.store.making import folder_of, put_table

from nectar.store.read import Damaged, Result
from nectar.store.store import Store
from nectar.store.verify import Verified, Verifier

TABLE = pa.table({"a": list(range(100))})


def damage(store, entry):
    path = folder_of(store, entry) / "table-00000.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_result_is_hashed_once(tmp_path):
    entry = put_table(Store(tmp_path / "s"), TABLE)
    store = Store(tmp_path / "s", verified=Verified(tmp_path / "verified"))
    assert isinstance(store.open(entry, verify="before"), Result)
    assert entry in store.verified
    damage(store, entry)
    assert isinstance(store.open(entry, verify="before"), Result)  # verified before, on this machine
    assert entry in Verified(tmp_path / "verified")
    store.verified.forget()
    assert entry not in Verified(tmp_path / "verified")
    assert isinstance(store.open(entry, verify="before"), Damaged)


def test_torn_lines_count_for_nothing(tmp_path, local):
    entry = put_table(local, TABLE)
    path = tmp_path / "verified"
    line = f"{entry.location} {entry.manifest.hex()}\n"
    for torn in (line[:-2], line[5:], line[:40] + line, "\0" * 100, "é"):
        path.write_text(torn, encoding="utf-8")
        assert entry not in Verified(path)
    path.write_text(f"{line[:30]}\n{line}{line[:20]}")
    assert entry in Verified(path)


def test_what_is_no_longer_alive_is_forgotten(tmp_path, local):
    first, second = put_table(local, TABLE), put_table(local, TABLE)
    verified = Verified(tmp_path / "verified")
    verified.add(first)
    verified.add(second)
    verified.keep(lambda location: location == second.location)
    assert len(Verified(tmp_path / "verified")) == len(verified) == 1
    assert second in verified


def test_registry_that_cannot_be_written_is_no_failure(tmp_path, local):
    entry = put_table(local, TABLE)
    verified = Verified(tmp_path / "no" / "such" / "folder")
    verified.add(entry)
    assert entry in verified


def test_damage_is_found_in_the_background(tmp_path):
    heard = []
    store = Store(tmp_path / "s", background=True, on_damage=lambda entry, problem: heard.append((entry, problem.what)))
    good, bad = put_table(store, TABLE), put_table(store, TABLE)
    damage(store, bad)
    assert isinstance(store.open(good), Result)
    assert isinstance(store.open(bad), Result)
    store.settle()
    assert heard == [(bad, "checksum")]
    assert good in store.verified
    assert bad not in store.verified
    store.close()


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
