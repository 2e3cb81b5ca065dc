"""The standard library's values: what must differ, what must agree, what must be refused."""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import datetime
import decimal
import functools
import gc
import io
import itertools
import logging
import operator
import random
import re
import socket
import struct
import threading
import typing
import weakref
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest
from tests.keys.values.value_digests import digest, still, walked

from nectar.errors import UnencodableError
from nectar.keys.values.callables import dispatch_registry

UTC = datetime.timezone.utc
UTC_FILE = b"TZif" + bytes(35) + b"\x01" + bytes(3) + b"\x04" + bytes(6) + b"UTC\x00"
T = typing.TypeVar("T")


class Holder:
    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)

    def method(self) -> None: ...

    def other(self) -> int:
        return 5


def local_data(**own: Any) -> threading.local:
    data = threading.local()
    data.__dict__.update(own)
    return data


def logger(name: str, level: int = 0, **own: Any) -> logging.Logger:
    made = logging.Logger(name, level)
    made.manager = logging.root.manager
    made.__dict__.update(own)
    return made


def variable(default: Any = None, value: Any = None) -> contextvars.ContextVar[Any]:
    made = contextvars.ContextVar("v", default=default) if default is not None else contextvars.ContextVar("v")
    if value is not None:
        made.set(value)
    return made


def dead_reference() -> weakref.ref[Any]:
    holder = Holder()
    made = weakref.ref(holder)
    del holder
    gc.collect()
    return made


def moved(*keys: str) -> collections.OrderedDict[str, int]:
    made = collections.OrderedDict(a=1, b=2)
    for key in keys:
        made.move_to_end(key)
    return made


def cached(function: Callable[..., Any], size: int | None = 5, typed: bool = False) -> Any:
    return functools.lru_cache(size, typed)(function)


def one(n: int) -> int:
    return n + 1


def two(n: int) -> int:
    return n + 2


ALIVE = Holder(n=1)
ALIVE_TOO = Holder(n=2)

