import errno
import uuid

import pyarrow as pa
import pytest
from tests.store.making import KEY, entry_of, fresh_url, put_table

from nectar.errors import InternalError, StoreFailure
from nectar.store.problem import Gone
from nectar.store.read import Result
from nectar.store.store import Store

TABLE = pa.table({"a": [1, 2, 3]})


def test_published_result_is_there(store):
    entry = put_table(store, TABLE)
    assert entry.rows == 3
    [found] = store.locations()
    assert (found.location, found.staged, found.size, found.files) == (entry.location, False, entry.size, entry.files)
    with store.open(entry) as result:
        assert result.to_arrow().equals(TABLE)


def test_left_without_publish_nothing_stays(store):
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_table(TABLE)
    assert list(store.locations()) == []


def batches_that_end_badly():
    yield from TABLE.to_batches()
    raise ZeroDivisionError


def test_failure_inside_removes_what_was_staged(store):
    with pytest.raises(ZeroDivisionError), store.stage(store.new_location(KEY)) as staging:
        staging.write_table(pa.RecordBatchReader.from_batches(TABLE.schema, batches_that_end_badly()))
    assert list(store.locations()) == []


def test_staged_result_is_not_there(store):
    location = store.new_location(KEY)
    with store.stage(location) as staging:
        staging.write_table(TABLE)
        [found] = store.locations()
        assert found.staged
        assert found.location == location


def test_location_is_used_once_and_what_lies_there_stays(store):
    entry = put_table(store, TABLE)
    with pytest.raises(InternalError, match="taken"), store.stage(entry.location) as staging:
        staging.write_table(TABLE)
    assert isinstance(store.open(entry), Result)


def test_nothing_cannot_be_published(store):
    with store.stage(store.new_location(KEY)) as staging, pytest.raises(InternalError):
        staging.publish()


def test_raw_parts_come_back(store):
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_bytes("plan.bin", b"abc")
        staging.write_bytes("empty", b"")
        with pytest.raises(InternalError):
            staging.write_bytes("../escape", b"")
        entry = entry_of(staging.publish())
    with store.open(entry, verify="before") as result:
        assert bytes(result.part("plan.bin")) == b"abc"
        assert bytes(result.part("empty")) == b""


def test_inline_result_comes_back_from_its_bytes(local):
    with local.stage_inline() as staging:
        staging.write_table(TABLE)
        entry = entry_of(staging.publish())
    assert (entry.location, entry.files, entry.size) == ("", 0, len(entry.inline))
    assert local.open(entry).to_arrow().equals(TABLE)
    assert list(local.locations()) == []


class Refusing:
    """Fails with an errno at every step from a certain one on, or at that one only."""

    def __init__(self, step, code, *, for_good):
        self.step, self.code, self.for_good, self.seen = step, code, for_good, 0

    def __call__(self, name):
        self.seen += 1
        if self.seen == self.step or (self.for_good and self.seen > self.step):
            raise OSError(self.code, "injected")


def steps_of_a_commit(root):
    seen = []
    put_table(Store(root, reach=seen.append), TABLE)
    return seen


@pytest.fixture(params=["local", "memory"])
def new_root(request, tmp_path):
    """Gives roots that nobody used before."""
    return (lambda: tmp_path / uuid.uuid4().hex) if request.param == "local" else fresh_url


def test_steps_of_a_commit_are_announced(tmp_path):
    steps = steps_of_a_commit(tmp_path)
    order = ["create part", "write part", "fsync part", "create manifest", "write manifest", "fsync manifest"]
    positions = [steps.index(step) for step in [*order, "rename into place"]]
    assert positions == sorted(positions)
    assert steps[positions[-1] + 1 :] == ["fsync folder"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_failure_at_any_step_leaves_nothing_and_says_what_to_do(new_root, code):
    steps = steps_of_a_commit(new_root())
    for step in range(1, len(steps) + 1):
        root = new_root()
        with pytest.raises(StoreFailure) as caught:
            put_table(Store(root, reach=Refusing(step, code, for_good=False)), TABLE)
        assert caught.value.errno == code, steps[step - 1]
        assert "; " in str(caught.value)
        assert list(Store(root).locations()) == [], steps[step - 1]


def test_lasting_failure_leaves_nothing_half_visible(new_root):
    steps = steps_of_a_commit(new_root())
    for step in range(1, len(steps) + 1):
        root = new_root()
        with pytest.raises(StoreFailure):
            put_table(Store(root, reach=Refusing(step, errno.ENOSPC, for_good=True)), TABLE)
        after = Store(root)
        for found in after.locations():
            # Only if even the removal fails is anything left: not published, or published whole.
            assert found.staged or found.files == 2, steps[step - 1]
            after.delete(found.location)
        assert list(after.locations()) == []


def test_full_disk_while_polars_writes_keeps_its_errno(tmp_path):
    pl = pytest.importorskip("polars")

    def full(step):
        if step == "write part":
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreFailure) as caught:
        put_table(Store(tmp_path, reach=full), pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)}))
    assert caught.value.errno == errno.ENOSPC


def test_entry_that_was_never_published_is_gone(store):
    entry = put_table(store, TABLE)
    store.delete(entry.location)
    assert isinstance(store.open(entry), Gone)
