"""Warm fingerprints: whatever changes between two calls in one process is seen by the second."""

import collections
import decimal
import types

import pytest

import nectar
from nectar.keys import outcome


class Holder:
    level = 1

    def __init__(self):
        self.items = [1, [2]]

    def go(self, n):
        return n + self.level


def setup():
    space = {
        "LIST": [1, 2], "DEEP": {"a": [1, {"b": 2}]}, "SET": {1, 2}, "OBJ": Holder(), "MOD": types.ModuleType("mod"),
        "COUNTER": collections.Counter("ab"), "DEQUE": collections.deque([1]), "BYTES": bytearray(b"ab"),
        "Holder": type("Held", (Holder,), {"own": 3}), "K": 1,
    }  # fmt: skip
    space["MOD"].value = 1
    exec(
        """
def helper(n, k=[1]):
    return n + len(k)
def f(n):
    return helper(n), LIST, DEEP, SET, OBJ.go(n), MOD.value, COUNTER, DEQUE, BYTES, Holder.own, K
""",
        space,
    )
    return space


def remake(s):
    exec("def helper(n, k=[1]):\n    return n - len(k)", s)


CHANGES = {
    "list element": lambda s: s["LIST"].append(3),
    "list element replaced by an equal one of another type": lambda s: s["LIST"].__setitem__(0, True),
    "deep inside": lambda s: s["DEEP"]["a"][1].update(b=3),
    "dict order": lambda s: s["DEEP"].update(z=1),
    "set": lambda s: s["SET"].add(3),
    "attribute": lambda s: setattr(s["OBJ"], "level", 2),
    "inside an attribute": lambda s: s["OBJ"].items[1].append(3),
    "class attribute": lambda s: setattr(s["Holder"], "own", 4),
    "module attribute": lambda s: setattr(s["MOD"], "value", 2),
    "counter": lambda s: s["COUNTER"].update("a"),
    "deque": lambda s: s["DEQUE"].append(2),
    "bytearray": lambda s: s["BYTES"].append(2),
    "global": lambda s: s.update(K=2),
    "helper redefined": remake,
    "default of a helper changed inside": lambda s: s["helper"].__defaults__[0].append(2),
    "defaults of a helper replaced": lambda s: setattr(s["helper"], "__defaults__", ([1, 2],)),
    "code of a helper replaced": lambda s: setattr(s["helper"], "__code__", (lambda n, k: n).__code__),
    "attribute of a helper": lambda s: setattr(s["helper"], "scale", 2),
    "builtin shadowed": lambda s: s.update(len=lambda x: 0),
    "global deleted": lambda s: s.pop("K"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_seen(change):
    space = setup()
    before = nectar.fingerprint(space["f"])
    assert nectar.fingerprint(space["f"]) == before
    change(space)
    after = nectar.fingerprint(space["f"])
    assert after != before
    outcome.forget()
    assert nectar.fingerprint(space["f"]) == after


def test_class_of_an_instance_patched():
    space = setup()
    space["OBJ"].__class__ = type("Other", (Holder,), {})
    before = nectar.fingerprint(space["f"])
    type(space["OBJ"]).go = lambda self, n: n
    assert nectar.fingerprint(space["f"]) != before


def test_a_library_class_patched_between_two_calls(monkeypatch):
    import json

    def f(n):
        return json.dumps(n)

    before = nectar.fingerprint(f)
    monkeypatch.setattr(json.JSONEncoder, "default", lambda self, value: 1)
    patched = nectar.fingerprint(f)
    monkeypatch.setattr(json.JSONEncoder, "default", lambda self, value: 2)
    assert len({before, patched, nectar.fingerprint(f)}) == 3


def test_a_cell_filled_anew():
    def make():
        k = 1

        def f(n):
            return n + k

        def fill(value):
            nonlocal k
            k = value

        return f, fill

    f, fill = make()
    before = nectar.fingerprint(f)
    fill(2)
    assert nectar.fingerprint(f) != before


def test_the_environment_is_looked_at_again(monkeypatch):
    space = {}
    exec("import os\ndef f(n):\n    return n, os.environ.get('NECTAR_TEST_REGION', 'none')", space)
    unset = nectar.fingerprint(space["f"])
    monkeypatch.setenv("NECTAR_TEST_REGION", "north")
    north = nectar.fingerprint(space["f"])
    monkeypatch.setenv("NECTAR_TEST_REGION", "south")
    assert len({unset, north, nectar.fingerprint(space["f"])}) == 3
    assert "south" not in str(nectar.trace(space["f"]))
    assert "south" not in nectar.trace(space["f"]).to_json()


def test_a_changed_decimal_context_counts_for_everybody():
    def f(n):
        return decimal.Decimal(n) / 3

    def g(n):
        return sum(n) / 3  # of whatever numbers it is given

    before = nectar.fingerprint(f), nectar.fingerprint(g)
    with decimal.localcontext() as context:
        context.prec = 5
        assert nectar.fingerprint(f) != before[0]
        assert nectar.fingerprint(g) != before[1]
    assert (nectar.fingerprint(f), nectar.fingerprint(g)) == before


def test_heavy_values_are_not_kept_alive():
    numpy = pytest.importorskip("numpy")
    import gc
    import weakref

    def make():
        class Marked(numpy.ndarray):
            pass

        array = numpy.zeros(1 << 20).view(Marked)
        return (lambda n: array[n]), weakref.ref(array)

    f, alive = make()
    nectar.fingerprint(f)
    del f
    gc.collect()
    assert alive() is None


def test_bound_methods_are_found_again():
    holder = Holder()
    assert nectar.fingerprint(holder.go) == nectar.fingerprint(holder.go)
    before = nectar.fingerprint(holder.go)
    holder.level = 5
    assert nectar.fingerprint(holder.go) != before
