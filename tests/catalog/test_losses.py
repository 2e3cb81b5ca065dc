"""What was made from a damaged result goes with it, whatever protects it; what was not stays."""

import errno
import os
import sqlite3

import pytest
from tests.catalog.making import folder_of, key, manual_clock, opened, read, value

from nectar.catalog.check import check
from nectar.catalog.service import Kept, NotKept
from nectar.errors import StoreFailure
from nectar.model.lineage import Sources
from nectar.store.problem import Damaged
from nectar.store.read import Result


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path / "home", manual_clock())
    yield catalog
    catalog.close()


def keep(catalog, number, *made_from, told=False, size=2000):
    sources = (lambda: Sources(made_from=tuple(each.key for each in made_from))) if told else None
    done = catalog.keep(key(number), key(0), value(number, size), made_from=made_from, sources=sources)
    assert isinstance(done, Kept), done
    return done.entry


def flip(catalog, entry):
    path = folder_of(catalog, entry) / "object.pickle"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def left(catalog):
    return [number for number in range(10) if catalog.index.lookup([key(number)])]


@pytest.mark.parametrize("told", [False, True], ids=["by the entries it used", "by provenance"])
def test_everything_made_from_a_damaged_result_is_evicted(catalog, told):
    first, beside = keep(catalog, 1), keep(catalog, 2)
    second = keep(catalog, 3, first, told=told)
    keep(catalog, 4, second, beside, told=told, size=10)  # inline
    keep(catalog, 5, beside, told=told)
    catalog.pin(key(3))
    [lease] = catalog.lease([second], 60.0)
    flip(catalog, first)
    assert isinstance(catalog.open(first), Damaged)
    assert left(catalog) == [2, 5]
    catalog.collector.delete_doomed()
    assert folder_of(catalog, second).exists(), "whoever reads it goes on"
    catalog.end([lease])
    catalog.collector.delete_doomed()
    assert not folder_of(catalog, second).exists()
    assert check(catalog, thorough=True, grace=0.0) == []


def test_a_result_made_again_in_another_way_is_known_to_be(catalog):
    alone = keep(catalog, 3, told=True)
    catalog.discard([alone])
    first = keep(catalog, 1)
    keep(catalog, 3, first, told=True)  # the first account of it knew nothing of this
    flip(catalog, first)
    catalog.open(first)
    assert left(catalog) == []


def test_repair_evicts_what_was_made_from_what_it_finds(catalog):
    first = keep(catalog, 1)
    keep(catalog, 2, first)
    flip(catalog, first)
    check(catalog, repair=True, thorough=True)
    assert left(catalog) == []


def test_what_is_gone_takes_nothing_with_it(catalog):
    first = keep(catalog, 1)
    keep(catalog, 2, first)
    catalog.store.delete(first.location)
    catalog.open(first)
    assert left(catalog) == [2]


@pytest.mark.parametrize("verify", ["before", "length"])
def test_nothing_is_kept_that_was_made_from_what_was_damaged_meanwhile(tmp_path, verify):
    catalog = opened(tmp_path / "home", manual_clock(), verify=verify)
    first = keep(catalog, 1)
    assert isinstance(catalog.open(first), Result)
    flip(catalog, first)
    done = catalog.keep(key(2), key(0), value(2), made_from=[first])
    assert isinstance(done, NotKept)
    assert "damaged" in done.reason
    assert left(catalog) == []
    done = catalog.keep(key(2), key(0), value(2), made_from=[first])
    assert isinstance(done, NotKept), "nor later, though it is gone by now"
    catalog.close()


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.EMFILE, errno.ESTALE, errno.ETIMEDOUT])
@pytest.mark.parametrize("step", ["open part", "read part", "map part"])
def test_what_cannot_be_read_for_the_moment_stays_and_all_that_was_made_from_it(tmp_path, caplog, code, step):
    failing = []

    def reach(name):
        if failing and name == step:
            raise OSError(code, os.strerror(code))

    catalog = opened(tmp_path / "home", manual_clock(), reach)
    first = keep(catalog, 1)
    second = keep(catalog, 2, first)
    catalog.pin(key(1))
    catalog.store.verified.forget()
    failing.append(True)
    with pytest.raises(StoreFailure) as caught, catalog.open(first) as result:
        result.to_object()
    assert caught.value.errno == code
    if step != "map part":
        assert isinstance(catalog.keep(key(3), key(0), value(3), made_from=[first]), NotKept), "nobody knows"
    failing.clear()
    assert left(catalog) == [1, 2]
    assert catalog.index.lookup([key(1)])[key(1)].pinned
    assert [read(catalog, number) for number in (1, 2)] == [value(1), value(2)]
    assert folder_of(catalog, second).exists()
    assert "lost" not in caplog.text
    assert check(catalog, thorough=True, grace=0.0) == []
    catalog.close()


@pytest.mark.parametrize("step", ["open part", "read part"])
def test_what_a_device_cannot_read_goes_alone(tmp_path, step):
    """Who has read it before has read what was verified: what was made from it is right."""
    failing = []

    def reach(name):
        if failing and name == step:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    catalog = opened(tmp_path / "home", manual_clock(), reach)
    first = keep(catalog, 1)
    keep(catalog, 2, first)
    catalog.store.verified.forget()
    failing.append(True)
    assert isinstance(catalog.open(first), Damaged)
    failing.clear()
    assert left(catalog) == [2]
    assert read(catalog, 2) == value(2)
    catalog.close()


# rows


def change(catalog, statement, *values):
    with sqlite3.connect(catalog.index.path) as connection:
        assert connection.execute(statement, values).rowcount == 1
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET program = x'6b' WHERE key = ?",
        "UPDATE entries SET spans = x'9193c40161c4016203' WHERE key = ?",
        "UPDATE entries SET spans = x'ff00' WHERE key = ?",
        "UPDATE entries SET kind = 'arrow' WHERE key = ?",
        "UPDATE entries SET location = 'nowhere' WHERE key = ?",
        "UPDATE entries SET manifest = zeroblob(32) WHERE key = ?",
    ],
)
@pytest.mark.parametrize("size", [10, 2000])
def test_a_row_that_does_not_fit_its_result_is_damage(catalog, statement, size):
    entry = keep(catalog, 1, size=size)
    if "location" in statement and not entry.location:
        pytest.skip("an inline result lies nowhere")
    change(catalog, statement, key(1))
    assert "damaged result" in {finding.what for finding in check(catalog)}
    [bad] = catalog.index.entries()
    assert isinstance(catalog.open(bad), Damaged)
    assert left(catalog) == []
    keep(catalog, 1, size=size)
    assert read(catalog, 1) == value(1, size)
    check(catalog, repair=True, grace=0.0)
    assert check(catalog, thorough=True, grace=0.0) == []


def test_rows_that_changed_places_are_damage(catalog):
    for number in (1, 2):
        keep(catalog, number, size=10)
    one, other = (catalog.index.lookup([key(number)])[key(number)] for number in (1, 2))
    for number, entry in ((1, other), (2, one)):
        statement = "UPDATE entries SET manifest = ?, inline = ? WHERE key = ?"
        change(catalog, statement, entry.manifest, entry.inline, key(number))
    for entry in list(catalog.index.entries()):
        assert isinstance(catalog.open(entry), Damaged)
    assert left(catalog) == []
