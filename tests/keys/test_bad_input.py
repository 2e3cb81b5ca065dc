"""Odd objects give a clear error that names them and the path to them, or a right fingerprint; never a hang."""

import pprint
import sys
import types

import pytest

import nectar
from nectar.errors import UncacheableError, UnencodableError


def capture(value):
    def f(n):
        return value, n

    return f


def test_a_c_object_without_readable_state_is_named_with_the_path_to_it():
    import _thread

    native = _thread.start_new_thread.__self__  # a module is fine, what it holds below is not
    assert nectar.fingerprint(capture(native.allocate_lock()))
    import csv

    with pytest.raises(UnencodableError, match=r"_csv\.reader.*captured value -> \['deep'\]"):
        nectar.fingerprint(capture({"deep": csv.reader([])}))


def test_a_function_of_a_deleted_module_is_fingerprinted_by_its_body(tmp_path, monkeypatch):
    (tmp_path / "gone_module.py").write_text("K = 3\ndef g(n):\n    return n + K\n")
    monkeypatch.syspath_prepend(tmp_path)
    import gone_module

    g = gone_module.g
    before = nectar.fingerprint(g)
    del sys.modules["gone_module"]
    (tmp_path / "gone_module.py").unlink()
    assert nectar.fingerprint(g) == before
    g.__globals__["K"] = 4
    assert nectar.fingerprint(g) != before


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: (inner,)])
def test_100_000_deep_structures_are_fingerprinted(wrap):
    def build(leaf):
        value = leaf
        for _ in range(100_000):
            value = wrap(value)
        return value

    one, same, other = build(1), build(1), build(2)
    assert nectar.fingerprint(capture(one)) == nectar.fingerprint(capture(same))
    assert nectar.fingerprint(capture(one)) != nectar.fingerprint(capture(other))
    for value in (one, same, other):  # taken apart by hand: the interpreter frees deep structures recursively
        while not isinstance(value, int):
            value = next(iter(value.values() if isinstance(value, dict) else value))


def test_wide_sharing_is_not_walked_again_and_again():
    value = (1,)
    for _ in range(200):
        value = (value, value)
    assert nectar.fingerprint(capture(value))
    value = [1]
    for _ in range(200):
        value = [value, value]
    assert nectar.fingerprint(capture(value))


def test_a_self_referential_closure():
    def make():
        def f(n):
            return f if n else None

        return f

    assert nectar.fingerprint(make()) == nectar.fingerprint(make())


def test_a_set_that_reaches_itself_is_refused():
    class Member:
        pass

    member = Member()
    loop = {member}
    member.home = loop
    with pytest.raises(UnencodableError, match="set that is reached from its own members"):
        nectar.fingerprint(capture(loop))


class Raising:
    def __eq__(self, other):
        raise RuntimeError("eq")

    def __hash__(self):
        raise RuntimeError("hash")

    def __getattr__(self, name):
        raise RuntimeError("getattr " + name)

    def __repr__(self):
        raise RuntimeError("repr")

    def __len__(self):
        raise RuntimeError("len")

    def __iter__(self):
        raise RuntimeError("iter")

    def __bool__(self):
        raise RuntimeError("bool")


def test_an_object_whose_methods_raise():
    value = Raising()
    value.content = 1
    before = nectar.fingerprint(capture(value))
    assert nectar.fingerprint(capture(value)) == before
    value.content = 2
    assert nectar.fingerprint(capture(value)) != before
    assert str(nectar.trace(capture(value)))


def test_an_object_whose_reduce_raises_is_named():
    array = pytest.importorskip("numpy")

    class Odd(array.ndarray):
        def __reduce_ex__(self, protocol):
            raise RuntimeError("no")

    assert nectar.fingerprint(capture(array.zeros(2).view(Odd)))


def test_a_registered_encoding_that_raises_is_named():
    class Mine:
        pass

    def encode(value):
        raise KeyError("lost")

    nectar.register_fingerprint(Mine, encode)
    with pytest.raises(UnencodableError, match=r"Mine.*captured value.*KeyError: 'lost'"):
        nectar.fingerprint(capture(Mine()))


def test_a_live_generator_is_refused():
    with pytest.raises(UnencodableError, match="position"):
        nectar.fingerprint(capture(n for n in [1]))


def test_an_empty_cell():
    def make(fill):
        def f():
            return later

        if fill:
            later = 1
        return f

    assert nectar.fingerprint(make(True)) != nectar.fingerprint(make(False))


def test_bytecode_that_is_not_known_is_named(monkeypatch):
    from nectar.keys.bytecode.operation import UnknownInstruction

    def f(n):
        return n + 12345

    def unknown(code):
        raise UnknownInstruction("FLY")

    monkeypatch.setattr("nectar.keys.resolve.template_of", unknown)
    with pytest.raises(UnencodableError, match=r"f \(test_bad_input.py:\d+\).*FLY"):
        nectar.fingerprint(f)


def test_bytecode_of_a_python_that_is_not_known_is_refused_before_it_is_read(monkeypatch):
    """Instructions may have kept their names and changed what they mean."""

    def f(n):
        return n + 123456

    monkeypatch.setattr("nectar.keys.bytecode.symbolic.PYTHON", (3, 99))
    with pytest.raises(UnencodableError, match=r"f \(test_bad_input.py:\d+\).*up to 3\.13, and this is 3\.99"):
        nectar.fingerprint(f)


def test_refusals_name_function_file_and_line():
    import time

    def helper():
        return time.time()

    def f():
        return helper()

    with pytest.raises(UncacheableError) as caught:
        nectar.fingerprint(f)
    (refusal,) = caught.value.refusals
    assert refusal.kind == "clock"
    assert "helper (test_bad_input.py:" in str(refusal)
    assert "time.time" in str(refusal)


def test_private_globals_and_no_source():
    space = {"K": 1}
    exec("def f(n):\n    return n + K", space)
    before = nectar.fingerprint(space["f"])
    copied = types.FunctionType(space["f"].__code__, {"K": 1})
    assert nectar.fingerprint(copied) == before
    space["K"] = 2
    assert nectar.fingerprint(space["f"]) != before


def test_a_root_whose_attributes_raise():
    class Odd:
        def __getattribute__(self, name):
            raise RuntimeError(name)

        def __call__(self, n):
            return n + 1

    assert nectar.fingerprint(Odd()) == nectar.fingerprint(Odd())

    class Lazy:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __call__(self, n):
            return n + 1

    assert nectar.fingerprint(Lazy()) == nectar.fingerprint(Lazy())


def test_class_whose_annotations_are_no_dict():
    """Classes that compilers make have a descriptor there."""
    kind = type("Kind", (), {"__annotations__": property(lambda self: {})})

    def show(n):
        return pprint.pformat([kind, n])

    assert nectar.fingerprint(show) == nectar.fingerprint(show)
