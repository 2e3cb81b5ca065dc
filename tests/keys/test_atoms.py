"""Atoms: equal bytes if and only if same type and same value."""

from __future__ import annotations

import datetime
import itertools
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nectar.keys.atoms import ATOMS, PACK_FROM, pack

QUIET = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
SAMPLES = [
    None, True, False, 0, 1, -1, 127, 128, -128, -129, 255, 256, 2**64, -(2**64), 0.0, -0.0, 1.0, math.inf, -math.inf,
    math.nan, QUIET, 1j, -1j, complex(0.0, -0.0), complex(-0.0, 0.0), 0j, "", "0", "a", "ab", "\ud800", "\udc80", "é",
    "e\u0301", b"", b"0", b"a", ..., NotImplemented, datetime.date(2020, 1, 1), datetime.date(2020, 1, 2),
    datetime.timedelta(0), datetime.timedelta(1), datetime.timedelta(seconds=1), datetime.timedelta(microseconds=1),
    range(0), range(1), range(0, 1, 2), range(5, 5),
]  # fmt: skip


def test_different_atoms_have_different_bytes() -> None:
    found = [ATOMS[type(value)](value) for value in SAMPLES]
    for (index, a), (other, b) in itertools.combinations(enumerate(found), 2):
        assert a != b, (SAMPLES[index], SAMPLES[other])


def test_no_atom_is_the_beginning_of_another() -> None:
    found = [ATOMS[type(value)](value) for value in SAMPLES]
    for a, b in itertools.permutations(found, 2):
        assert not b.startswith(a)


@given(st.integers(), st.integers())
def test_integers(a: int, b: int) -> None:
    assert (ATOMS[int](a) == ATOMS[int](b)) == (a == b)


@given(st.floats())
def test_floats_keep_every_bit(value: float) -> None:
    assert ATOMS[float](value)[1:] == struct.pack("<d", value)


@given(st.lists(st.text(), min_size=PACK_FROM), st.lists(st.text(), min_size=PACK_FROM))
def test_packed_strings(a: list[str], b: list[str]) -> None:
    assert (pack(a) == pack(b)) == (a == b)


@given(st.lists(st.text(st.characters(), max_size=2), min_size=PACK_FROM), st.data())
def test_packed_strings_keep_their_boundaries(values: list[str], data: st.DataObject) -> None:
    whole = "".join(values)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=len(values) - 1, max_size=len(values) - 1)))
    again = [whole[start:end] for start, end in itertools.pairwise([0, *cuts, len(whole)])]
    assert (pack(values) == pack(again)) == (values == again)


@pytest.mark.parametrize("values", [[1] * 15, [1, 1.0] * 10, [True] * 20, [None] * 20, [2**63] * 20, [b"a"] * 20])
def test_what_does_not_fit_is_not_packed(values: list[object]) -> None:
    assert pack(values) is None


def test_packed_numbers_keep_type_and_sign_of_zero() -> None:
    assert pack([0] * 20) != pack([0.0] * 20)
    assert pack([0.0] * 20) != pack([-0.0] * 20)
    assert pack([math.nan] * 20) != pack([QUIET] * 20)
