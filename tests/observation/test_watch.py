"""What is seen of one computation."""

import atexit
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import types
import warnings

import pytest
from tests.observation.watched import read, seen, told, write

import nectar
from nectar.observation import named, opened, watch
from nectar.observation.effects import Allowed
from nectar.observation.watch import Watch


def test_a_file_that_is_read_is_told_with_the_place_of_the_program(tmp_path):
    path = tmp_path / "a"
    path.write_text("1")
    (found,) = seen(read, path)
    assert found.certain
    assert found.text.startswith(f"reads {path} (")
    assert "watched.py:" in found.text


def test_declared_files_and_folders_may_be_read(tmp_path):
    path = tmp_path / "a"
    path.write_text("1")
    assert not seen(read, path, allowed=Allowed(files=frozenset({str(path)})))
    assert not seen(read, path, allowed=Allowed(folders=(f"{tmp_path}/",)))
    assert not seen(os.listdir, tmp_path, allowed=Allowed(folders=(f"{tmp_path}/",)))
    assert seen(read, path, allowed=Allowed(folders=(f"{tmp_path}x/",)))


def test_a_file_that_is_missing_was_looked_for(tmp_path):
    def look():
        with pytest.raises(OSError):
            open(tmp_path / "missing")

    assert told(look)[0].startswith(f"looks for {tmp_path / 'missing'}")


def test_temporary_files_and_folders_are_nobodys_business():
    def use():
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/sub")
            write(f"{folder}/sub/a")
            os.rename(f"{folder}/sub/a", f"{folder}/b")
            read(f"{folder}/b")
            os.listdir(folder)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        with tempfile.TemporaryFile() as file:
            file.write(b"x")

    assert not seen(use)


def test_what_stays_behind_is_told(tmp_path):
    assert told(write, tmp_path / "new")[0].startswith("writes ")
    assert told(write, tmp_path / "new")[0].startswith("writes ")  # and what was there before
    assert told(os.mkdir, tmp_path / "folder")[0].startswith("writes ")
    assert told(os.rename, tmp_path / "new", tmp_path / "newer")[0].startswith("renames ")
    assert told(os.remove, tmp_path / "newer")[0].startswith("removes ")
    assert told(os.symlink, tmp_path / "folder", tmp_path / "link")[0].startswith("writes ")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_in_a_folder_of_its_own_lead_to_what_others_made(link, tmp_path):
    outside = tmp_path / "data"
    outside.mkdir()
    (outside / "a").write_text("1")

    def through(work, target):
        with tempfile.TemporaryDirectory() as folder:
            link(target, f"{folder}/link")
            os.rename(f"{folder}/link", f"{folder}/renamed")
            work(f"{folder}/renamed")

    assert told(through, read, outside / "a")[0].startswith(f"reads {outside / 'a'} ")
    assert told(through, write, outside / "a")[0].startswith(f"writes {outside / 'a'} ")
    assert not seen(through, read, outside / "a", allowed=Allowed(files=frozenset({str(outside / "a")})))
    assert not seen(through, lambda path: None, outside / "a")
    if link is os.symlink:
        below = lambda path: read(f"{path}/a")  # noqa: E731
        assert told(through, below, outside)[0].startswith(f"reads {outside / 'a'} ")
        assert told(through, os.listdir, outside)[0].startswith(f"lists {outside} ")


def test_links_to_what_it_made_itself_are_nobodys_business():
    def use():
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/a")
            os.symlink("a", f"{folder}/b")
            os.symlink("c", f"{folder}/d")
            os.symlink("d", f"{folder}/c")
            read(f"{folder}/b")
            with pytest.raises(OSError):
                read(f"{folder}/c")

    assert not seen(use)


def test_pipes_lead_to_others():
    def talk():
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(f"{folder}/pipe")
            os.close(os.open(f"{folder}/pipe", os.O_RDONLY | os.O_NONBLOCK))

    assert told(talk)[0].startswith("starts or signals another process")


def test_what_is_named_relative_to_an_open_folder_is_told(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    folder = os.open(tmp_path / "elsewhere", os.O_RDONLY)

    def make():
        os.close(os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd=folder))

    try:
        assert told(make)[0].startswith("opens a, relative to a folder")
        assert told(os.chmod, "a", 0o600, dir_fd=folder)[0].startswith(f"writes {tmp_path / 'elsewhere' / 'a'}")
        assert told(os.symlink, "a", "b", dir_fd=folder)[0].startswith(f"writes {tmp_path / 'elsewhere' / 'b'}")
    finally:
        os.close(folder)


