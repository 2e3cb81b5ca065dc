"""Which failures mean that bytes are lost: those of the device and of the content, and none of the moment."""

import errno
import os

import polars as pl
import pyarrow as pa
import pytest
from tests.store.making import folder_of, forgetful, put_object, put_table

from nectar.errors import StoreFailure
from nectar.store import local as local_files
from nectar.store.chunks import DamagedPartError
from nectar.store.loss import DamagedError, is_loss, unparsed
from nectar.store.problem import Damaged
from nectar.store.read import Result
from nectar.store.store import Store

MAY_PASS = ["ENOMEM", "EMFILE", "ENFILE", "EACCES", "ESTALE", "ETIMEDOUT", "ENOTCONN", "EINTR", "EAGAIN", "EBADF"]
TABLE = pa.table({"a": list(range(1000))})


@pytest.fixture(params=MAY_PASS)
def code(request):
    return getattr(errno, request.param)


def failing(local, step, code, heard):
    def reach(name):
        if name == step:
            raise OSError(code, "injected")

    return Store(local.root, reach=reach, on_damage=lambda _, problem: heard.append(problem))


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "x"), StoreFailure(errno.EIO, "x"), DamagedError("x"), DamagedPartError("a", "x"),
     pl.exceptions.ComputeError("Input/output error (os error 5)")],
)  # fmt: skip
def test_what_the_device_has_lost_or_cannot_be_what_was_written_is_lost(error):
    assert is_loss(error)


@pytest.mark.parametrize("error", [MemoryError(), OSError("x"), StoreFailure("x"), ValueError("x"), OSError(1, "x")])
def test_nothing_else_is(error, code):
    assert not is_loss(error)
    assert not is_loss(OSError(code, "x"))


@pytest.mark.parametrize("step", ["read manifest", "open part", "read ends of part", "read part"])
def test_an_opening_that_fails_for_the_moment_says_nothing_of_the_result(local, step, code):
    entry, heard = put_table(local, TABLE), []
    with pytest.raises(StoreFailure) as caught:
        failing(local, step, code, heard).open(entry)
    assert caught.value.errno == code
    assert heard == []
    assert isinstance(forgetful(local).open(entry), Result)


@pytest.mark.parametrize("step", ["read ends of part", "read part"])
def test_an_opening_that_the_device_fails_is_damage(local, step):
    entry, heard = put_table(local, TABLE), []
    assert isinstance(failing(local, step, errno.EIO, heard).open(entry), Damaged)
    assert len(heard) == 1


@pytest.mark.parametrize("step", ["map part", "read part"])
def test_a_reading_that_fails_for_the_moment_deletes_nothing_and_says_so(local, step, code, caplog):
    entry, heard = put_object(local, bytes(5000)), []
    with failing(local, step, code, heard).open(entry, in_part=True) as result, pytest.raises(StoreFailure) as caught:
        result.to_object()
    assert caught.value.errno == code
    assert heard == []
    assert "is kept" in caplog.text
    assert "lost" not in caplog.text


@pytest.mark.parametrize("step", ["map part", "read part"])
def test_a_reading_that_the_device_fails_is_reported(local, step):
    entry, heard = put_object(local, bytes(5000)), []
    with failing(local, step, errno.EIO, heard).open(entry, in_part=True) as result, pytest.raises(StoreFailure):
        result.to_object()
    assert len(heard) == 1


def instead_of(path, how, tmp_path):
    """Something else lies at a path than the file that was written there."""
    path.rename(tmp_path / "away")
    if how == "link":
        path.symlink_to(tmp_path / "away")
    elif how == "link to nowhere":
        path.symlink_to(tmp_path / "nowhere")
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    if how == "full folder":
        (path / "somebody's").write_text("precious")


@pytest.mark.parametrize("name", ["manifest.json", "table-00000.arrow"])
@pytest.mark.parametrize("how", ["link", "link to nowhere", "pipe", "folder", "full folder"])
def test_what_has_taken_the_place_of_a_part_is_damage_and_stays(local, tmp_path, name, how):
    entry, heard = put_table(local, TABLE), []
    path = folder_of(local, entry) / name
    instead_of(path, how, tmp_path)
    store = forgetful(local, on_damage=lambda _, problem: heard.append(problem))
    assert isinstance(store.open(entry), Damaged)
    assert "no file any more" in heard[0].reason
    local.delete(entry.location)
    assert (tmp_path / "away").is_file()
    assert os.path.lexists(path)
    assert how != "full folder" or (path / "somebody's").read_text() == "precious"


@pytest.mark.parametrize("mine", [True, False])
def test_a_part_that_its_owner_may_not_read_gets_that_right_back(local, monkeypatch, mine):
    entry = put_table(local, TABLE)
    path = folder_of(local, entry) / "table-00000.arrow"
    path.chmod(0)
    plain = local_files.opened

    def opened(path):  # also for root
        if not os.stat(path).st_mode & 0o400:
            raise PermissionError(errno.EACCES, "no", path)
        return plain(path)

    monkeypatch.setattr(local_files, "opened", opened)
    if mine:
        assert isinstance(forgetful(local).open(entry), Result)
        assert path.stat().st_mode & 0o777 == 0o400
        return
    monkeypatch.setattr(local_files.people, "me", lambda: 4711)
    with pytest.raises(StoreFailure):
        forgetful(local).open(entry)
    assert path.stat().st_mode & 0o777 == 0


def test_whether_a_result_was_right_is_not_known_while_it_cannot_be_read(local):
    entry, heard = put_object(local, bytes(5000)), []
    store = failing(local, "read part", errno.ESTALE, heard)
    for look in (store.is_sound, lambda entry: store.examine(entry, thorough=True)):
        with pytest.raises(StoreFailure):
            look(entry)
    assert heard == []


def test_a_result_that_is_read_after_it_was_closed_is_not_lost(local):
    entry, heard = put_object(local, bytes(5000)), []
    store = Store(local.root, on_damage=lambda _, problem: heard.append(problem))
    result = store.open(entry, in_part=True)
    result.close()
    with pytest.raises(StoreFailure):
        result.to_object()
    assert heard == []


@pytest.mark.parametrize(
    "error",
    [pa.ArrowMemoryError("malloc of size 64 failed"), OSError(errno.ENOMEM, "x"),
     pl.exceptions.ComputeError("cannot map: Cannot allocate memory (os error 12)")],
)  # fmt: skip
def test_want_of_memory_in_a_library_does_not_make_files_no_tables(error):
    failure = unparsed(error, "Arrow")
    assert failure.errno == errno.ENOMEM
    assert not is_loss(failure)


@pytest.mark.parametrize("error", [pa.ArrowInvalid("no footer"), OSError("truncated"), pl.exceptions.ComputeError("x")])
def test_what_a_library_cannot_take_apart_is_damage(error):
    assert is_loss(unparsed(error, "Arrow"))


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
def test_a_library_without_memory_leaves_a_result_where_it_is(local, monkeypatch, writer):
    entry, heard = put_table(local, TABLE if writer == "pyarrow" else pl.DataFrame({"a": range(9)})), []
    result = Store(local.root, on_damage=lambda _, problem: heard.append(problem)).open(entry)

    def refuse(*_, **__):
        raise pa.ArrowMemoryError("malloc failed")

    monkeypatch.setattr(pa.ipc, "open_file", refuse)
    with pytest.raises(StoreFailure) as caught:
        result.to_arrow()
    assert caught.value.errno == errno.ENOMEM
    assert heard == []
    assert folder_of(local, entry).exists()
