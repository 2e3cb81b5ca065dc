"""Check: every kind of disagreement is found, and mended by repair."""

import errno
import os
import shutil

import pytest
from tests.catalog.making import bytes_of_entries, bytes_on_disk, folder_of, key, manual_clock, opened, read, value

from nectar.catalog.check import check
from nectar.model.entry import Lease


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path / "home", manual_clock())
    for number in range(3):
        catalog.keep(key(number), key(0), value(number))
    catalog.keep(key(3), key(0), value(3, 100))
    yield catalog
    catalog.close()


def kinds(findings):
    return sorted({finding.what for finding in findings})


def found_and_mended(catalog, *what, thorough=False):
    """These kinds of findings, which a check without repair reports and leaves, and repair mends."""
    seen = check(catalog, thorough=thorough, grace=0.0)
    assert kinds(seen) == sorted(what)
    assert not any(finding.mended for finding in seen)
    assert kinds(check(catalog, thorough=thorough, grace=0.0)) == sorted(what), "looking mends nothing"
    mended = check(catalog, repair=True, thorough=thorough, grace=0.0)
    assert set(what) <= {finding.what for finding in mended}
    assert all(finding.mended for finding in mended)
    assert check(catalog, thorough=True, grace=0.0) == []
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
    for each in catalog.index.entries():
        assert catalog.store.examine(each, thorough=True) == []
    return seen


def part(catalog, number):
    return folder_of(catalog, catalog.index.lookup([key(number)])[key(number)]) / "object.pickle"


def test_a_sound_store_has_no_findings(catalog):
    assert check(catalog, thorough=True, grace=0.0) == check(catalog, repair=True) == []
    assert read(catalog, 0) == value(0)


def test_what_cannot_be_read_now_is_told_of_and_not_mended(tmp_path):
    failing = []

    def reach(step):
        if failing and step == "read part":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    catalog = opened(tmp_path / "home", manual_clock(), reach)
    catalog.keep(key(0), key(0), value(0))
    failing.append(True)
    [finding] = check(catalog, repair=True, thorough=True, grace=0.0)
    assert (finding.what, finding.subject, finding.mended) == ("unreadable result", key(0).hex(), False)
    failing.clear()
    assert check(catalog, thorough=True, grace=0.0) == []
    assert read(catalog, 0) == value(0)
    catalog.close()


def test_a_flipped_bit_is_found_by_a_thorough_check(catalog):
    content = bytearray(part(catalog, 1).read_bytes())
    content[100] ^= 4
    part(catalog, 1).write_bytes(content)
    assert check(catalog, grace=0.0) == []
    [finding] = found_and_mended(catalog, "damaged result", thorough=True)
    assert finding.subject == key(1).hex()
    assert "object.pickle" in finding.detail
    assert read(catalog, 1) is None
    assert read(catalog, 2) == value(2)


def test_a_wrong_length_is_found_by_any_check(catalog):
    part(catalog, 1).write_bytes(b"short")
    found_and_mended(catalog, "damaged result")


def test_a_changed_manifest(catalog):
    (part(catalog, 1).parent / "manifest.json").write_text("{}")
    found_and_mended(catalog, "damaged result")


@pytest.mark.parametrize("what", ["part", "folder", "store"])
def test_missing_files(catalog, what):
    if what == "part":
        part(catalog, 1).unlink()
    else:
        shutil.rmtree(part(catalog, 1).parent if what == "folder" else catalog.store.root)
    found = found_and_mended(catalog, "missing result")
    assert len(found) == (3 if what == "store" else 1)
    assert read(catalog, 3) == value(3, 100), "it lies in the index"


def test_a_missing_manifest(catalog):
    (part(catalog, 1).parent / "manifest.json").unlink()
    assert "missing result" in kinds(check(catalog, grace=0.0))
    check(catalog, repair=True, grace=0.0)
    assert check(catalog, thorough=True, grace=0.0) == []


