"""What libraries keep for each thread: what stands in keys may be read, and nothing else."""

import threading
import warnings

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.keys.thread_states import states_of

LIBRARY = """
    import threading
    from nt_modes import current
    _state = threading.local()
    _objects = threading.local()
    class Mode: pass

    def guarded(given):
        try:
            busy = _state.busy
        except AttributeError:
            busy = _state.busy = set()
        busy.add(given)
        try:
            return given * getattr(_state, "factor", 1)
        finally:
            busy.remove(given)
    def set_factor(factor): _state.factor = factor
    def counted(given):
        _state.count = getattr(_state, "count", 0) + 1
        return _state.count
    def by_object(given):
        return given * getattr(_objects, "mode", Mode).__dict__.get("factor", 1)
    def set_mode(factor):
        _objects.mode = Mode()
        _objects.mode.factor = factor
    def of_another_library(given): return given * current()
"""
MODES = """
    import threading
    _modes = threading.local()
    def current(): return getattr(_modes, "mode", 1)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    yield install(tmp_path, monkeypatch, "nt_states", {"nt_states.py": LIBRARY, "nt_modes.py": MODES})
    forget("nt_states")
    forget("nt_modes")


def of_library(library, name):
    """A memoised function of the application that calls one of the library."""
    space = {"__name__": "program", "library": library}
    exec(f"def program(given):\n    return library.{name}(given)", space)
    return nectar.memo(space["program"])


def call(memo):
    """What a call gives; what is kept of it is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = memo(3)
    nectar.session.current().settle()
    return found


def kept(memo):
    return memo.check_call_in_cache(3)


def test_a_guard_against_recursion_is_no_hidden_input(library, enabled):
    memo = of_library(library, "guarded")
    assert call(memo) == 3
    assert states_of("nt_states") == [("thread", "nt_states._state", "busy", "set()")]
    del library._state.busy
    assert kept(memo)


def test_what_is_set_for_the_thread_is_in_the_key(library, enabled):
    memo = of_library(library, "guarded")
    call(memo)
    library.set_factor(2)
    assert call(memo) == 6
    library.set_factor(3)
    assert call(memo) == 9
    found = []
    thread = threading.Thread(target=lambda: found.append(memo(3)))
    thread.start()
    thread.join()
    assert found == [3]


@pytest.mark.parametrize("name", ["counted", "of_another_library"])
def test_what_is_changed_or_in_no_key_is_not_kept(name, library, enabled):
    memo = of_library(library, name)
    for _ in range(2):
        call(memo)
        assert not kept(memo)


def test_objects_are_in_no_key(library, enabled):
    memo = of_library(library, "by_object")
    assert call(memo) == 3
    library.set_mode(2)
    assert call(memo) == 6
    library.set_mode(3)
    assert call(memo) == 9


def test_converters_of_cattrs(enabled):
    cattrs, attrs = pytest.importorskip("cattrs"), pytest.importorskip("attrs")
    order = attrs.make_class("Order", {"a": attrs.field(type=int)})
    space = {"__name__": "program", "cattrs": cattrs, "order": order}
    exec("def program(given):\n    return cattrs.structure({'a': given}, order).a", space)
    memo = nectar.memo(space["program"])
    assert call(memo) == 3
    assert kept(memo)
