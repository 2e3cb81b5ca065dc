"""Parts by chunks: digests that are made while writing are those that are verified before reading."""

import hashlib
import os

import msgspec
import pyarrow as pa
import pytest
from blake3 import blake3
from tests.store.making import KEY, entry_of, folder_of, put_object, put_table, with_manifest

from nectar.store.chunks import Checked, ChunkHash, DamagedPartError
from nectar.store.manifest import CHUNK, DIGEST, Part, decode, digest, encode, subject_of
from nectar.store.problem import Damaged
from nectar.store.read import Result
from nectar.store.sources import MemorySource
from nectar.store.store import Store

SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5]


def content_of(size):
    return (hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1))[:size]


def hashed(content, step):
    done = ChunkHash()
    for start in range(0, len(content), step):
        done.update(memoryview(content)[start : start + step])
    return done.digests()


def checked(content, found=None):
    whole, chunks = hashed(content, CHUNK)
    return Checked(
        MemorySource(content if found is None else found), Part("a", len(content), whole.hex(), chunks), CHUNK
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", [1 << 16, CHUNK, CHUNK + 7, 1 << 30])
def test_digests_are_those_of_the_chunks_however_the_bytes_come(size, step):
    content = content_of(size)
    whole, chunks = hashed(content, step)
    if size <= CHUNK:
        assert (whole, chunks) == (blake3(content).digest(), b"")
    else:
        parts = [content[start : start + CHUNK] for start in range(0, size, CHUNK)]
        assert chunks == b"".join(blake3(part).digest() for part in parts)
        assert whole == blake3(chunks).digest()


@pytest.mark.parametrize("size", SIZES)
def test_what_is_right_is_handed_out(size):
    part = checked(content_of(size))
    assert bytes(part.view()) == part.file().read() == bytes(part.private()) == content_of(size)
    assert part.is_sound


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("where", [0.0, 0.5, 0.999])
def test_one_bit_is_enough(size, where):
    wrong = bytearray(content_of(size))
    wrong[int(size * where)] ^= 16
    part = checked(content_of(size), bytes(wrong))
    for use in (part.view, part.file, part.private, lambda: part.read(int(size * where), 1)):
        with pytest.raises(DamagedPartError, match="not those that were written"):
            use()


def test_only_the_chunks_that_are_asked_for_are_verified():
    wrong = bytearray(content_of(5 * CHUNK))
    wrong[2 * CHUNK] ^= 1
    part = checked(content_of(5 * CHUNK), bytes(wrong))
    part.check([(0, 10), (CHUNK, 2 * CHUNK), (3 * CHUNK, 3 * CHUNK), (4 * CHUNK - 1, 5 * CHUNK)])
    assert list(part.sound) == [1, 1, 0, 1, 1]
    with pytest.raises(DamagedPartError):
        part.check([(2 * CHUNK - 1, 2 * CHUNK + 1)])


def test_a_file_that_became_shorter_is_damaged():
    with pytest.raises(DamagedPartError):
        checked(content_of(3 * CHUNK), content_of(3 * CHUNK)[: 2 * CHUNK + 1]).check()


# what is kept in which format


def as_written_before(store, entry, formatted):
    """The same result with a manifest as it was written in an older format, without chunks and subject."""
    path = folder_of(store, entry) / "manifest.json"
    manifest = decode(path.read_bytes(), "here")
    parts = [
        msgspec.structs.replace(part, blake3=blake3((path.parent / part.name).read_bytes()).hexdigest(), chunks=b"")
        for part in manifest.parts
    ]
    old = msgspec.to_builtins(msgspec.structs.replace(manifest, parts=tuple(parts), format=formatted))
    for name in ("chunk", "subject"):
        del old[name]
    for part in old["parts"]:
        del part["chunks"]
    data = msgspec.json.encode(old)
    path.write_bytes(data)
    return with_manifest(entry, digest(data))


@pytest.mark.parametrize("formatted", [1, 2])
def test_older_formats_are_read_and_verified(tmp_path, formatted):
    store = Store(tmp_path)
    table = pa.table({"a": list(range(400_000)), "b": [str(number) for number in range(400_000)]})
    entry = as_written_before(store, put_table(store, table), formatted)
    for in_part in (False, True):
        with store.open(entry, in_part=in_part) as result:
            assert result.to_arrow().equals(table)
            assert result.to_polars(["b"])["b"].to_list() == table["b"].to_pylist()
    path = folder_of(store, entry) / "table-00000.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert isinstance(store.open(entry), Damaged)


def test_results_say_of_what_they_are(tmp_path):
    store = Store(tmp_path)
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_object([1])
        entry = entry_of(staging.publish(subject_of(KEY, KEY, ())))
    assert isinstance(store.open(entry), Result)
    for changed in ({"program": bytes(32)}, {"kind": "arrow"}, {"location": entry.location[:-1]}, {"key": b"k" * 32}):
        assert isinstance(store.open(msgspec.structs.replace(entry, **changed)), Damaged), changed


def test_inline_results_say_of_what_they_are(local):
    entries = []
    for key in (KEY, b"k" * 32):
        with local.stage_inline() as staging:
            staging.write_object(key)
            entries.append(msgspec.structs.replace(entry_of(staging.publish(subject_of(key, KEY, ()))), key=key))
    one, other = entries
    assert local.open(one).to_object() == KEY
    mixed = msgspec.structs.replace(one, manifest=other.manifest, inline=other.inline)
    assert isinstance(local.open(mixed), Damaged)


def test_a_manifest_with_too_few_digests_is_none(tmp_path):
    store = Store(tmp_path)
    entry = put_object(store, content_of(3 * CHUNK))
    path = folder_of(store, entry) / "manifest.json"
    manifest = decode(path.read_bytes(), "here")
    assert len(manifest.parts[0].chunks) == 4 * DIGEST
    short = msgspec.structs.replace(manifest.parts[0], chunks=manifest.parts[0].chunks[:-DIGEST])
    assert isinstance(decode(encode(msgspec.structs.replace(manifest, parts=(short,))), "here"), str)
    assert os.path.getsize(path) < 1000
