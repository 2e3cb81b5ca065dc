"""Modules of the program that libraries import by their names: results are not kept, because no key holds that code."""

import importlib
import pydoc
import sys
import types

import pytest

import nectar
from nectar.observation import imports
from nectar.observation.reach import IMPORTS, Source, sources_reached
from nectar.observation.watch import Watch

SOURCE = Source((lambda: None).__code__, IMPORTS)


@pytest.fixture
def constants(tmp_path, monkeypatch):
    """A module of the program, that is not loaded yet; its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nt_rates", raising=False)
    (tmp_path / "nt_rates.py").write_text("RATE = 3\n")
    importlib.invalidate_caches()
    yield "nt_rates"
    sys.modules.pop("nt_rates", None)


def by_constant(n):
    return n * pydoc.locate("nt_rates.RATE")


def by_argument(name):
    return pydoc.locate(name)


def joined(n):
    return n * pydoc.locate("nt_" + "rates"[n - n :] + ".RATE")


@pytest.mark.parametrize(("function", "given"), [(by_constant, 2), (by_argument, "nt_rates.RATE"), (joined, 2)])
@pytest.mark.filterwarnings("ignore::nectar.NectarWarning")
def test_what_a_library_imports_by_its_name_is_not_kept(function, given, constants, enabled):
    memo = nectar.memo(function)
    assert memo(given) == function(given)
    nectar.session.current().settle()
    assert not memo.check_call_in_cache(given)
    if function is not joined:  # which only shows while the module is not loaded yet
        assert memo(given) == function(given)
        nectar.session.current().settle()
        assert not memo.check_call_in_cache(given)


def test_texts_that_name_no_module_of_the_program_are_no_matter(enabled):
    memo = nectar.memo(by_argument)
    assert memo("textwrap.dedent") is memo("textwrap.dedent")
    nectar.session.current().settle()
    assert memo.check_call_in_cache("textwrap.dedent")


def test_a_text_names_a_module_in_whole_or_by_its_beginning(constants):
    importlib.import_module(constants)
    for text in ("nt_rates", "nt_rates.RATE", "nt_rates:RATE", "nt_rates.a.b"):
        assert imports.module_named([SOURCE], [], [text]) == "nt_rates"
    for text in ("nt_rate", "nt rates", "nt_rates!", "json", "", "a.nt_rates", "nt_rates" * 100):
        assert not imports.module_named([SOURCE], [], [text])


def test_texts_do_not_matter_where_nothing_imports_by_name(constants):
    importlib.import_module(constants)
    assert not imports.module_named([], [], ["nt_rates"])
    assert not imports.module_named([Source(SOURCE.code, "reads the clock")], [], ["nt_rates"])
    assert not any(each.what == IMPORTS for each in sources_reached([lambda x: x], ()))
    assert any(each.what == IMPORTS for each in sources_reached([by_argument], ()))


def test_modules_of_the_program_that_come_while_it_runs_are_told(constants, monkeypatch):
    with Watch() as watch:
        importlib.import_module(constants)
        monkeypatch.setitem(sys.modules, "nt_made", types.ModuleType("nt_made"))
    (found,) = watch.observations()
    assert "imports nt_rates" in found.text
    assert not found.certain
