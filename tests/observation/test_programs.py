"""Nothing is kept of functions that do what their code does not show; usual functions are kept."""

import asyncio
import inspect
import pickle
import sqlite3
import warnings
import wave
import zipfile

import pytest
from tests.observation import hostile, usual

import nectar


@pytest.fixture
def folder(tmp_path):
    """Files of all kinds that the hostile programs read."""
    made = tmp_path / "data"
    made.mkdir()
    for name, text in {
        "a.txt": "1", "a.xml": "<a/>", "a.ini": "[s]", "a.csv": "a\n1\n", "mail": "From a\nSubject: x\n\nhi\n",
        "spare": "", "moved": "",
    }.items():  # fmt: skip
        (made / name).write_text(text)
    with zipfile.ZipFile(made / "a.zip", "w") as archive:
        archive.writestr("a.txt", "1")
    with wave.open(str(made / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(b"\0" * 8)
    connection = sqlite3.connect(made / "a.db")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    (made / "a.joblib").write_bytes(pickle.dumps(1))
    return made


def argument(function, folder):
    """What a hostile program is handed, by the name of its parameter."""
    (name,) = inspect.signature(function).parameters
    if name == "path_of_arrow":
        pa = pytest.importorskip("pyarrow")
        path = str(folder / "a.arrow")
        table = pa.table({"a": [1]})
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write(table)
        return path
    names = {
        "folder": str(folder), "path_of_csv": str(folder / "a.csv"), "paths_of_csv": [str(folder / "a.csv")],
        "path_of_new_file": str(folder / "new"), "query_with_a_draw": "select random()",
    }  # fmt: skip
    return names[name]


def is_kept(memo, value):
    nectar.session.current().settle()
    return memo.check_call_in_cache(value)


@pytest.mark.parametrize("name", hostile.KINDS)
def test_what_a_program_does_behind_its_code_is_not_kept(name, folder, enabled):
    if name == "memory_map_of_numpy":
        pytest.importorskip("numpy").save(folder / "a.npy", [1])
    function = hostile.KINDS[name]
    value = argument(function, folder)
    memo = nectar.memo(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for _ in range(2):  # what is loaded by the first call is there for the second
                memo(value)
                assert not is_kept(memo, value)
        except ImportError as missing:
            pytest.skip(str(missing))


@pytest.mark.parametrize("name", usual.KINDS)
def test_usual_programs_are_kept(name, enabled):
    memo = nectar.memo(usual.KINDS[name])
    for value in (3, 4):
        try:
            found = memo(value)
        except ImportError as missing:
            pytest.skip(str(missing))
        if inspect.iscoroutine(found):
            asyncio.run(found)
        assert is_kept(memo, value), nectar.last_run().details()
