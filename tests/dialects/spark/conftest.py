"""A server for all tests, and for each test a client of its own with an empty store."""

import importlib
import importlib.util
import os
import sys

import pytest
from tests.dialects.spark import engines

import nectar
from nectar import session

if "PYTEST_XDIST_WORKER" in os.environ and importlib.util.find_spec("pyspark") is not None:
    # PySpark takes a process without a main file for a run of its own doctests, and ends it.
    sys.modules["__main__"].__file__ = __file__
    importlib.import_module("pyspark.sql.connect")
    del sys.modules["__main__"].__file__


@pytest.fixture(scope="session")
def engine():
    started = engines.started()
    yield started
    started.stop()


@pytest.fixture
def server(engine):
    """The server of Sail that runs in this process."""
    return engine.inner


@pytest.fixture
def address(engine):
    return engine.address


@pytest.fixture(autouse=True, scope="module")
def functions_are_sent_along(request):
    """Functions of tests go to a server elsewhere as those of a program's main file do."""
    if engines.ENGINE != "spark":
        yield
        return
    from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

    modules = [sys.modules[request.module.__name__], sys.modules[__name__]]
    for module in modules:
        register_pickle_by_value(module)
    yield
    for module in modules:
        unregister_pickle_by_value(module)


@pytest.fixture
def new_session(address):
    """Makes a session with a client of its own."""
    from pyspark.sql.connect.session import SparkSession

    made = []

    def new():
        made.append(SparkSession.builder.remote(address).create())
        return made[-1]

    yield new
    for each in made:
        each.client.close()
    SparkSession._default_session = SparkSession._active_session.session = None


@pytest.fixture
def spark(enabled, new_session):
    return new_session()


@pytest.fixture
def outcome(enabled):
    """Runs an action and tells what became of it: its value, the outcome, and why."""

    def run(action):
        value = action()
        part = nectar.last_run().parts[-1]
        session.current().settle()  # it may have been enabled anew
        return value, part.outcome, part.reason or part.keeping

    return run


@pytest.fixture
def log(tmp_path):
    """A folder with two days of clicks."""
    folder = tmp_path / "clicks"
    folder.mkdir()
    for day in (1, 2):
        write_day(folder, day)
    return folder


def write_day(folder, day, times=1):
    import pyarrow as pa
    import pyarrow.parquet

    rows = {
        "page": ["a", "b", "c"] * 40, "seconds": [times * each for each in range(day, 120 + day)], "day": [day] * 120
    }  # fmt: skip
    pa.parquet.write_table(pa.table(rows), folder / f"day-{day}.parquet")
