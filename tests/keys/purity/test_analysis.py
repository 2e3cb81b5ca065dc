"""What helpers change is seen, however far away they are and in whatever order they are looked at."""

import pytest

import nectar
from nectar.errors import UncacheableError

CHAIN = 400


def chain_of_helpers(last):
    """A function that hands a list, which outlives the call, through many helpers to a last one."""
    lines = ["ITEMS = [1]", "def start(n):", "    helper_0(ITEMS)", "    return n"]
    for at in range(CHAIN):
        lines += [f"def helper_{at}(items):", f"    return helper_{at + 1}(items)"]
    lines += [f"def helper_{CHAIN}(items):", f"    return {last}"]
    space = {}
    exec("\n".join(lines), space)
    return space["start"]


def test_a_change_far_away_is_seen():
    with pytest.raises(UncacheableError, match="helper_0"):
        nectar.fingerprint(chain_of_helpers("items.append(1)"))
    nectar.fingerprint(chain_of_helpers("len(items)"))


def even(items, n):
    result = odd(items, n - 1) if n else True
    items.append(n)
    return result


def odd(items, n):
    return even(items, n - 1) if n else False


SEEN = [1]


def starts_even(n):
    return even(SEEN, n)


def starts_odd(n):
    return odd(SEEN, n)


def starts_both(n):
    return even([], n), odd(SEEN, n)


@pytest.mark.parametrize("function", [starts_even, starts_odd, starts_both])
def test_helpers_that_call_each_other(function):
    with pytest.raises(UncacheableError, match="that outlives the call"):
        nectar.fingerprint(function)
