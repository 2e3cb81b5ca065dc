"""Files that grow: what they held before is proven by its bytes, or they are new files."""

import blake3
import pytest

from nectar.clock import ManualClock
from nectar.errors import InputFailure
from nectar.store.inputs import local, stretches
from nectar.store.inputs.identify import Inputs, RememberedHere

OLD, NEW = b"a,b\n1,2\n", b"3,4\n5,6\n"


class Quiet(ManualClock):
    """A clock that is far ahead: every file has been quiet for long."""

    def now(self):
        return 1e11


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


@pytest.fixture(params=["quiet", "just written"])
def inputs(request):
    clock = Quiet() if request.param == "quiet" else ManualClock(0)
    return Inputs(RememberedHere(), clock, host="here", identity="content")


def seen(inputs, path, content):
    """The identity of a file that is written and watched."""
    path.write_bytes(content)
    (identity,) = inputs.identify([path])
    inputs.watch([identity])
    return identity


def grown(inputs, path, content, quoted=True):
    path.write_bytes(content)
    identities = inputs.identify([path])
    return inputs.grown(identities, quoted)[0]


def digest(data):
    return blake3.blake3(data).digest()


def test_stretches_have_the_names_that_the_file_had(inputs, path):
    before = seen(inputs, path, OLD)
    between = seen(inputs, path, OLD + NEW)
    first, second, third = grown(inputs, path, OLD + NEW + b"7,8\n")
    assert [(each.start, each.end) for each in (first, second, third)] == [(0, 8), (8, 16), (16, 20)]
    assert (first.upto.names, second.upto.names) == (before.names, between.names)
    assert third.upto == inputs.identify([path])[0]
    assert [each.alone for each in (first, second, third)] == [digest(OLD), digest(NEW), digest(b"7,8\n")]


@pytest.mark.parametrize("content", [
    OLD, OLD[:4], b"a,b\n1,9\n" + NEW, b"a,c\n1,2\n" + NEW, OLD[:-1] + b"9\n" + NEW, NEW + OLD, b"", OLD + b"\n3,4\n",
    OLD + b"\r\n3,4\n",
])  # fmt: skip
def test_other_bytes_are_a_new_file(inputs, path, content):
    seen(inputs, path, OLD)
    assert grown(inputs, path, content) == ()


def test_nothing_is_cut_within_a_line_or_within_quotes(inputs, path):
    for sealed in (b"a,b\n1", b"a,b\n", b'a,b\n"1\n', b'a,b\n"1\n2",3\n'):
        seen(inputs, path, sealed)
    whole = b'a,b\n"1\n2",3\n4,5\n'
    assert [each.end for each in grown(inputs, path, whole)] == [4, 12, 16]
    assert [each.end for each in grown(inputs, path, whole, quoted=False)] == [4, 7, 12, 16]


def test_a_file_is_read_only_if_it_was_shorter_once(path, monkeypatch):
    inputs = Inputs(RememberedHere(), Quiet(), host="here")
    read = []
    before, cut = local._digest, stretches.stretches
    monkeypatch.setattr(local, "_digest", lambda fd, size, *more: read.append(size) or before(fd, size, *more))
    monkeypatch.setattr(stretches, "stretches", lambda fd, size, *rest: read.append(size) or cut(fd, size, *rest))
    assert grown(inputs, path, OLD) == ()
    seen(inputs, path, OLD)
    assert grown(inputs, path, OLD) == ()
    assert read == [], "it never was shorter"
    seen(inputs, path, OLD + NEW)
    assert read == [16], "it has grown, and is read so that this can be proven next time"
    for _ in range(3):
        (identity,) = inputs.identify([path])
        inputs.watch([identity])
    assert read == [16]
    assert [each.end for each in grown(inputs, path, OLD + NEW + OLD)] == [16, 24]
    inputs.grown(inputs.identify([path]), True)
    inputs.watch(inputs.identify([path]))
    assert read == [16, 24], "once for each version of the file"


def test_a_file_that_changes_while_it_is_read_proves_nothing(inputs, path, monkeypatch):
    seen(inputs, path, OLD)
    path.write_bytes(OLD + NEW)
    identities = inputs.identify([path])
    before = stretches.stretches

    def late(*args):
        found = before(*args)
        path.write_bytes(OLD + NEW + NEW)
        return found

    monkeypatch.setattr(stretches, "stretches", late)
    assert inputs.grown(identities, True) == [()]


def test_a_file_that_is_gone_proves_nothing(inputs, path):
    seen(inputs, path, OLD)
    path.write_bytes(OLD + NEW)
    identities = inputs.identify([path])
    folder = path.parent / "moved"
    path.rename(folder)
    with pytest.raises(InputFailure, match="log"):
        inputs.grown(identities, True)


def test_another_file_with_the_same_beginning_has_not_grown(inputs, path, tmp_path):
    seen(inputs, path, OLD)
    assert grown(inputs, tmp_path / "other.csv", OLD + NEW) == ()


def test_large_files_are_read_in_blocks(inputs, path, monkeypatch):
    monkeypatch.setattr("nectar.store.inputs.stretches._BLOCK", 7)
    seen(inputs, path, OLD)
    first, second = grown(inputs, path, OLD + NEW)
    assert (first.alone, second.alone, second.upto.content) == (digest(OLD), digest(NEW), digest(OLD + NEW))
