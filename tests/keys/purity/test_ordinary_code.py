"""Ordinary functions that look a little like impure ones: none of them is refused."""

import codecs
import collections
import csv
import datetime as dt
import html
import io
import json
import logging
import operator
import random
import re
import string
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path, PurePath

import pytest

import nectar

LOG = logging.getLogger(__name__)
ROOT = Path("/data")
COLUMNS = {"a", "b"}


class Account:
    """Has methods that paths and frames have, too."""

    def open(self):
        return "open"

    def exists(self):
        return True

    def sample(self, n):
        return n

    def report(self):
        return self.open() if self.exists() else self.sample(3)


class Tree:
    def __init__(self, children):
        self.children = children

    def depth(self):
        return 1 + max((child.depth() for child in self.children), default=0)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def draws(seed):
    generator = random.Random(seed)
    return [generator.random() for _ in range(3)], generator.sample(range(10), 3)


ORDINARY = {
    "paths put together": lambda n: ROOT / n / "x.csv",
    "parts of paths": lambda n: (Path(n).with_suffix(".txt").name.replace("a", "b"), str(Path(n).parent / "y")),
    "relative paths": lambda n: Path(n).joinpath("a").relative_to("/").as_posix(),
    "pure paths": lambda n: PurePath(n).match("*.py"),
    "own methods": lambda n: Account().report(),
    "methods that call themselves": lambda n: Tree([Tree([])]).depth(),
    "recursion": lambda n: factorial(n),
    "an attribute that is only asked for": lambda x: x.is_file if hasattr(x, "is_file") else None,
    "encodings": lambda s: s.encode("utf-8", "ignore").decode("latin-1"),
    "encodings by callables": lambda s: (
        str(s, "utf-8"),
        bytes("a", "ascii", errors="replace"),
        codecs.encode(s, "hex"),
    ),
    "sorted sets": lambda n: (sorted(COLUMNS), ",".join(sorted(COLUMNS)), sorted(list(COLUMNS))),
    "counted sets": lambda n: (len(list(COLUMNS)), n in COLUMNS, [c for c in COLUMNS if c]),
    "sets of numbers": lambda n: list({1, 2, n}),
    "sets of anything": lambda xs: ",".join(sorted(set(xs))),
    "dates as texts": lambda d: d.strftime("%Y-%m-%d"),
    "a column named timestamp": lambda frame: frame["timestamp"].max(),
    "seconds of a moment": lambda d: d.timestamp(),
    "moments with a zone": lambda n: dt.datetime(2024, 1, 1, tzinfo=dt.UTC).astimezone(dt.UTC),
    "texts that say now": lambda s: (re.compile("a").sub("now", s), dict(when="today")),
    "draws with a seed": lambda n: random.Random(3).sample(range(n), 2),
    "samples with a seed": lambda frame: (frame.sample(3, random_state=1), frame.sample(n=3, seed=1)),
    "json": lambda n: json.dumps({"a": n}, sort_keys=True, default=str),
    "xml": lambda s: ElementTree.fromstring(s).tag,
    "html and text": lambda s: html.unescape(s) + textwrap.dedent(s),
    "csv": lambda s: list(csv.reader(io.StringIO(s))),
    "draws with a seed, also in a list": draws,
    "templates": lambda s: (string.capwords(s), string.Template("$a").substitute(a=s)),
    "logging": lambda n: LOG.info("x %s", n),
    "callers": lambda n: (operator.methodcaller("upper")("a"), operator.attrgetter("real")(n)),
    "counters": lambda xs: (list(dict.fromkeys(xs)), collections.Counter(xs).most_common(2)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_code_is_accepted(name):
    nectar.fingerprint(ORDINARY[name])


def test_tables_of_libraries_are_accepted():
    pd = pytest.importorskip("pandas")
    np = pytest.importorskip("numpy")

    def moments(n):
        return (
            pd.Timestamp("2024-01-01") + pd.Timedelta(days=n),
            pd.to_datetime("2024-01-01"),
            np.datetime64("2024-01-01"),
        )

    def texts(n):
        return pd.DataFrame({"a": [n]}).to_csv(index=False), pd.DataFrame({"a": [n]}).to_json()

    def draws(n):
        return np.random.default_rng(3).choice(n)

    for function in (moments, texts, draws):
        nectar.fingerprint(function)
