"""Bodies of functions as people write them every day: none of them is refused, nor a copy that was pickled by value."""

# Many small functions, each as short as people write them.
# ruff: noqa: C408, C416, C417, D101, E501, E701, E704, RUF005, SIM, UP, B, PT, PL, F401, N

from __future__ import annotations

import abc
import base64
import bisect
import collections
import contextlib
import copy
import csv
import dataclasses
import datetime as dt
import decimal
import difflib
import enum
import fractions
import functools
import hashlib
import heapq
import hmac
import html
import io
import ipaddress
import itertools
import json
import logging
import math
import operator
import pickle
import random
import re
import statistics
import string
import struct
import sys
import textwrap
import threading
import types
import typing
import unicodedata
import urllib.parse
import uuid
import warnings
import zlib
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nectar.keys.outcome import outcome_of

LOG = logging.getLogger(__name__)
LOCK = threading.Lock()
WORD = re.compile(r"\w+")
RATE = 1.2
TABLE = {"a": 1, "b": 2}


@dataclass
class Config:
    rate: float = 1.5
    names: list[str] = field(default_factory=lambda: ["a", "b"])

    def scaled(self, x):
        return x * self.rate

    @property
    def label(self):
        return f"{self.rate}:{self.names}"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


@dataclass(order=True, slots=True)
class Version:
    major: int
    minor: int

    def __str__(self):
        return f"{self.major}.{self.minor}"


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Flags(enum.Flag):
    A = 1
    B = 2


Pair = namedtuple("Pair", "left right")


class Row(typing.NamedTuple):
    name: str
    value: float = 0.0


CONFIG = Config()
ORIGIN = Point(0)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def __init__(self, a):
        self.a = a

    def area(self):
        return self.a**2

    def __repr__(self):
        return f"Square({self.a!r})"

    def __eq__(self, other):
        return isinstance(other, Square) and self.a == other.a

    def __hash__(self):
        return hash(self.a)


class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, at):
        return self.rows[at]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __matmul__(self, other):
        return Matrix([[sum(a * b for a, b in zip(row, col)) for col in zip(*other)] for row in self])

    def __contains__(self, x):
        return any(x in row for row in self.rows)

    def __bool__(self):
        return bool(self.rows)


UNIT = Matrix([[1, 0], [0, 1]])


class Registry(dict):
    def __missing__(self, key):
        return key.upper()


NAMES = Registry(a="A")


class Temp:
    def __init__(self, c):
        self._c = c

    @property
    def f(self):
        return self._c * 9 / 5 + 32

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


TEMP = Temp(20)


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.cache
def slug(text):
    return "-".join(WORD.findall(text.lower()))


class Report:
    def __init__(self, rows):
        self.rows = rows

    @functools.cached_property
    def total(self):
        return sum(self.rows)


@contextlib.contextmanager
def bracket(out):
    out.append("(")
    yield
    out.append(")")


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@timed
def doubled(x):
    return 2 * x


@functools.singledispatch
def shown(x):
    return str(x)


@shown.register
def _(x: int):
    return f"int {x}"


@functools.singledispatch
def plain(x):
    return x


@plain.register(set)
def _(x):
    return sorted(x)


@plain.register(dict)
def _(x):
    return {str(k): plain(v) for k, v in x.items()}


# fmt: off
def usually_dispatch_within(x): return plain({1: {x}})
def usually_re(text): return [m.group(0) for m in re.finditer(r"\d+", text)] + WORD.findall(text)
def usually_re_sub(text): return re.sub(r"(\w+)", lambda m: m.group(1).upper(), text, flags=re.I)
def usually_json(x):
    return json.loads(json.dumps({"a": x, "b": [1, 2]}, sort_keys=True, indent=2))
def usually_json_default(x): return json.dumps(CONFIG, default=dataclasses.asdict)
def usually_hashlib(x): return hashlib.sha256(str(x).encode()).hexdigest()
def usually_urllib(x):
    return urllib.parse.urlencode(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(x).query)))
def usually_decimal(x):
    with decimal.localcontext() as context:
        context.prec = 10
        return (decimal.Decimal(x) / 3).quantize(decimal.Decimal("0.01"), rounding=decimal.ROUND_HALF_UP)
def usually_zoneinfo(x):
    return dt.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).isoformat()
def usually_pandas(d):
    return d.groupby("a", as_index=False).agg(total=("b", "sum")).sort_values("total").reset_index(drop=True)
def usually_pandas_make(x):
    df = pd.DataFrame({"a": [1, 2, 3], "b": [x, x, x]})
    df["c"] = df["a"] * RATE
    df.loc[df["a"] > 1, "c"] = 0
    df = df.rename(columns=str.upper)
    return df.to_dict("records")
def usually_pandas_dates(d): return pd.to_datetime(d["a"], format="%Y-%m-%d").dt.strftime("%d/%m")
def usually_pandas_query(d): return d.query("a > 1 and b < 3")
def usually_pandas_apply(d): return d["a"].apply(lambda v: CONFIG.scaled(v)).rolling(2).mean().fillna(0)
def usually_pandas_merge(d):
    return d.merge(pd.DataFrame({"a": [1], "z": [2]}), on="a", how="left").pivot_table(index="a", values="z")
