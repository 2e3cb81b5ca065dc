"""What people put onto frames, columns and arrays of libraries counts, also where a subclass declares it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nectar.keys.call import call_of
from nectar.keys.values.bulk import added_attributes


class Measured(pd.DataFrame):
    _metadata = ["tag"]

    @property
    def _constructor(self):
        return Measured


class Named(pl.DataFrame):
    pass


class Noted(np.ma.MaskedArray):
    pass


def tag_of(x):
    return x.tag


def key(value):
    return call_of(tag_of, {"x": value}).digest


MAKERS = {
    "pandas frame": lambda: pd.DataFrame({"a": [1]}),
    "pandas series": lambda: pd.Series([1]),
    "subclass of pandas": lambda: Measured({"a": [1]}),
    "polars frame": lambda: pl.DataFrame({"a": [1]}),
    "polars series": lambda: pl.Series([1]),
    "subclass of polars": lambda: Named({"a": [1]}),
    "masked array": lambda: np.ma.masked_array([1]),
    "subclass of masked array": lambda: Noted([1]),
}


def tagged(make, tag):
    value = make()
    object.__setattr__(value, "tag", tag)
    return value


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_an_attribute_counts(make):
    keys = [key(make()), key(tagged(make, 1)), key(tagged(make, [2]))]
    assert len(set(keys)) == 3
    assert keys == [key(make()), key(tagged(make, 1)), key(tagged(make, [2]))]
    assert added_attributes(tagged(make, 1)) == ["tag"]


PICKLED_AS_THEY_ARE = ("pandas frame", "pandas series", "polars frame", "polars series", "subclass of polars")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_objects_that_were_used_are_the_same(make):
    value = make()
    repr(value), value.copy() if hasattr(value, "copy") else value.clone()
    assert key(value) == key(make())
    assert added_attributes(value) == []


@pytest.mark.parametrize("name", PICKLED_AS_THEY_ARE)
def test_objects_that_were_pickled_are_the_same(name):
    assert key(pickle.loads(pickle.dumps(MAKERS[name]()))) == key(MAKERS[name]())
