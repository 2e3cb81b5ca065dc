"""Whether a result is worth its bytes."""

import pytest

from nectar.catalog.worth import reason_not_to_keep


@pytest.mark.parametrize(
    ("seconds", "size", "inline", "kept"),
    [
        (0.0, 100, 4096, True),  # small ones always are
        (0.0, 4096, 4096, True),
        (0.0, 4097, 4096, False),
        (0.0, 1, 0, False),
        (0.002, 4097, 4096, True),
        (0.5, 10**9, 4096, False),  # a second to read
        (2.0, 10**9, 4096, True),
        (3600.0, 10**12, 4096, True),
    ],
)
def test_reading_it_back_must_be_faster_than_computing_it(seconds, size, inline, kept):
    assert (reason_not_to_keep(seconds, size, inline) == "") is kept


def test_the_reason_names_both_times_and_the_size():
    reason = reason_not_to_keep(0.1, 2 * 10**9, 4096)
    assert reason.startswith("not kept: ")
    assert "100 ms" in reason
    assert "2 GB" in reason or "2.00 GB" in reason
    assert "2 s" in reason or "2.0 s" in reason
    assert "20 us" in reason_not_to_keep(2e-5, 10_000, 4096)