def usually_numpy(x):
    a = np.arange(10, dtype=float).reshape(2, 5)
    a[0] += x
    np.add.at(a, (0, 0), 1)
    return np.linalg.norm(a @ a.T), np.random.default_rng(3).normal(size=2).tolist()
def usually_logging(x):
    logging.getLogger(__name__).info("got %s", x)
    LOG.debug("value %r", x)
    LOG.warning("careful")
    return x
def usually_dataclass_config(x): return CONFIG.scaled(x) + len(CONFIG.names)
def usually_fstring_dataclass(x): return f"{CONFIG} {CONFIG!r} {Point(1, 2)} {Version(1, 2)}"
def usually_property(x): return CONFIG.label
def usually_lru(x): return fib(x) + len(slug("A b"))
def usually_local_lru(x):
    @functools.lru_cache
    def inner(k):
        return k if k < 2 else inner(k - 1) + inner(k - 2)

    return inner(x)
def usually_lock(x):
    with LOCK:
        return x + 1
def usually_counter(text): return Counter(text.split()).most_common(3)
def usually_defaultdict(rows):
    groups = defaultdict(list)
    for k, v in rows:
        groups[k].append(v)
    return {k: sum(v) for k, v in groups.items()}
def usually_nested_defaultdict(rows):
    out = defaultdict(lambda: defaultdict(int))
    for a, b in rows:
        out[a][b] += 1
    return {k: dict(v) for k, v in out.items()}
def usually_path(x):
    return (Path(x).parent / (Path(x).stem + ".txt")).as_posix(), Path(x).suffix
def usually_enum(x):
    return Colour(x).name, Colour["RED"].value, [c.name for c in Colour], Flags.A | Flags.B
def usually_namedtuple(x): return Pair(x, 1)._replace(right=2)._asdict(), Row("a")._asdict()
def usually_suppress(x):
    with contextlib.suppress(ValueError, KeyError):
        return int(x)
    return None
def usually_itertools(x):
    return (
        list(itertools.chain.from_iterable(itertools.combinations(range(x), 2))),
        list(itertools.accumulate(range(x), operator.mul)),
        [(k, list(g)) for k, g in itertools.groupby("aab")],
    )
def usually_statistics(x): return statistics.mean(x), statistics.pstdev(x), statistics.quantiles(x)
def usually_textwrap(x): return textwrap.dedent(textwrap.fill(x, 20)), textwrap.shorten(x, 10)
def usually_template(x):
    return string.Template("Hello $name").substitute(name=x), string.Template("$a").safe_substitute({"a": 1})
def usually_ordereddict(x):
    d = OrderedDict(sorted(x.items()))
    d.move_to_end("a")
    return list(d)
def usually_uuid5(x): return str(uuid.uuid5(uuid.NAMESPACE_URL, x))
def usually_base64(x):
    return base64.b64encode(x.encode()).decode(), base64.urlsafe_b64decode("YQ==")
def usually_struct(x): return struct.unpack("<IH", struct.pack("<IH", x, 2))
def usually_replace(x):
    return dataclasses.replace(CONFIG, rate=x), dataclasses.asdict(CONFIG), dataclasses.replace(ORIGIN, x=x)
def usually_deepcopy(x):
    c = copy.deepcopy(CONFIG)
    c.names.append(x)
    return c
def usually_typing(x: typing.Optional[int]) -> typing.Any: return typing.cast(int, x) + 1
def usually_warn(x):
    warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
    return x
def usually_heapq(x):
    heap = list(x)
    heapq.heapify(heap)
    heapq.heappush(heap, 3)
    return heapq.nsmallest(2, heap), bisect.bisect_left(sorted(x), 3)
def usually_deque(x):
    window = deque(maxlen=3)
    out = []
    for v in x:
        window.append(v)
        out.append(sum(window) / len(window))
    return out
def usually_csv(text): return [row for row in csv.DictReader(io.StringIO(text))]
def usually_csv_write(rows):
    out = io.StringIO()
    w = csv.writer(out)
    w.writerows(rows)
    return out.getvalue()
def usually_html(x): return html.escape(x), html.unescape(x)
def usually_unicode(x): return unicodedata.normalize("NFKD", x).encode("ascii", "ignore").decode()
def usually_difflib(x):
    return difflib.SequenceMatcher(None, x, "abc").ratio(), difflib.get_close_matches(x, ["abc"])
def usually_fraction(x): return fractions.Fraction(x).limit_denominator(10)
def usually_zlib(x): return zlib.crc32(zlib.compress(x.encode()))
def usually_hmac(x): return hmac.new(b"k", x.encode(), "sha256").hexdigest()
def usually_reduce(x):
    return functools.reduce(operator.add, x, 0), functools.reduce(lambda a, b: a * b, x)
