"""What the golden vectors are taken of. A change here or of any vector is a change of the scheme: see CHANGELOG."""

import collections
import dataclasses
import datetime
import enum
import functools
import math
import re
from pathlib import PurePosixPath

RATE = 5
TABLE = {"a": [1, 2.5, None], "b": {"x", "y", "z"}}
PATTERN = re.compile("a+b", re.IGNORECASE)
MISSING = object()


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


@dataclasses.dataclass
class Point:
    x: int
    y: list = dataclasses.field(default_factory=list)

    def length(self):
        return math.hypot(self.x, len(self.y))


Pair = collections.namedtuple("Pair", "left right", defaults=[0])


def helper(n, k=3):
    return n * k + RATE


def plain(n):
    t = helper(n)
    return t + 1


def looping(xs):
    total = 0
    for i, x in enumerate(xs):
        if x is None:
            continue
        while x > 10:
            x //= 2
        total += i * x
    else:
        total -= 1
    return total


def guarded(xs):
    try:
        value = xs.pop()
    except IndexError as error:
        return str(error.args)
    finally:
        del xs
    return value


def generator(n):
    got = yield n
    yield from (k + got for k in range(n))


async def awaiting(thing):
    async with thing as opened:
        return [item async for item in opened]


def closing(k):
    def inner(n):
        nonlocal k
        k = k + n
        return k

    return inner


def uses_class(n):
    return Point(n, [1, 2]).length(), Colour.RED.value, Pair(n)


def uses_values(n, default=MISSING):
    return TABLE["a"][0], PATTERN.sub("x", n), default is MISSING


@functools.lru_cache(maxsize=8)
def cached(n):
    return helper(n)


def recursive(n):
    return 1 if n == 0 else n * recursive(n - 1)


SUBJECTS = {
    "plain": plain,
    "looping": looping,
    "guarded": guarded,
    "generator": generator,
    "awaiting": awaiting,
    "closing": closing,
    "uses_class": uses_class,
    "uses_values": uses_values,
    "cached": cached,
    "recursive": recursive,
    "lambda": lambda n: n + 4,
    "partial": functools.partial(helper, k=4),
    "method": Point(1).length,
    "class": Point,
    "enum member": Colour.BLUE,
    "namedtuple": Pair(1, 2),
    "atoms": [None, True, 0, -1, 1 << 80, 0.0, -0.0, float("nan"), float("inf"), 1j, "é\ud800", b"\x00", ..., range(3)],
    "dates": [datetime.date(2020, 1, 2), datetime.timedelta(1, 2, 3), datetime.datetime(2020, 1, 2, 3, 4, 5, 6)],
    "containers": [(1, (2, frozenset({3, 4}))), {"k": [1]}, {1, 2, 3}, bytearray(b"xy"), collections.deque([1], 3)],
    "long list": list(range(100)),
    "path": PurePosixPath("a/b"),
    "cycle": (lambda ring: ring.append(ring) or ring)([1]),
}


def fingerprints(subjects=None):
    """The fingerprint of every subject, by name."""
    from nectar.keys.outcome import outcome_of

    return {name: outcome_of(value).digest.hex() for name, value in (subjects or SUBJECTS).items()}


if __name__ == "__main__":
    import json

    print(json.dumps(fingerprints()))
