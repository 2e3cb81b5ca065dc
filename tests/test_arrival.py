"""What waits for a library is done when the library comes, once."""

import importlib
import sys

import pytest

from nectar import arrival
from nectar.arrival import no_longer, when_imported


@pytest.fixture(autouse=True)
def nobody_else_waits(monkeypatch):
    """Whatever other tests of this process have left waiting for libraries."""
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each is not arrival._finder])
    monkeypatch.setattr(arrival, "_actions", {})


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "late_library.py").write_text("VALUE = 1\n", encoding="utf-8")
    (tmp_path / "broken_library.py").write_text("raise ValueError('not today')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "late_library"
    for name in ("late_library", "broken_library"):
        sys.modules.pop(name, None)
        no_longer(name)


def test_at_once_if_it_is_there():
    done = []
    when_imported("sys", lambda: done.append(1))
    assert done == [1]


def test_after_it_has_been_imported(library):
    done = []
    when_imported(library, lambda: done.append(sys.modules[library].VALUE))
    assert done == []
    module = importlib.import_module(library)
    assert done == [1]
    assert type(module.__loader__).__module__ == "_frozen_importlib_external", "the loader is the library's own"
    importlib.reload(module)
    assert done == [1]


def test_not_any_more(library):
    done, before = [], list(sys.meta_path)
    when_imported(library, lambda: done.append(1))
    assert sys.meta_path != before
    no_longer(library)
    assert sys.meta_path == before
    importlib.import_module(library)
    assert done == []


def test_errors_of_the_library_are_its_own(library):
    done = []
    when_imported("broken_library", lambda: done.append(1))
    with pytest.raises(ValueError, match="not today"):
        importlib.import_module("broken_library")
    assert done == []


def test_a_library_that_is_not_there(library):
    when_imported("no_such_library", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        importlib.import_module("no_such_library")
    no_longer("no_such_library")


def test_each_purpose_has_its_action(library):
    done = []
    when_imported(library, lambda: done.append("never"))
    when_imported(library, lambda: done.append("hook"))
    when_imported(library, lambda: done.append("names"), "names")
    when_imported(library, lambda: done.append("never"), "other")
    no_longer(library, "other")
    importlib.import_module(library)
    assert done == ["hook", "names"]
