"""Functions that use temporary files and databases in memory are kept; what they do besides is seen, and is not."""

import contextlib
import os
import pathlib
import shutil
import sqlite3
import tempfile

import pytest

import nectar

pytestmark = pytest.mark.filterwarnings("ignore::nectar.NectarWarning")


def is_kept(function, *given):
    memo = nectar.memo(function)
    for _ in range(2):
        assert memo(*given) == memo(*given)
        nectar.session.current().settle()
    return memo.check_call_in_cache(*given)


def was_kept(function, *given):
    memo = nectar.memo(function)
    for _ in range(2):
        memo(*given)
        nectar.session.current().settle()
    return memo.check_call_in_cache(*given)


def in_folder(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        with open(path, "w") as file:
            file.write(text)
        with open(path) as file:
            return file.read().upper(), sorted(os.listdir(folder))


def by_path(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.txt"
        path.write_text(text)
        return path.exists(), path.read_text()


def by_helper(text):
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "a"), text)
        return read(os.path.join(folder, "a"))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()


def named(text):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(text)
        file.seek(0)
        return file.read()


def by_number(text):
    number, path = tempfile.mkstemp()
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        return os.path.getsize(path), read(path)
    finally:
        if os.path.exists(path):
            os.remove(path)


def removed(text):
    folder = tempfile.mkdtemp()
    try:
        write(os.path.join(folder, "x"), text)
        return read(os.path.join(folder, "x"))
    finally:
        shutil.rmtree(folder)


def spooled(text):
    with tempfile.SpooledTemporaryFile(mode="w+") as file:
        file.write(text)
        file.seek(0)
        return file.read()


@pytest.mark.parametrize("function", [in_folder, by_path, by_helper, named, by_number, removed, spooled])
def test_temporary_files_are_nobodys_business(function, enabled):
    assert is_kept(function, "hello")


def test_the_name_of_a_temporary_file_is_not_kept(enabled):
    def folder(x):
        with tempfile.TemporaryDirectory() as made:
            return made

    def in_a_list(x):
        with tempfile.NamedTemporaryFile() as file:
            return {"a": [(file.name, x)]}

    def in_an_array(x):
        np = pytest.importorskip("numpy")
        with tempfile.NamedTemporaryFile() as file:
            return np.array([file.name, "x"])

    def in_a_frame(x):
        pl = pytest.importorskip("polars")
        with tempfile.NamedTemporaryFile() as file:
            return pl.DataFrame({"a": [file.name]})

    for function in (folder, in_a_list, in_an_array, in_a_frame):
        assert not was_kept(function, 1)


def test_what_else_such_a_function_does_is_seen(enabled, tmp_path):
    (tmp_path / "other").write_text("1")

    def reads(path):
        with tempfile.TemporaryDirectory():
            return open(path).read()

    def writes(path):
        with tempfile.TemporaryDirectory():
            return open(path, "w").write("2")

    def looks(path):
        with tempfile.TemporaryDirectory():
            return os.path.exists(path)

    def leaves(text):
        with tempfile.NamedTemporaryFile("w", delete=False, dir=tmp_path) as file:
            file.write("3")

    def asks_when(text):
        with tempfile.NamedTemporaryFile() as file:
            return os.path.getmtime(file.name)

    for function in (reads, writes, looks, leaves, asks_when):
        assert not was_kept(function, str(tmp_path / "other"))


def rows(values):
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a integer)")
    connection.executemany("insert into t values (?)", [(each,) for each in values])
    cursor = connection.cursor()
    cursor.execute("select sum(a) from t")
    return cursor.fetchone()


def closing(values):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection, connection:
        connection.execute("create table t (a integer)")
        connection.executemany("insert into t values (?)", [(each,) for each in values])
        return connection.execute("select a from t order by a").fetchall()


@pytest.mark.parametrize("function", [rows, closing])
def test_databases_in_memory_are_kept(function, enabled):
    assert is_kept(function, [2, 1])


@pytest.mark.parametrize(
    "text",
    [
        "select datetime('now')", "select random()", "select hex(randomblob(8))", "SELECT strftime('%s', 'now')",
        "select current_timestamp", "select julianday()", "create table t (a, b default current_timestamp)",
    ],
)  # fmt: skip
def test_queries_that_ask_for_the_moment_are_not_kept(text, enabled):
    def ask(text):
        return sqlite3.connect(":memory:").execute(text).fetchall()

    assert not was_kept(ask, text)


def test_databases_in_files_are_not_kept(enabled, tmp_path):
    path = str(tmp_path / "a.db")
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("create table t (a)")

    def opened(path):
        return sqlite3.connect(path).execute("select * from t").fetchall()

    def attached(path):
        connection = sqlite3.connect(":memory:")
        connection.execute("attach ? as other", (path,))
        return connection.execute("select * from other.t").fetchall()

    assert not was_kept(opened, path)
    assert not was_kept(attached, path)
