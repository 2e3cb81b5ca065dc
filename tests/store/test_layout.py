import pytest

from nectar.errors import InternalError
from nectar.store import layout


def test_location_is_never_given_twice():
    assert len({layout.new_location(b"k" * 32) for _ in range(1000)}) == 1000


def test_location_is_spread_by_the_key():
    location = layout.new_location(b"\xab" * 32)
    assert location.startswith("ab/abab")
    assert layout.is_location(location)
    assert layout.location_of(location.partition("/")[2]) == location


@pytest.mark.parametrize(
    "text",
    ["", "ab", "../../etc/passwd", "ab/../x", "cd/abab-0123456789abcdef", "ab/abab-0123", "ab/abab-0123456789abcdef/x"],
)
def test_nothing_else_is_a_location(text):
    assert not layout.is_location(text)
    for folder in (layout.data_folder, layout.staging_folder, layout.trash_folder):
        with pytest.raises(InternalError):
            folder(text)


@pytest.mark.parametrize("name", ["table-00000.arrow", "object.pickle", "object.buffers", "raw-a.b_c-d"])
def test_our_parts_are_known_by_name(name):
    assert layout.is_part(name)


@pytest.mark.parametrize("name", ["../x", "raw-../x", "raw-a/b", "notes.txt", ".nfs0001", "manifest.json", "raw-"])
def test_other_names_are_no_parts(name):
    assert not layout.is_part(name)
