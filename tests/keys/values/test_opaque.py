"""Objects of compiled classes, whose pickle may be less than the object."""

import _random
from types import SimpleNamespace

import pytest

import nectar
from nectar.keys import instances
from nectar.keys.values import opaque


class Blob(_random.Random):
    """Stands for a class of a library that keeps its state in native code."""

    def __reduce__(self):
        return Blob, self.given

    def given_as(self, *given):
        self.given = given
        return self


@pytest.fixture
def of(monkeypatch):
    """Lets the class belong to a distribution."""

    def belongs(name):
        origin = SimpleNamespace(kind="distribution", name=name, version="1", module="blobs")
        for module in (opaque, instances):
            monkeypatch.setattr(module, "origin_of_class", lambda cls: origin)

    return belongs


@pytest.mark.parametrize("given", [(b"x",), (1, [b"x"]), ({"state": (bytearray(b"x"),)},)])
def test_bytes_of_a_format_of_its_own_may_be_a_part_only(given, of):
    of("chemistry")
    blob = Blob().given_as(*given)
    assert opaque.is_opaque(blob)
    assert opaque.may_lack_state(Blob, (Blob, given))


@pytest.mark.parametrize("given", [(1, "x"), ((1.5, [2]),), ()])
def test_fields_are_believed(given, of):
    of("chemistry")
    assert not opaque.is_opaque(Blob().given_as(*given))


@pytest.mark.parametrize("name", ["numpy", "scikit-learn", "torch", "bitarray"])
def test_known_libraries_are_believed(name, of):
    of(name)
    assert not opaque.is_opaque(Blob().given_as(b"x"))


def test_what_cython_writes_is_all_of_it(of):
    def __pyx_unpickle_Blob(cls, check, state):  # noqa: N807
        return cls()

    of("chemistry")
    assert not opaque.may_lack_state(Blob, (__pyx_unpickle_Blob, (Blob, 1, (b"x",))))


def test_classes_of_boost_are_not_believed():
    meta = type("class", (type,), {"__module__": "Boost.Python"})
    molecule = meta("Molecule", (), {})
    assert opaque.may_lack_state(molecule, (molecule, (1,)))


def test_such_an_object_has_no_fingerprint(of, monkeypatch):
    monkeypatch.setattr(instances, "may_lack_state", lambda cls, reduced: cls is Blob)
    with pytest.raises(nectar.UnencodableError, match="may be a part only"):
        nectar.fingerprint(Blob().given_as(b"x"))


def test_a_prepared_geometry_is_another_one():
    shapely = pytest.importorskip("shapely")
    box, same = shapely.box(0, 0, 1, 1), shapely.box(0, 0, 1, 1)
    assert nectar.fingerprint(box) == nectar.fingerprint(same)
    shapely.prepare(same)
    assert nectar.fingerprint(box) != nectar.fingerprint(same)
