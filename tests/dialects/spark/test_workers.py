"""Functions at a server elsewhere: what is sent along, and what the server would import from files of its own."""

import json
import random
import sys
import types

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

import numpy as np
from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value
from pyspark.serializers import CloudPickleSerializer
from tests.dialects.spark import engines

from nectar.dialects.spark import workers
from nectar.dialects.spark.functions import Pickled

FACTOR = 2


def here(n):
    return n * FACTOR


def deeper(n):
    return here(n)


class Scale:
    factor = 3

    def __call__(self, n):
        return n * self.factor


def pickled(function):
    return Pickled(function, b"", command=CloudPickleSerializer().dumps((function, None)))


def why(function):
    return workers.why_unlike([pickled(function)])


@pytest.fixture(autouse=True, scope="module")
def functions_are_sent_along():
    """Here each test says whether they are."""


@pytest.fixture
def sent_along():
    module = sys.modules[__name__]
    register_pickle_by_value(module)
    yield
    unregister_pickle_by_value(module)


def test_what_is_imported_there_is_refused():
    assert __name__ in why(here)
    assert __name__ in why(lambda n: here(n))
    assert __name__ in why(Scale())
    assert __name__ in why(Scale().__call__)


def test_what_is_sent_along_is_not(sent_along):
    captured = {"a": 1}
    for function in (
        here,
        deeper,
        Scale(),
        lambda n: here(n) + captured["a"],
        lambda n: json.dumps(n),
        lambda n: np.sin(n),
    ):
        assert why(function) == ""


def test_a_module_of_the_program_that_is_captured_is_refused(sent_along):
    assert engines.__name__ in why(lambda n: engines.ENGINE)
    assert engines.__name__ in why(lambda n: (json, random, engines, np)[2].ENGINE)


def test_several_modules_are_all_seen(sent_along):
    assert workers._imported(pickled(lambda n: (json.dumps, random.Random, np.sin)).command) >= {
        "json",
        "random",
        "numpy",
    }


def test_large_functions_are_read_to_the_end(sent_along):
    many = {f"key {number}": f"value {number}" * 20 for number in range(5000)}
    assert why(lambda n: many[n]) == ""
    assert engines.__name__ in why(lambda n: many[engines.ENGINE])


def test_a_module_that_is_gone_is_refused(sent_along, monkeypatch):
    gone = types.ModuleType("gone_meanwhile")
    gone.__file__ = "gone_meanwhile.py"
    exec("def f(n):\n    return n", gone.__dict__)
    monkeypatch.setitem(sys.modules, "gone_meanwhile", gone)
    made = pickled(gone.f)
    monkeypatch.delitem(sys.modules, "gone_meanwhile")
    assert "gone_meanwhile" in workers.why_unlike([made])


def test_old_pickles_are_not_understood():
    import pickle

    assert workers._imported(pickle.dumps(np.sin, 2)) == {""}
    assert workers.why_unlike([Pickled(here, b"", command=pickle.dumps(here, 2))]) != ""


def test_what_a_function_imports_when_it_runs_is_seen(sent_along):
    def late(n):
        from tests.dialects.spark import engines

        return engines.ENGINE

    def deep(n):
        def inner():
            import tests.dialects.spark.engines as later

            return later

        return inner()

    def by_name(n):
        import importlib

        return importlib.import_module("tests.dialects.spark.engines")

    def calling(n):
        return late(n)

    for function in (late, deep, by_name, calling):
        assert "from files of its own" in why(function)


def test_packages_that_a_function_imports_when_it_runs_are_fine(sent_along):
    def late(n):
        import colorsys  # of the standard library, and seldom loaded
        import json.decoder

        import numpy

        return numpy.sin(n), json, colorsys

    assert why(late) == ""
