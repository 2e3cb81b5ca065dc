"""The walk: depth, cycles, aliasing, sets, and objects that fight back."""

from __future__ import annotations

from typing import Any

import pytest

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, joined
from nectar.keys.scheme import new_hasher
from nectar.keys.values import containers
from nectar.keys.walk import Walk

DEEP = 20_000  # far more than Python's stack; test_bad_input.py goes deeper


def _expand_instance(value: Any, walk: object) -> Expansion:
    own = object.__getattribute__(value, "__dict__")
    names = sorted(own)
    return Expansion("instance", joined(type(value).__qualname__, *names), [own[name] for name in names], names)


def expander_for(kind: type) -> Expander:
    return containers.EXPANDERS.get(kind, _expand_instance)


def digest(value: object) -> bytes:
    return Walk(expander_for, new_hasher()).run(value, "value")


def nested(kind: type, depth: int, innermost: object) -> Any:
    value: Any = innermost
    for _ in range(depth):
        value = {1: value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("innermost", ["leaf"])
def test_deep_structures_need_no_deep_stack(kind: type, innermost: object) -> None:
    found = [digest(nested(kind, depth, leaf)) for depth, leaf in ((DEEP, innermost), (DEEP, 1), (DEEP - 1, innermost))]
    assert len(set(found)) == 3


def test_deep_tuples_around_something_mutable() -> None:
    assert digest(nested(tuple, DEEP, [1])) == digest(nested(tuple, DEEP, [1]))
    assert digest(nested(tuple, DEEP, [1])) != digest(nested(tuple, DEEP, [2]))


@pytest.mark.parametrize("innermost", [1, (), "x"])
def test_deep_frozensets(innermost: object) -> None:
    assert digest(nested(frozenset, 1000, innermost)) == digest(nested(frozenset, 1000, innermost))


def ring(length: int) -> list[Any]:
    first: list[Any] = [0]
    last = first
    for number in range(1, length):
        last.append([number])
        last = last[-1]
    last.append(first)
    return first


def test_cycles_end_and_count() -> None:
    assert digest(ring(3)) == digest(ring(3))
    assert digest(ring(3)) != digest(ring(4))
    own: dict[str, Any] = {}
    own["self"] = own
    other: dict[str, Any] = {"self": {}}
    assert digest(own) != digest(other)
    unrolled: dict[str, Any] = {"self": own}
    assert digest(own) != digest(unrolled)


def test_aliases_and_equals_differ() -> None:
    one: list[Any] = []
    assert digest([one, one]) != digest([one, []])
    assert digest([[], []]) == digest([one, []])
    assert digest({"a": one, "b": one}) != digest({"a": one, "b": []})


def test_tuples_have_no_identity_but_what_they_hold_has() -> None:
    pair = (1, "a")
    assert digest([pair, pair]) == digest([(1, "a"), tuple([1, "a"])])
    one: list[Any] = []
    assert digest([(one,), (one,)]) != digest([(one,), ([],)])


def test_order_of_sets_does_not_matter_and_content_does() -> None:
    assert digest({1, 9, 17}) == digest({17, 9, 1})
    assert digest({frozenset({1, 2}), frozenset({3})}) == digest({frozenset({3}), frozenset({2, 1})})
    assert digest({frozenset({1, 2}), frozenset({3})}) != digest({frozenset({1}), frozenset({3, 2})})
    assert digest({1}) != digest(frozenset({1}))
    assert digest({1}) != digest({True})
    assert digest({(1, "a"), (2, "b")}) != digest({(1, "b"), (2, "a")})


def test_dict_order_matters() -> None:
    assert digest({"a": 1, "b": 2}) != digest({"b": 2, "a": 1})


class Plain:
    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)


def test_members_of_a_set_that_cannot_be_told_apart() -> None:
    assert digest({Plain(a=1), Plain(a=1)}) == digest({Plain(a=1), Plain(a=1)})
    assert digest({Plain(a=1), Plain(a=1)}) != digest({Plain(a=1)})
    assert digest({Plain(a=1), Plain(a=1)}) != digest({Plain(a=1), Plain(a=2)})


def test_a_tied_member_that_is_used_elsewhere_is_refused_or_told_apart() -> None:
    one, two = Plain(a=1), Plain(a=1)
    with pytest.raises(UnencodableError, match="equal members of a set"):
        digest([{one, two}, one])
    assert digest([one, {one, two}]) == digest([two, {one, two}])


def test_a_set_that_reaches_itself_is_refused() -> None:
    member = Plain()
    holder = {member}
    member.back = holder
    with pytest.raises(UnencodableError, match="reached from its own members"):
        digest(holder)


class Hostile:
    """Raises on everything a program may ask of it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("getattr")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


def test_hostile_objects_are_never_asked() -> None:
    value = Hostile()
    value.__dict__["n"] = 1
    other = Hostile()
    other.__dict__["n"] = 2
    assert digest([value]) == digest([value])
    assert digest([value]) != digest([other])
    assert digest({"a": value}) != digest({"a": other})


def test_errors_name_the_object_and_the_way_to_it() -> None:
    class Bad:
        pass

    def expander(kind: type) -> Expander:
        def fail(value: object, walk: object) -> Expansion:
            raise ValueError("no way in")

        return fail if kind is Bad else expander_for(kind)

    with pytest.raises(UnencodableError, match=r"Bad at value -> \[1\] -> \['k'\].*no way in"):
        Walk(expander, new_hasher()).run([0, {"k": Bad()}], "value")


def test_the_way_to_a_deep_error_is_shortened() -> None:
    class Bad:
        pass

    def expander(kind: type) -> Expander:
        def fail(value: object, walk: object) -> Expansion:
            raise ValueError("no way in")

        return fail if kind is Bad else expander_for(kind)

    with pytest.raises(UnencodableError, match="more") as caught:
        Walk(expander, new_hasher()).run(nested(list, DEEP, Bad()), "value")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([], ()), ([], {}), ([], set()), ({}, set()), ([1, 2], [[1], 2]), ([[1], 2], [[1, 2]]), ([1, [2]], [[1], 2]),
        ([b"a"], ["a"]), (["ab", "c"], ["a", "bc"]), ([1], [True]), ([1], [1.0]), ([0.0], [-0.0]), ([None], []),
        (list(range(20)), [*range(19), 20]), ([True] * 20, [1] * 20), ([1] * 20, [1.0] * 20),
        (["a"] * 20, ["a"] * 21), (["ab", "c"] * 10, ["a", "bc"] * 10), ([2**70] * 20, [2**70 + 1] * 20),
        (dict.fromkeys(range(20), 1), dict.fromkeys(range(20), 2)), (tuple(range(20)), list(range(20))),
        (dict(zip(range(20), range(20), strict=True)), dict(zip(range(20), map(float, range(20)), strict=True))),
    ],
)  # fmt: skip
def test_boundaries_are_kept(a: object, b: object) -> None:
    assert digest(a) != digest(b)
