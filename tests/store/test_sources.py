"""Parts opened for reading: whoever reads one is not disturbed by others, nor by what happens to its name."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from blake3 import blake3

from nectar.faults import nowhere
from nectar.store.chunks import digests_of
from nectar.store.local import LocalFiles

CONTENT = b"".join(number.to_bytes(4, "big") for number in range(500_000))

DIGESTS = b"".join(blake3(CONTENT[start : start + (1 << 20)]).digest() for start in range(0, len(CONTENT), 1 << 20))


def _stays(path):
    pass


def _replace(path):
    other = path.with_name("other")
    other.write_bytes(b"something else")
    os.replace(other, path)


HAPPENS = pytest.mark.parametrize("happens", [_stays, os.unlink, _replace], ids=["stays", "removed", "replaced"])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "part"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def source(path):
    source = LocalFiles(str(path.parent), nowhere).source("part")
    yield source
    source.close()


@HAPPENS
def test_files_of_one_part_have_positions_of_their_own(source, path, happens):
    happens(path)
    with source.file() as one:
        half = one.read(len(CONTENT) // 2)
        with source.file() as other:
            assert other.read() == CONTENT
        source.ends(10)
        assert half + one.read() == CONTENT


@HAPPENS
def test_a_file_is_readable_after_its_part_is_closed(source, path, happens):
    with source.file() as file:
        happens(path)
        source.close()
        assert file.read() == CONTENT


def test_threads_read_one_part_at_the_same_time(source):
    def ends(_):
        return source.ends(10) == (CONTENT[:10], CONTENT[-10:])

    def digest(_):
        return digests_of(source)[1] == DIGESTS

    with ThreadPoolExecutor(4) as pool:
        told = [pool.submit(each, number) for number in range(50) for each in (ends, digest)]
        assert all(future.result() for future in told)