@pytest.mark.parametrize("protection", ["pin", "lease"])
def test_damage_is_mended_whatever_protects_it(catalog, protection):
    known = catalog.index.lookup([key(1)])[key(1)]
    catalog.pin(key(1)) if protection == "pin" else catalog.lease([known], 60.0)
    part(catalog, 1).write_bytes(b"short")
    check(catalog, repair=True, grace=0.0)
    assert check(catalog, grace=0.0) == []
    assert read(catalog, 1) is None


def test_orphaned_files(catalog):
    entry = catalog.index.lookup([key(1)])[key(1)]
    catalog.index.evict([key(1)], catalog.clock.now())
    catalog.index.forget_doomed([entry.location])
    [finding] = found_and_mended(catalog, "orphaned files")
    assert finding.subject == entry.location


def test_an_unfinished_deletion(catalog):
    catalog.index.evict([key(1)], catalog.clock.now())
    found_and_mended(catalog, "unfinished deletion")


def test_a_lapsed_lease(catalog):
    catalog.index.announce(Lease("t", "aa/1", "somebody", catalog.clock.now() - 1, 10**9), None, catalog.clock.now())
    [finding] = found_and_mended(catalog, "lapsed lease")
    assert "somebody" in finding.detail


def test_a_lease_that_holds_is_no_finding(catalog):
    catalog.lease(catalog.index.entries(), 60.0)
    assert check(catalog, repair=True, grace=0.0) == []
    assert len(catalog.index.leases()) == 3


def test_a_wrong_count(catalog):
    catalog.index._connection.execute("UPDATE counts SET number = number + 7 WHERE what = 'size'")
    before = catalog.usage().size
    found_and_mended(catalog, "wrong count")
    assert catalog.usage().size == before - 7


def test_missing_counts(catalog):
    catalog.index._connection.execute("DELETE FROM counts")
    found_and_mended(catalog, "wrong count")
    assert catalog.usage().entries == 4


def test_foreign_files_are_reported_and_left(catalog):
    path = os.path.join(catalog.store.root, "data", "notes.txt")
    with open(path, "w") as file:
        file.write("mine")
    [finding] = check(catalog, repair=True, grace=0.0)
    assert (finding.what, finding.subject, finding.mended) == ("foreign file", "data/notes.txt", False)
    assert os.path.exists(path)


def test_a_damaged_inline_result(catalog):
    catalog.index._connection.execute("UPDATE entries SET inline = x'00' WHERE key = ?", (key(3),))
    found_and_mended(catalog, "damaged result")
    assert read(catalog, 3) is None


def test_a_damaged_index_is_reported(catalog, monkeypatch):
    monkeypatch.setattr(catalog.index, "sound", lambda: ["row 7 missing from index"])
    [finding] = check(catalog, repair=True)
    assert (finding.what, finding.detail, finding.mended) == ("damaged index", "row 7 missing from index", False)


def test_an_entry_that_is_evicted_meanwhile_is_no_finding(catalog, monkeypatch):
    examine = catalog.store.examine

    def evict_first(entry, *, thorough):
        catalog.collector.evict(catalog.collector.plan(everything=True))
        return examine(entry, thorough=thorough)

    monkeypatch.setattr(catalog.store, "examine", evict_first)
    assert check(catalog) == []


def test_everything_at_once(catalog):
    part(catalog, 0).write_bytes(b"short")
    shutil.rmtree(part(catalog, 1).parent)
    catalog.index.evict([key(2)], catalog.clock.now())
    catalog.index._connection.execute("UPDATE counts SET number = 0")
    catalog.index.announce(Lease("t", "aa/1", "x", catalog.clock.now() - 1, 1), None, catalog.clock.now())
    found_and_mended(catalog, "damaged result", "missing result", "unfinished deletion", "wrong count", "lapsed lease")


def test_a_store_that_may_only_be_read_can_be_checked(catalog, tmp_path):
    shutil.rmtree(part(catalog, 1).parent)
    catalog.close()
    reader = opened(tmp_path / "home", manual_clock(), read_only=True)
    assert kinds(check(reader, thorough=True)) == ["missing result"]
    reader.close()
