"""Results that an engine writes by itself: kept whole, or nothing of them is left."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.catalog.making import bytes_on_disk, key, manual_clock, opened

from nectar.catalog import service
from nectar.catalog.service import Kept, NotKept

TABLE = pa.table({"a": list(range(1000))})


@pytest.fixture
def clock():
    return manual_clock()


def write(place, table=TABLE):
    folder = Path(place.path)
    folder.mkdir()
    pq.write_table(table, folder / "part-0.parquet")


def test_what_an_engine_has_written_is_kept(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    with catalog.handover(key(1), 1000) as place:
        assert [lease.size for lease in catalog.index.leases()] == [1000]
        write(place)
        place.beside["schema"] = b"of the engine"
        kept = catalog.keep(key(1), key(0), place, table=True, seconds=2.0, about="something")
    assert isinstance(kept, Kept)
    assert (kept.entry.kind, kept.entry.rows, kept.entry.seconds) == ("parquet", 1000, 2.0)
    assert catalog.index.leases() == []
    with catalog.open(kept.entry) as result:
        assert result.to_arrow().equals(TABLE)
        assert bytes(result.part("schema")) == b"of the engine"
    assert bytes_on_disk(catalog) == kept.entry.size
    catalog.discard([kept.entry])
    assert bytes_on_disk(catalog) == 0
    catalog.close()


def test_what_is_not_kept_is_gone(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    with catalog.handover(key(1), 1000) as place:
        write(place)
    with pytest.raises(ZeroDivisionError), catalog.handover(key(1), 1000) as place:
        write(place, 1 / 0)
    assert catalog.index.leases() == []
    assert bytes_on_disk(catalog) == 0
    assert catalog.index.lookup([key(1)]) == {}
    catalog.close()


def test_nothing_is_no_result(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    with catalog.handover(key(1), 1000) as place:
        answer = catalog.keep(key(1), key(0), place, table=True)
    assert isinstance(answer, NotKept)
    assert catalog.index.leases() == []
    assert list(catalog.store.locations()) == []
    catalog.close()


def test_of_two_the_first_stays(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    with catalog.handover(key(1), 1000) as one, catalog.handover(key(1), 1000) as other:
        write(one)
        write(other, TABLE.slice(5))
        first = catalog.keep(key(1), key(0), one, table=True)
        second = catalog.keep(key(1), key(0), other, table=True)
    assert second.entry == first.entry
    assert bytes_on_disk(catalog) == first.entry.size
    assert catalog.index.leases() == []
    catalog.close()


def test_there_has_to_be_room(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=10_000)
    assert isinstance(catalog.handover(key(1), 20_000), NotKept)
    assert catalog.index.leases() == []
    catalog.close()


def test_what_turns_out_larger_than_the_budget_does_not_stay(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=2_000)
    with catalog.handover(key(1), 1_000) as place:
        write(place, pa.table({"a": list(range(100_000))}))
        catalog.keep(key(1), key(0), place, table=True)
    assert bytes_on_disk(catalog) <= 2_000
    assert catalog.usage().total <= 2_000
    catalog.close()


def test_a_store_that_may_only_be_read_gives_no_place(tmp_path, clock):
    opened(tmp_path / "home", clock).close()
    catalog = opened(tmp_path / "home", clock, read_only=True)
    assert isinstance(catalog.handover(key(1), 1000), NotKept)
    catalog.close()


def test_an_engine_that_is_slower_than_its_lease_keeps_nothing(tmp_path, clock):
    home = tmp_path / "home"
    catalog, sweeper = opened(home, clock), opened(home, clock)
    with catalog.handover(key(1), 1000) as place:
        write(place)
        clock.move(service._WRITING + 1)
        sweeper.collector.sweep(grace=0.0)
        answer = catalog.keep(key(1), key(0), place, table=True)
    assert isinstance(answer, NotKept)
    assert catalog.index.lookup([key(1)]) == {}
    assert bytes_on_disk(catalog) == 0
    catalog.close()
    sweeper.close()


def test_what_an_engine_is_writing_is_not_swept(tmp_path, clock):
    home = tmp_path / "home"
    catalog, sweeper = opened(home, clock), opened(home, clock)
    with catalog.handover(key(1), 1000) as place:
        write(place)
        sweeper.collector.sweep(grace=0.0)
        kept = catalog.keep(key(1), key(0), place, table=True)
    assert isinstance(kept, Kept)
    catalog.close()
    sweeper.close()


def test_what_a_dead_process_left_is_swept(tmp_path, clock):
    home = tmp_path / "home"
    catalog = opened(home, clock)
    place = catalog.handover(key(1), 1000)
    place.__enter__()
    write(place)
    assert bytes_on_disk(catalog) > 0
    clock.move(service._WRITING + 1)
    catalog.collector.sweep(grace=0.0)
    assert bytes_on_disk(catalog) == 0
    assert list(catalog.store.locations()) == []
    catalog.close()
