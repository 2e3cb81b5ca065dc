import msgspec
import pytest

from nectar.errors import StoreFailure
from nectar.store.manifest import FORMAT, Column, Manifest, Part, decode, digest, encode

GOOD = Manifest("arrow", "pyarrow", 3, (Part("table-00000.arrow", 10, "0" * 64),), (Column("a", "int64"),))


def test_manifest_survives():
    assert decode(encode(GOOD), "here") == GOOD


def test_digest_is_that_of_the_bytes():
    assert digest(encode(GOOD)) == digest(encode(GOOD))
    assert digest(encode(GOOD)) != digest(encode(msgspec.structs.replace(GOOD, rows=4)))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null", encode(GOOD)[:-1]])
def test_what_is_no_manifest_gives_a_reason(data):
    assert isinstance(decode(data, "here"), str)


@pytest.mark.parametrize(
    "parts",
    [
        (Part("../../secret", 1, "0" * 64),),
        (Part("table-00000.arrow", -1, "0" * 64),),
        (Part("table-00000.arrow", 1, "0"),),
        (Part("object.pickle", 1, "0" * 64), Part("object.pickle", 1, "0" * 64)),
    ],
)
def test_manifest_that_cannot_be_gives_a_reason(parts):
    assert isinstance(decode(encode(msgspec.structs.replace(GOOD, parts=parts)), "here"), str)


def test_manifest_of_a_newer_version_is_refused_with_advice():
    data = msgspec.json.encode({"format": FORMAT + 1, "something": "new"})
    with pytest.raises(StoreFailure, match="update nectar-data"):
        decode(data, "here")