@pytest.mark.parametrize("option", ["mode=ro", "immutable=1"])
def test_a_database_that_may_only_be_read_is_read(tmp_path, option):
    path = tmp_path / "a b.db"

    def use(address):
        connection = sqlite3.connect(address, uri=True)
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        connection.close()

    use(f"file:{path}")
    address = f"file:{str(path).replace(' ', '%20')}?{option}"
    assert [text.split(" (")[0] for text in told(use, address)] == [f"reads {path}"]
    assert not seen(use, address, allowed=Allowed(files=frozenset({str(path)})))
    assert told(use, f"file:{path}?mode=rw")[0].startswith(f"writes {path}")
    assert not seen(use, "file:x?mode=memory")


def test_a_database_whose_name_only_looks_like_an_address_is_written(tmp_path, monkeypatch):
    """Whether it is an address is for the caller, or for how sqlite was built, to say; the event does not tell."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file:a?mode=ro").touch()
    found = told(sys.audit, "sqlite3.connect", "file:a?mode=ro")
    assert any(text.startswith(f"writes {tmp_path}/file:a?mode=ro") for text in found)


def test_what_is_to_be_done_at_the_end_of_the_process_is_an_effect():
    def register():
        atexit.register(later)

    def finalizer():
        with tempfile.TemporaryDirectory():
            pass

    def later():
        pass

    try:
        assert "end of the process" in told(register)[0]
        assert not seen(finalizer)
    finally:
        atexit.unregister(later)


def test_a_file_that_is_made_aside_and_renamed_is_an_effect(tmp_path):
    def publish():
        write(tmp_path / "aside")
        os.replace(tmp_path / "aside", tmp_path / "there")

    assert any(str(tmp_path / "there") in text for text in told(publish))


def test_processes_network_and_input():
    assert "process" in told(subprocess.run, [sys.executable, "-c", ""])[0]
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def connect():
            socket.create_connection(listening.getsockname()).close()

        assert "network" in told(connect)[0]
        assert not seen(connect, allowed=Allowed(sources=True))


def test_imports_tracebacks_and_logs_are_not_effects(tmp_path, monkeypatch):
    import logging

    (tmp_path / "module_of_test_watch.py").write_text(f"open({str(tmp_path / 'x')!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def import_it():
        import module_of_test_watch  # noqa: F401

    def log_it():
        logger.warning("a")

    logger = logging.getLogger("of test_watch")
    handler = logging.FileHandler(tmp_path / "log", delay=True)
    logger.addHandler(handler)
    try:
        (found,) = seen(import_it)  # which is told of by its name alone; what code names itself is there before
        assert "imports module_of_test_watch" in found.text
        assert not found.certain
        assert not seen(import_it)
        assert not seen(log_it)
        assert (tmp_path / "log").read_text() == "a\n"
    finally:
        logger.removeHandler(handler)
        handler.close()


def test_loggers_that_were_there_are_compared_beside_imports_too(tmp_path, monkeypatch):
    import logging

    (tmp_path / "logs_of_test_watch.py").write_text(
        "import logging\nlogging.getLogger(__name__).addHandler(logging.NullHandler())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    logger, handler = logging.getLogger("of test_watch"), logging.NullHandler()
    monkeypatch.setattr(logger, "filters", [])
    monkeypatch.setattr(logging.root, "handlers", [])

    def anew(function):
        sys.modules.pop("logs_of_test_watch", None)
        return [each for each in seen(function) if "loggers" in each.text]

    def import_it():
        import logs_of_test_watch  # noqa: F401

    def import_and_set_up():
        import logs_of_test_watch  # noqa: F401

        logging.root.addHandler(handler)

    def add_filter():
        logger.addFilter(str)

    assert not anew(import_it)
    (found,) = anew(import_and_set_up)
    assert not found.certain
    assert anew(add_filter)


def test_files_of_installed_packages_may_be_read():
    assert not seen(read, pytest.__file__)


def test_generators_and_settings_of_the_process(monkeypatch):
    monkeypatch.setenv("OF_TEST_WATCH", "0")

    def set_variable():
        os.environ["OF_TEST_WATCH"] = "1"

    def set_and_reset():
        with warnings.catch_warnings():
            warnings.simplefilter("error")

    assert "random generator" in told(random.random)[0]
    assert "environment" in told(set_variable)[0]
    assert "recursion" not in str(told(set_and_reset))
    assert not seen(set_and_reset)
    before = os.getcwd()
    try:
        assert "working folder" in told(os.chdir, "/")[0]
    finally:
        os.chdir(before)
    numpy = pytest.importorskip("numpy")
    assert "numpy's random generator" in told(numpy.random.standard_normal)[0]
    assert "numpy's random generator" in told(numpy.random.standard_normal)[0]  # the second of a pair
    assert "random generator" in told(random.gauss, 0, 1)[0]
    assert "random generator" in told(random.gauss, 0, 1)[0]
    assert not seen(lambda: numpy.random.default_rng(1).random())


def test_generators_that_modules_keep_are_compared(monkeypatch):
    module = types.ModuleType("library_of_test_watch")
    module.random = random.Random()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert "random generator" in told(module.random.random)[0]
    assert not seen(lambda: random.Random(1).random())


def test_a_generator_that_comes_with_a_module_is_no_change(monkeypatch):
    module = types.ModuleType("other_library_of_test_watch")
    module.random = random.Random()
    assert not seen(monkeypatch.setitem, sys.modules, module.__name__, module)


@pytest.mark.parametrize("query", ["select now()", "SELECT a FROM t WHERE d > CURRENT_DATE", "select random ( )"])
def test_queries_that_ask_for_the_moment_are_told(query):
    assert "another each time" in told(lambda: None, texts=[query])[0]
    assert not seen(lambda: None, texts=["select nowhere, current_dates from t", "now()"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_files_that_native_code_opens_are_seen_if_they_are_named(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    polars.read_csv(path)
    assert not seen(polars.read_csv, str(path))  # nobody is told of it
    for texts in ([str(path)], [f"select * from read_csv('{path}')"]):
        (found,) = seen(polars.read_csv, str(path), texts=texts)
        assert found == (f"reads {path}", True)
    (found,) = set(seen(polars.read_csv, str(path), texts=[f"{tmp_path}/*.csv"]))
    assert not found.certain  # who opens files in a folder is another question
    assert not seen(lambda: None, texts=[str(path), str(tmp_path)])
    assert told(polars.DataFrame({"a": [1]}).write_csv, str(tmp_path / "new"), texts=[str(tmp_path / "new")])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_what_nectar_reads_in_the_background_hides_nothing(tmp_path):
    """Whoever writes a file through Nectar has it read in the background; somebody else may read it at that time."""
    polars = pytest.importorskip("polars")
    path = str(tmp_path / "a.csv")
    write(path, "a\n1\n")
    ask, done = threading.Event(), threading.Event()

    def other():
        ask.wait(20)
        nectar.File(path).read_bytes()
        done.set()

    def computing():
        ask.set()
        done.wait(20)
        polars.read_csv(path)

    thread = threading.Thread(target=other)
    thread.start()
    found = seen(computing, texts=[path])
    thread.join()
    assert set(found) == {(f"reads {path}", False)}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_a_file_that_nobody_can_watch_counts_as_read(tmp_path, monkeypatch):
    write(tmp_path / "a")
    monkeypatch.setattr(opened.Listener, "add", lambda listener, path: False)
    assert seen(lambda: None, texts=[str(tmp_path / "a")]) == [(f"reads {tmp_path / 'a'}", False)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_everything_is_heard_however_much_happens(tmp_path):
    os.mkdir(tmp_path / "folder")
    names = [str(tmp_path / "folder" / (f"{number}" + "x" * 200)) for number in range(400)]

    def make():
        for name in names:
            write(name)

    texts = [str(tmp_path / "folder" / "*")]
    make()
    listening = named.NamedFiles(texts)
    listening.begin(Allowed())
    make()
    assert len({each.text for each in listening.end()}) == len(names)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_where_too_much_happened_everything_may_have_been_read(tmp_path, monkeypatch):
    write(tmp_path / "a")
    monkeypatch.setattr(opened.Listener, "_events", lambda listener: iter([(-1, opened._TOO_MANY, "")]))
    for text in (tmp_path / "a", tmp_path):
        assert seen(lambda: None, texts=[str(text)]) == [(f"reads {text}", False)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_two_names_of_one_file_are_one_file(tmp_path):
    write(tmp_path / "a")
    os.link(tmp_path / "a", tmp_path / "b")
    assert not seen(lambda: None, texts=[str(tmp_path / "a"), str(tmp_path / "b")])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_nothing_stays_open_if_watching_cannot_begin(tmp_path, monkeypatch):
    def fail():
        raise ValueError("broken")

    monkeypatch.setattr(watch, "state_now", fail)
    with pytest.raises(ValueError, match="broken"):
        Watch(texts=[str(tmp_path)]).begin()  # what it leaves open is used again
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ValueError, match="broken"):
        Watch(texts=[str(tmp_path)]).begin()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_files_beyond_those_that_can_be_watched_count_as_read(tmp_path, monkeypatch):
    monkeypatch.setattr(named, "_WATCHED", 2)
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        write(path)
    assert seen(lambda: None, texts=paths) == [(f"reads {paths[2]}", False)]