def usually_sorted(rows):
    return (
        sorted(rows, key=operator.itemgetter("a")),
        sorted(rows, key=lambda r: (-r["b"], r["a"])),
        max(rows, key=operator.attrgetter("x")),
    )
def usually_map(x): return list(map(str.strip, filter(None, x))), list(map(TABLE.get, x))
def usually_partial(x):
    return functools.partial(int, base=2)(x), list(map(functools.partial(operator.mul, 3), [1, 2]))
def usually_datetime(x):
    return (dt.datetime.strptime(x, "%Y-%m-%d") + dt.timedelta(days=3)).date().isoformat(), dt.date.fromisoformat(
        x
    ).weekday()
def usually_abc(x): return Square(x).area(), {Square(1), Square(1)}, repr(Square(2))
def usually_operators(x):
    return (UNIT @ UNIT)[0], len(UNIT), 1 in UNIT, [row for row in UNIT], bool(UNIT), ORIGIN + Point(1, 1)
def usually_missing(x): return NAMES[x]
def usually_prop(x): return TEMP.f
def usually_with(x):
    with TEMP as t:
        return t.f
def usually_cached_property(rows): return Report(rows).total
def usually_contextmanager(x):
    out = []
    with bracket(out):
        out.append(x)
    return "".join(out)
def usually_decorated(x): return doubled(x)
def usually_singledispatch(x): return shown(x)
def usually_versions(x):
    return sorted([Version(2, 0), Version(1, 1)]), Version(1, 2) < Version(2, 0)
def usually_random(x): return random.Random(3).sample(range(10), 3)
def usually_class_inside(x):
    class Node:
        def __init__(self, v):
            self.v = v
            self.children = []

        def add(self, c):
            self.children.append(c)
            return self

    return len(Node(1).add(Node(2)).children)
def usually_exception(x):
    try:
        return 1 / x
    except ZeroDivisionError as error:
        LOG.exception("failed")
        raise ValueError(f"bad {x}") from error
def usually_generator(x):
    def squares(n):
        for i in range(n):
            yield i * i

    return sum(squares(x)), next(squares(3))
def usually_string(x):
    return (
        x.translate(str.maketrans("ab", "xy")).title().center(20, "*"),
        "%s %5.2f" % (x, 1.0),
        "{:>10}".format(x),
        "{0.rate}".format(CONFIG),
    )
def usually_math(x):
    return math.sqrt(x), math.comb(5, 2), math.isclose(x, 1.0), round(x, 2), divmod(7, 2)
def usually_walrus(x): return [y for v in x if (y := v * 2) > 2]
def usually_match(x):
    match x:
        case Point(x=0, y=yy):
            return yy
        case {"a": v, **rest}:
            return v, rest
        case [first, *others]:
            return first, others
        case str() as s:
            return s
        case _:
            return None
def usually_print(x):
    print(f"working on {x}")
    return x
def usually_ip(x): return str(ipaddress.ip_network(x).network_address)
def usually_set(x): return sorted({1, 2} | set(x)), frozenset(x) & {1}
def usually_isinstance(x): return isinstance(x, (int, float)) and not isinstance(x, bool)
def usually_global_table(x): return TABLE[x], TABLE.get(x, 0), {**TABLE, "c": 3}
def usually_chain(x): return collections.ChainMap({"a": 1}, TABLE)["b"]
def usually_simple_namespace(x): return types.SimpleNamespace(a=x, b=2).a
def usually_zip(x):
    return dict(zip("abc", x, strict=False)), list(enumerate(x, 1)), any(x), all(x)
def usually_getattr(x):
    return getattr(CONFIG, "rate", 0), hasattr(CONFIG, "names"), vars(CONFIG)["rate"]
def usually_interp(x):
    return np.interp(x, [0, 1], [0, 10]), np.where(np.array([1, 2]) > 1, 1, 0).sum(), np.percentile([1, 2, 3], 50)
def usually_str_of_path(x): return str(Path("a") / x)
def usually_fields(x): return [f.name for f in dataclasses.fields(CONFIG)]
def usually_int_parse(x): return int(x, 16), float("1e3"), complex(1, 2), bytes.fromhex("ff")
def usually_total(x): return sum(1 for _ in x), min(x, default=0)
# fmt: on


USUAL = [value for name, value in list(globals().items()) if name.startswith("usually_")]
NOT_PICKLED = {
    "usually_lock",
    "usually_cached_property",
    "usually_singledispatch",
    "usually_dispatch_within",
}  # hold what cannot be


@pytest.mark.parametrize("function", USUAL, ids=lambda each: each.__name__)
def test_usual_bodies_are_not_refused(function):
    assert outcome_of(function).refusals == ()


@pytest.mark.parametrize("function", USUAL, ids=lambda each: each.__name__)
def test_nor_are_copies_of_them(function):
    """Engines get pickled copies of functions of scripts, with the classes they use."""
    cloudpickle = pytest.importorskip("cloudpickle")
    if function.__name__ in NOT_PICKLED:
        pytest.skip("cannot be pickled")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        copy = pickle.loads(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert outcome_of(copy).refusals == ()