DIFFERENT: list[tuple[Any, Any]] = [
    (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC)),
    (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, fold=1)),
    (datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)),
    (datetime.datetime(2020, 1, 1, 0, 0, 0, 1), datetime.datetime(2020, 1, 1)),
    (datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC")), datetime.datetime(2020, 1, 1, tzinfo=UTC)),
    (zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo("Europe/Berlin")),
    (UTC, datetime.timezone(datetime.timedelta(0), "X")),
    (datetime.timezone(datetime.timedelta(hours=1)), datetime.timezone(datetime.timedelta(hours=2))),
    (datetime.time(1), datetime.time(1, fold=1)),
    (datetime.time(1), datetime.time(1, tzinfo=UTC)),
    (re.compile("a"), re.compile(b"a")),
    (re.compile("a"), re.compile("a", re.I)),
    (re.compile("a"), re.compile("b")),
    (functools.partial(one, 1), functools.partial(one, 2)),
    (functools.partial(one, 1), functools.partial(two, 1)),
    (functools.partial(one, n=1), functools.partial(one, m=1)),
    (functools.partial(one, 1), functools.partialmethod(one, 1)),
    (functools.cached_property(one), functools.cached_property(two)),
    (cached(one), cached(two)),
    (cached(one), cached(one, 6)),
    (cached(one), cached(one, None)),
    (cached(one), cached(one, 5, True)),
    (cached(one), one),
    (slice(1), slice(2)),
    (slice(1), slice(None, 1, 1)),
    (slice(0, 1), slice(False, True)),
    (property(one), property(two)),
    (property(one), property(None, one)),
    (classmethod(one), staticmethod(one)),
    (Holder(a=1).method, Holder(a=2).method),
    (Holder(a=1).method, Holder(a=1).other),
    ([].__len__, [1].__len__),
    (str.upper, str.lower),
    (str.upper, bytes.upper),
    (weakref.ref(ALIVE), dead_reference()),
    (struct.Struct("<i"), struct.Struct(">i")),
    (memoryview(b"ab"), memoryview(b"ac")),
    (memoryview(b"ab"), memoryview(bytearray(b"ab"))),
    (memoryview(b"abcd"), memoryview(b"abcd").cast("B", (2, 2))),
    (memoryview(b"abcd"), memoryview(b"abcd").cast("H")),
    (array.array("b", [1]), array.array("B", [1])),
    (array.array("b", [1]), array.array("b", [2])),
    (array.array("b"), array.array("h")),
    (list[int], list[str]),
    (list[int], typing.List[int]),  # noqa: UP006
    (tuple[int, str], tuple[str, int]),
    (int | str, int | bytes),
    (int | str, str | int),
    (typing.Optional[int], typing.Optional[str]),  # noqa: UP045
    (typing.Literal[1], typing.Literal[True]),
    (typing.Annotated[int, 1], typing.Annotated[int, 2]),
    (typing.Callable[[int], str], typing.Callable[[str], str]),
    (typing.Any, typing.NoReturn),
    (typing.List, typing.Dict),  # noqa: UP006
    (T, typing.TypeVar("T", bound=int)),
    (T, typing.TypeVar("T", covariant=True)),
    (typing.TypeVar("T", int, str), typing.TypeVar("T", int, bytes)),
    (typing.ParamSpec("P"), typing.ParamSpec("Q")),
    (typing.NewType("A", int), typing.NewType("A", str)),
    (operator.attrgetter("a"), operator.attrgetter("b")),
    (operator.attrgetter("a"), operator.itemgetter("a")),
    (operator.attrgetter("a.b"), operator.attrgetter("a", "b")),
    (operator.itemgetter(0, 1), operator.itemgetter((0, 1))),
    (operator.methodcaller("f", 1), operator.methodcaller("f", 2)),
    (operator.methodcaller("f", 1), operator.methodcaller("g", 1)),
    (operator.methodcaller("f", a=1), operator.methodcaller("f", b=1)),
    (operator.methodcaller("f", 1), operator.methodcaller("f", a=1)),
    (variable(1), variable(2)),
    (variable(1), variable()),
    (variable(1), variable(1, 2)),
    (threading.Lock(), threading.RLock()),
    (threading.Semaphore(1), threading.Semaphore(2)),
    (local_data(a=1), local_data(a=2)),
    (logger("x"), logger("y")),
    (logger("x", 10), logger("x", 20)),
    (logger("x"), logger("x", disabled=True)),
    (ValueError(1), ValueError(2)),
    (ValueError(1), TypeError(1)),
    (OSError(1, "x", "a"), OSError(1, "x", "b")),
    (StopIteration(1), StopIteration(2)),
    (SystemExit(1), SystemExit(2)),
    (moved(), moved("a")),
    (moved(), dict(moved())),
    (collections.Counter("ab"), collections.Counter("ba")),
    (collections.Counter("ab"), {"a": 1, "b": 1}),
    (collections.ChainMap({"a": 1}, {"b": 2}), collections.ChainMap({"a": 1, "b": 2})),
    (one.__code__, two.__code__),
    (random.Random(1), random.Random(2)),
    (dataclasses.field(default=1), dataclasses.field(default=2)),
    (dataclasses.field(), dataclasses.field(default=None)),
    (decimal.Decimal("1"), decimal.Decimal("1.0")),
    (decimal.Decimal("0"), decimal.Decimal("-0")),
    (decimal.Decimal("NaN"), decimal.Decimal("sNaN")),
    (decimal.Decimal("NaN"), decimal.Decimal("NaN12")),
    (decimal.Decimal("1E+1"), decimal.Decimal("10")),
    (decimal.Context(prec=5), decimal.Context(prec=6)),
    (decimal.Context(traps=[]), decimal.Context(traps=[decimal.Inexact])),
    ({"a": 1}.keys(), {"b": 1}.keys()),
    ({1: 1}.keys(), {1: 1}.values()),
    (functools.cmp_to_key(one), functools.cmp_to_key(two)),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_values_that_programs_can_tell_apart_differ(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)
    assert digest([a]) != digest([b])


AGREEING: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (lambda: re.compile("a", re.I), lambda: re.compile("a", re.IGNORECASE)),
    (lambda: [list[int], list[int]], lambda: [list[int]] * 2),
    (lambda: [int | str] * 2, lambda: [int | str, int | str]),
    (lambda: [slice(1), slice(1)], lambda: [slice(1)] * 2),
    (
        lambda: datetime.datetime(2020, 1, 1, tzinfo=UTC),
        lambda: datetime.datetime.fromisoformat("2020-01-01T00:00+00:00"),
    ),
    (lambda: memoryview(b"abcd")[1:3], lambda: memoryview(b"bc")),
    (lambda: memoryview(b"abcd")[::2], lambda: memoryview(b"ac")),
    (lambda: array.array("i", [1, 2, 3])[1:], lambda: array.array("i", [2, 3])),
    (lambda: collections.OrderedDict(a=1, b=2), lambda: moved("b")),
    (lambda: threading.Lock(), lambda: held_lock()),
    (lambda: local_data(a=1, b=2), lambda: local_data(b=2, a=1)),
    (lambda: decimal.Context(prec=5), lambda: used_context()),
    (lambda: cached(one), lambda: filled_cache()),
    (lambda: ValueError(1), lambda: raised(ValueError(1))),
    (lambda: random.Random(5), lambda: copied_random()),
]


def held_lock() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock


def used_context() -> decimal.Context:
    context = decimal.Context(prec=5)
    context.divide(decimal.Decimal(1), decimal.Decimal(3))
    return context


def filled_cache() -> Any:
    function = cached(one)
    function(3)
    return function


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def copied_random() -> random.Random:
    made = random.Random()
    made.setstate(random.Random(5).getstate())
    return made


