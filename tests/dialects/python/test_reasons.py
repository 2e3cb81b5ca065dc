"""What people are told about a call that is computed: what changed, where it lies, which code nobody could follow."""

import decimal
import sys
import types
import warnings

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar import session
from nectar.dialects.python import explain
from nectar.keys.difference import compare
from nectar.keys.trace import Node, Trace

LIBRARY = """
    class Box:
        def __init__(self):
            self.items = {}
        def put(self, key):
            self.items[key] = 1
            return key
    box = Box()
    def put(key):
        return box.put(key)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    yield install(tmp_path, monkeypatch, "nt_boxes", {"nt_boxes.py": LIBRARY})
    forget("nt_boxes")


def part():
    session.current().settle()
    return nectar.last_run().parts[0]


def keeping(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(*arguments)
    return part().keeping


def program(source, **names):
    space = {"__name__": "program", **names}
    exec(source, space)
    return nectar.memo(space["program"])


def test_what_was_changed_is_named_with_the_way_to_it(library, enabled):
    captured = keeping(program("def program(key): return boxes.box.put(key)", boxes=library), "a")
    assert captured == "not kept: an object of type builtins.dict (boxes.box.items) was changed while it ran"
    given = keeping(program("def program(box, ask): return ask(box)"), library.Box(), lambda box: box.put("b"))
    assert given == "not kept: an object of type builtins.dict (.items) was changed while it ran"
    itself = keeping(program("def program(box, ask): return ask(box)"), {}, lambda box: box.setdefault("b", "b"))
    assert itself == "not kept: an object of type builtins.dict that it was given was changed while it ran"


def test_settings_that_have_changed_are_named(enabled):
    divide = program("def program(a, b): return str(decimal.Decimal(a) / decimal.Decimal(b))", decimal=decimal)
    held = [divide(1, 3)]
    with decimal.localcontext() as context:
        context.prec = 6
        held.append(divide(1, 3))
    reason = part().reason  # asked for when the settings are as before
    assert held == ["0.3333333333333333333333333333", "0.333333"]
    assert reason.startswith("what it uses is set otherwise: settings of decimal: (28, ")
    assert " became (6, " in reason


class Asks:
    def __init__(self, held):
        self.held = held

    def ask(self):
        return self.held


def test_settings_that_come_to_count_are_named(enabled):
    numpy = pytest.importorskip("numpy")
    text = program("def program(array): return str(array)")
    text(numpy.arange(3.0))
    with numpy.printoptions(precision=2):
        text(numpy.arange(3.0))
    assert part().reason == "what it uses is set otherwise: now uses settings of numpy"


def test_settings_that_count_because_of_an_argument_are_named(enabled):
    text = program("def program(value): return value.ask()")
    text(Asks(1))
    text(Asks(2))
    assert part().reason == "its arguments look the same as before; what they hold is another"
    invocation = types.SimpleNamespace(call=types.SimpleNamespace(walk=types.SimpleNamespace()))
    invocation.call.walk.touched = {"xarray", "numpy", "standard json"}
    invocation.call.walk.before = types.SimpleNamespace(touched={"numpy"})
    assert explain._brought_by_arguments(invocation) == ", or what is set in xarray,"


def test_code_that_cannot_be_followed_is_named(tmp_path, monkeypatch, enabled):
    if hasattr(sys, "monitoring"):
        pytest.skip("all code can be followed")
    text = "import time\ndef ask(given):\n    return time.time() if given == 'now' else given\n"
    library = install(tmp_path, monkeypatch, "nt_asks", {"nt_asks.py": text})
    ask = program("def program(given): return library.ask(given)", library=library)
    sys.setprofile(lambda *_: None)
    try:
        told = keeping(ask, "a")
    finally:
        sys.setprofile(None)
        forget("nt_asks")
    assert "it may run library code that reads the clock in ask (site-packages/nt_asks.py), where nobody can" in told


def _settings_of(precision):
    part = Node("[0]", "tuple", f"('precision', '{precision}')", precision.encode())
    held = Node("settings", "list", "list of 1", b"", children=[part])
    top = Node("settings of gmpy2", "settings", "settings of gmpy2", b"", children=[held])
    for each in (part, held, top):
        each.seal()
    return Trace(top, precision)


def test_lists_of_settings_show_what_is_another():
    def told(one, other):
        return str(nectar.why([one], [other])).splitlines()[0]

    assert told([*range(100)], [1, *range(1, 100)]) == "[0] is list of 100, as before, and what it holds is another"
    one, other = (_settings_of(value) for value in ("53", "80"))
    assert str(compare(one, other)) == "settings of gmpy2: ('precision', '53') became ('precision', '80')"
    assert told(bytearray(b"a"), bytearray(b"b")) == "[0] is bytearray, as before, and what it holds is another"
