"""Small results in one piece: what goes in comes out, whatever is changed is found, older pieces are read."""

import msgspec
import pyarrow as pa
import pytest
from tests.catalog.making import key as named
from tests.catalog.making import opened as opened_catalog
from tests.store.making import KEY, entry_of

from nectar.errors import StoreFailure
from nectar.store.inline import FORMAT
from nectar.store.manifest import CHUNK, Manifest, Part, digest, encode, subject_of
from nectar.store.problem import Damaged

VALUE = {"number": 7, "tags": ["a", "b"], "data": bytes(range(100))}
SUBJECT = subject_of(KEY, KEY, ())


def kept_inline(store, value):
    with store.stage_inline() as staging:
        staging.write_table(value) if isinstance(value, pa.Table) else staging.write_object(value)
        return entry_of(staging.publish(SUBJECT))


def as_lists(entry, value):
    """The entry as versions before format 4 wrote it: a manifest, and the parts by name."""
    import pickle

    from blake3 import blake3

    data = pickle.dumps(value, protocol=5)
    part = Part("object.pickle", len(data), blake3(data).hexdigest())
    manifest = encode(Manifest("object", "pickle", 0, (part,), chunk=CHUNK, subject=SUBJECT, format=3))
    inline = msgspec.msgpack.encode((manifest, {"object.pickle": data}))
    return msgspec.structs.replace(entry, manifest=digest(manifest), inline=inline, size=len(inline))


@pytest.mark.parametrize("value", [VALUE, None, [], pa.table({"a": [1, 2], "b": ["x", None]})])
def test_what_goes_in_comes_out(local, value):
    opened = local.open(kept_inline(local, value))
    table = isinstance(value, pa.Table)
    assert (opened.to_arrow() if table else opened.to_object()) == value
    assert (opened.kind, opened.rows, opened.paths) == ("arrow" if table else "object", 2 * table, ())
    assert opened.made_by == ("pyarrow" if table else "")


def test_arrays_come_back_with_memory_of_their_own(local):
    import numpy as np

    entry = kept_inline(local, [np.arange(30), np.arange(5.0)])
    one = local.open(entry).to_object(writable=True)
    one[0][:] = 0
    two = local.open(entry).to_object()
    assert list(two[0]) == list(range(30))
    assert list(two[1]) == list(range(5))


def test_every_bit_of_a_piece_counts(local):
    entry = kept_inline(local, VALUE)
    for position in range(len(entry.inline)):
        for bit in (1, 128):
            data = bytearray(entry.inline)
            data[position] ^= bit
            changed = msgspec.structs.replace(entry, inline=bytes(data))
            assert isinstance(local.open(changed), Damaged), (position, bit)
            assert local.examine(changed, thorough=False), (position, bit)


def test_a_piece_that_is_cut_off_or_longer_is_damaged(local):
    entry = kept_inline(local, VALUE)
    for data in (b"", entry.inline[:1], entry.inline[:-1], entry.inline + b"\0", b"\x92" + entry.inline[1:]):
        assert isinstance(local.open(msgspec.structs.replace(entry, inline=data)), Damaged)


@pytest.mark.parametrize("changed", [{"program": bytes(32)}, {"key": b"k" * 32}, {"kind": "arrow"}])
def test_a_row_of_something_else_leads_to_nothing(local, changed):
    entry = kept_inline(local, VALUE)
    assert isinstance(local.open(msgspec.structs.replace(entry, **changed)), Damaged)


def test_pieces_of_earlier_formats_are_read_and_verified(local):
    old = as_lists(kept_inline(local, VALUE), VALUE)
    assert local.open(old).to_object() == VALUE
    for position in range(len(old.inline)):
        data = bytearray(old.inline)
        data[position] ^= 1
        assert isinstance(local.open(msgspec.structs.replace(old, inline=bytes(data))), Damaged), position
    other = msgspec.structs.replace(old, key=b"k" * 32)
    assert isinstance(local.open(other), Damaged)


def test_a_piece_of_a_newer_version_is_refused_with_advice(local):
    entry = kept_inline(local, VALUE)
    data = bytes((FORMAT + 1,)) + entry.inline[1:]
    with pytest.raises(StoreFailure, match="update nectar-data"):
        local.open(msgspec.structs.replace(entry, inline=data, manifest=digest(data)))


def test_a_piece_takes_few_bytes_beside_the_value(local):
    import pickle

    entry = kept_inline(local, VALUE)
    assert len(entry.inline) - len(pickle.dumps(VALUE, protocol=5)) < 100


def test_a_large_result_lies_in_no_row_whatever_a_settings_file_says(tmp_path):
    catalog = opened_catalog(tmp_path / "home", inline=100 << 30)
    assert catalog.keep(named(1), named(0), b"x" * (2 << 20), seconds=9.0).entry.inline is None
    assert catalog.keep(named(2), named(0), b"x" * (1 << 10), seconds=9.0).entry.inline is not None
    catalog.close()