@pytest.mark.parametrize(("a", "b"), AGREEING)
def test_how_a_value_came_about_does_not_matter(a: Callable[[], Any], b: Callable[[], Any]) -> None:
    assert digest(a()) == digest(b())


def _generator() -> Any:
    yield 1


REFUSED: list[Any] = [
    iter([1]), iter({}), iter("a"), reversed([1]), zip([1], [2], strict=True), map(one, [1]), filter(one, [1]),
    enumerate([1]), itertools.count(), itertools.chain([1]), _generator(), io.StringIO(), io.BytesIO(b"a"),
    random.SystemRandom(), weakref.proxy(ALIVE), iter(lambda: 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_what_moves_on_by_use_is_refused(value: Any) -> None:
    with pytest.raises(UnencodableError, match=r"cannot fingerprint .* at value"):
        digest([value])


def test_open_things_are_refused(tmp_path: Any) -> None:
    with open(tmp_path / "f", "w") as file, pytest.raises(UnencodableError):
        digest(file)
    with socket.socket() as made, pytest.raises(UnencodableError):
        digest(made)


def test_a_replaced_wrapped_function_is_refused() -> None:
    function = cached(one)
    function.__wrapped__ = two
    with pytest.raises(UnencodableError, match="__wrapped__"):
        digest(function)


def test_sentinels_count_by_identity() -> None:
    first, second = object(), object()
    assert digest([first, second]) != digest([first, first])
    assert digest([first, second]) == digest([second, first])


def test_zones_keep_their_identity() -> None:
    shared = zoneinfo.ZoneInfo("Europe/Paris")
    alone = zoneinfo.ZoneInfo.no_cache("Europe/Paris")
    assert digest([shared, shared]) != digest([shared, alone])


def test_the_registry_of_a_generic_function_is_found() -> None:
    @functools.singledispatch
    def generic(value: object) -> str:
        return "object"

    generic.register(int, lambda value: "int")
    registry = dispatch_registry(generic)  # type: ignore[arg-type]
    assert registry is not None
    assert set(registry) == {object, int}
    assert dispatch_registry(one) is None  # type: ignore[arg-type]


def _generic(within: object, *kinds: type) -> Any:
    @functools.singledispatch
    def generic(value: Any) -> object:
        return value

    for kind in kinds:
        generic.register(kind, lambda value: [generic(each) for each in value] + [within])
    return generic


def test_implementations_of_a_generic_function_may_use_it() -> None:
    known = digest(_generic(1, list, tuple))
    assert digest(_generic(1, tuple, list)) == known  # registered in another order
    assert digest(_generic(2, list, tuple)) != known
    assert digest(_generic(1, list, set)) != known
    assert digest(_generic(1, list)) != known


def test_deeply_shared_aliases_do_not_explode() -> None:
    alias: Any = int
    bounds: Any = 1
    method: Any = Holder().method
    for _ in range(60):
        alias = dict[alias, alias]
        bounds = slice(bounds, bounds, bounds)
        method = type(method)(method, method)
    assert len({digest(alias), digest(bounds), digest(method)}) == 3


CHANGED: list[tuple[Any, Callable[[Any], Any]]] = [
    (functools.partial(one), lambda value: value.__dict__.update(a=1)),
    (array.array("i", [1]), lambda value: value.append(2)),
    (memoryview(bytearray(b"abc")), lambda value: value.__setitem__(0, 9)),
    (variable(1), lambda value: value.set(3)),
    (local_data(a=1), lambda value: setattr(value, "a", 2)),
    (logger("x"), lambda value: value.setLevel(50)),
    (ValueError(1), lambda value: setattr(value, "args", (2,))),
    (random.Random(1), lambda value: value.random()),
    (moved(), lambda value: value.move_to_end("a")),
    (collections.Counter("ab"), lambda value: value.update("a")),
    (threading.Event(), lambda value: value.set()),
    (decimal.Context(), lambda value: setattr(value, "prec", 3)),
    ({"a": 1}, lambda value: value.update(b=1)),
]


@pytest.mark.parametrize(("value", "change"), CHANGED, ids=lambda value: type(value).__name__)
def test_the_recheck_notices_changes(value: Any, change: Callable[[Any], Any]) -> None:
    before, walk = walked(value)
    assert still(walk)
    change(value)
    assert not still(walk)
    assert digest(value) != before


def test_a_zone_from_a_file_is_refused() -> None:
    zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(UTC_FILE), key="Europe/Paris")
    with pytest.raises(UnencodableError, match="read from a file"):
        digest(zone)


def test_attributes_changed_on_the_wrapper_count() -> None:
    def function() -> None: ...

    function.rate = 1  # type: ignore[attr-defined]
    same, other = staticmethod(function), staticmethod(function)
    other.rate = 2  # type: ignore[attr-defined]
    assert digest(same) != digest(other)
