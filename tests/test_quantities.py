"""Sizes and durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nectar.errors import SettingError
from nectar.quantities import parse_duration, parse_size, show_duration, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("17", 17), ("17b", 17), ("20GB", 20 * 10**9), ("20 gb", 20 * 10**9), (" 1.5kB ", 1500),
        ("1KiB", 1024), ("0.5 MiB", 512 * 1024), ("2TB", 2 * 10**12), ("2tib", 2 * 2**40), (42, 42),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15min", 900), ("15 m", 900), ("2h", 7200), ("1d", 86400),
     ("1w", 604800), ("5ms", 0.005), (3.5, 3.5), (2, 2)],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 GB 2", "1,5GB", "1e3", "20XB", "one", "0x10", "\u0663"])
def test_what_is_no_size(text):
    with pytest.raises(SettingError, match="is no size: write it like 20GB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "d", "-1d", "1y", "1:30", "soon"])
def test_what_is_no_duration(text):
    with pytest.raises(SettingError, match="is no duration: write it like 1d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1234, "1.23 kB"), (123456, "123 kB"),
     (20 * 10**9, "20 GB"), (3.2e12, "3.2 TB")],
)  # fmt: skip
def test_sizes_for_people(size, text):
    assert show_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.412, "412 ms"), (1, "1 s"), (4.5, "4.5 s"), (60, "1 min"), (252, "4 min 12 s"),
        (3600, "1 h"), (11100, "3 h 5 min"), (86400, "1 d"), (187200, "2 d 4 h"), (10**8, "1157 d 9 h"),
    ],
)  # fmt: skip
def test_durations_for_people(seconds, text):
    assert show_duration(seconds) == text


@given(st.integers(0, 10**14))
def test_a_shown_size_can_be_read_again(size):
    assert parse_size(show_size(size)) == pytest.approx(size, rel=0.01)


@given(st.floats(0, 1e9))
def test_every_duration_can_be_shown(seconds):
    assert show_duration(seconds)
