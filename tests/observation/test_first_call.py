"""The first call of a process is kept as well: what libraries import and fill then is no reason against it."""

import os
import random
import subprocess
import sys
import sysconfig
import types
import warnings

import pytest
from tests.dialects.python.programs import SOURCE
from tests.observation.installed import forget, install
from tests.observation.watched import seen, told

import nectar

LIBRARY = """
    import os, sysconfig, time

    def late_class(given):
        from . import late
        return late.Doc.place, given
    def where_python_lies(given):
        return sysconfig.get_config_var("INSTSONAME") or given
    def class_of_the_moment(given):
        class Moment:
            at = time.time()
        return Moment.at
    def class_that_captures(given):
        from time import time as clock
        class Moment:
            at = clock()
        return Moment.at
    def unless_asked(given):
        return str(time.time()) if given == "now" else given
    def stamped(given):
        return f"{given} {time.time()}"
    def variable(given):
        return os.environ.get("NT_PLACE", given)
"""
LATE = """
    import os
    class Doc:
        place = os.environ.get("NT_DOCS", "usual")
        class Inner:
            place = os.environ.get("NT_DOCS", "usual")
"""


@pytest.fixture
def almanac(tmp_path, monkeypatch):
    yield install(tmp_path, monkeypatch, "nt_first", {"nt_first/__init__.py": LIBRARY, "nt_first/late.py": LATE})
    forget("nt_first")


def kept_at_once(library, name):
    space = {"__name__": "program", "library": library}
    exec(f"def program(given):\n    return library.{name}(given)", space)
    memo = nectar.memo(space["program"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo("a")
    nectar.session.current().settle()
    return memo.check_call_in_cache("a")


def test_a_class_of_a_module_that_is_imported_meanwhile_may_read_the_environment(almanac, enabled):
    assert kept_at_once(almanac, "late_class")
    assert not kept_at_once(almanac, "class_of_the_moment")
    assert not kept_at_once(almanac, "class_that_captures")
    assert not kept_at_once(almanac, "variable")


def test_how_python_was_built_is_no_hidden_input(almanac, enabled, monkeypatch):
    name = sysconfig._get_sysconfigdata_name()
    monkeypatch.delitem(sys.modules, name, raising=False)
    for each in ("_CONFIG_VARS", "_CONFIG_VARS_INITIALIZED"):
        if hasattr(sysconfig, each):
            monkeypatch.setattr(sysconfig, each, None)
    assert kept_at_once(almanac, "where_python_lies")
    assert name in sys.modules


def test_a_module_of_the_application_with_such_a_name_is_none_of_python(tmp_path, almanac, enabled, monkeypatch):
    (tmp_path / "_sysconfigdata_mine.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "nt_first.late", __import__("_sysconfigdata_mine"))
    from nectar.keys.origin import is_module_of_application

    assert is_module_of_application("_sysconfigdata_mine")


def test_a_generator_that_only_orders_work_may_be_drawn_from(monkeypatch):
    module = types.ModuleType("sympy.core.random")
    seen(lambda: None)  # which notes how many modules there are
    module.random, module.rng, module._assumptions_rng = random, random.Random(), random.Random()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert not seen(module._assumptions_rng.shuffle, [1, 2, 3])
    assert "random generator" in told(module.rng.random)[0]


@pytest.mark.parametrize("module", ["sympy.core.other", "nt_random"])
def test_and_no_other_of_that_name(module, monkeypatch):
    seen(lambda: None)
    other = types.ModuleType(module)
    other.random, other._assumptions_rng = random, random.Random()
    monkeypatch.setitem(sys.modules, module, other)
    assert "random generator" in told(other._assumptions_rng.random)[0]


ORDERED = """
    class Quantity:
        pass
    for name in {"is_real", "is_finite", "is_zero", "is_prime", "is_even", "is_odd"}:
        setattr(Quantity, name, name.endswith("e"))
        setattr(Quantity, "ask_" + name, lambda self: None)
    del name
    def solve(given):
        return Quantity.is_prime, given
"""
KEY = """
import sys
sys.path.insert(0, sys.argv[1])
import nectar, nt_ordered
def f(given):
    return nt_ordered.solve(given)
def g():
    return nt_ordered.Quantity()
print(nectar.fingerprint(f), nectar.fingerprint(g))
"""


def test_the_order_in_which_a_library_fills_its_classes_is_none_of_a_key(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nt_ordered", {"nt_ordered.py": ORDERED})
    script = tmp_path / "key.py"
    script.write_text(KEY)
    found = set()
    for seed in "1234":
        told = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "lib" / "site-packages")], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}, check=True,
        )  # fmt: skip
        found.add(told.stdout)
    forget("nt_ordered")
    assert len(found) == 1


FIRST = """
import sys
sys.path.insert(0, sys.argv[1])
import nectar, polars as pl, nt_first
nectar.enable()
def ask(value):
    return nt_first.NAME(value)
frame = pl.LazyFrame({"a": ["x", "y"]}).select(pl.col("a").map_elements(ask, return_dtype=pl.String))
frame.collect()
print(nectar.last_run().parts[0].keeping)
"""


@pytest.mark.parametrize(("name", "kept"), [("unless_asked", True), ("stamped", False)])
def test_functions_of_the_first_query_of_a_process_are_followed(name, kept, tmp_path, monkeypatch):
    pytest.importorskip("polars")
    install(tmp_path, monkeypatch, "nt_first", {"nt_first/__init__.py": LIBRARY, "nt_first/late.py": LATE})
    forget("nt_first")
    script = tmp_path / "query.py"
    script.write_text(FIRST.replace("NAME", name))
    told = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "lib" / "site-packages")], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "NECTAR_HOME": str(tmp_path / "home")}, check=True,
    )  # fmt: skip
    assert ("kept" in told.stdout and "not kept" not in told.stdout) == kept, told.stdout
