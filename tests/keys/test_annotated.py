"""What stands in annotations as a text counts where somebody asks for the types."""

import dataclasses
import inspect
import typing

import msgspec
import pytest

import nectar

Number = int
List = typing.List  # noqa: UP006 - typing keeps texts in objects of its own there


class Row:
    a: "Number"


class Typed(typing.TypedDict):
    a: "Number"


class Rows(typing.TypedDict):
    a: list["Number"]


class Older(typing.TypedDict):
    a: List["Number"]


@dataclasses.dataclass
class Data:
    a: "Number"


class Struct(msgspec.Struct):
    a: "Number"


class Nobody:
    a: "OnlyForCheckers"  # noqa: F821
    b: "not an expression"  # noqa: F722
    c: "Nobody"
    d: "typing.Any"


def annotated(a: "Number"):
    return a


ASKS = {
    "hints of a class": lambda x: [kind(x) for kind in typing.get_type_hints(Row).values()],
    "hints of a typed dict": lambda x: [kind(x) for kind in typing.get_type_hints(Typed).values()],
    "inside a list": lambda x: typing.get_type_hints(Rows),
    "inside a list of typing": lambda x: typing.get_type_hints(Older),
    "signature": lambda x: [
        each.annotation for each in inspect.signature(annotated, eval_str=True).parameters.values()
    ],
    "fields": lambda x: dataclasses.fields(Data)[0].type,
    "decoding": lambda x: msgspec.json.decode(x, type=Struct),
}


@pytest.mark.parametrize("asks", ASKS)
def test_what_a_text_stands_for_counts(asks, monkeypatch):
    function = ASKS[asks]
    before = nectar.fingerprint(function)
    monkeypatch.setitem(globals(), "Number", float)
    within = nectar.fingerprint(function)
    monkeypatch.undo()
    assert before == nectar.fingerprint(function) != within


class Inner(msgspec.Struct):
    b: int


class Outer(msgspec.Struct):
    inner: "Inner"


def test_fields_of_classes_that_texts_name_count(monkeypatch):
    def decoded(x):
        return msgspec.json.decode(x, type=Outer)

    before = nectar.fingerprint(decoded)
    other = type(Inner)("Inner", (msgspec.Struct,), {"__annotations__": {"b": str}, "__module__": __name__})
    monkeypatch.setitem(globals(), "Inner", other)
    assert nectar.fingerprint(decoded) != before


def test_it_does_not_count_where_nobody_asks(monkeypatch):
    def doubled(x):
        return 2 * annotated(x)

    before = nectar.fingerprint(doubled)
    monkeypatch.setitem(globals(), "Number", float)
    assert nectar.fingerprint(doubled) == before


def test_texts_that_mean_nothing_here_do_no_harm():
    assert nectar.fingerprint(lambda x: typing.get_type_hints(Nobody))
