"""Functions in serialised plans: the same objects after reading, tokens for nobody else, and no longer than needed."""

from __future__ import annotations

import gc
import io
import pickle
import subprocess
import sys
import threading
import weakref

import polars as pl
import pytest

from nectar.errors import UserError
from nectar.keys.values import polars_functions
from nectar.keys.values.polars_functions import Functions, tokens_work

FRAME = pl.DataFrame({"g": [1, 1, 2], "a": [1, 2, 3]})


@pytest.fixture(autouse=True)
def _called_directly(monkeypatch):
    """Functions are called as they are; on Python 3.11 they are called through what follows them."""
    monkeypatch.setattr(polars_functions, "through", None)
    monkeypatch.setattr(polars_functions, "_IS_NEEDED", False)


class Given:
    """A function that cannot be pickled, and knows that it was called."""

    def __init__(self, gives=lambda *values: values[0]):
        self.lock = threading.Lock()
        self.view = memoryview(bytearray(1))
        self.gives = gives
        self.calls = 0

    def __call__(self, *values):
        self.calls += 1
        return self.gives(*values)


A = pl.col("a")
PLACES = {
    "elements": lambda f: FRAME.lazy().select(A.map_elements(f, return_dtype=pl.Int64)),
    "batches": lambda f: FRAME.lazy().select(A.map_batches(f, return_dtype=pl.Int64)),
    "frames": lambda f: FRAME.lazy().map_batches(f),
    "groups of frames": lambda f: FRAME.lazy().group_by("g").map_groups(f, schema=FRAME.schema),
    "groups": lambda f: FRAME.lazy().group_by("g").agg(pl.map_groups(["a"], lambda s: f(s[0]), return_dtype=pl.Int64)),
    "fold": lambda f: FRAME.lazy().select(pl.fold(pl.lit(0), f, [A, A])),
    "reduce": lambda f: FRAME.lazy().select(pl.reduce(f, [A, A])),
    "names": lambda f: FRAME.lazy().select(A.name.map(f)),
    "renamed": lambda f: FRAME.lazy().rename(f),
    "fields": lambda f: FRAME.lazy().select(pl.struct("a").name.map_fields(f)),
    "windows": lambda f: FRAME.lazy().select(A.cast(float).rolling_map(lambda s: f(s.sum()), 2)),
    "sources": lambda f: pl.LazyFrame._scan_python_function(
        schema=FRAME.schema, scan_fn=lambda *_: (iter([f(FRAME)]), False), is_pure=True
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_plan_that_is_read_back_calls_the_very_function(place):
    function, functions = Given(), Functions()
    data = functions.serialised(PLACES[place](function)._ldf.serialize_binary)
    function.calls = 0
    pl.LazyFrame.deserialize(io.BytesIO(data)).collect(engine="in-memory")
    assert function.calls > 0


def test_the_same_function_has_the_same_token_and_others_have_others():
    functions, one, other = Functions(), Given(), Given()
    assert functions.token(one) == functions.token(one) != functions.token(other)
    assert Functions().token(one) != functions.token(one)  # each ends with its own plan


def test_the_installed_polars_takes_tokens():
    assert tokens_work()


def test_others_who_pickle_meanwhile_notice_nothing():
    functions, found = Functions(), {}
    value, expected = ["of others"], pickle.dumps(["of others"])

    def in_thread():
        found["another thread"] = pickle.dumps(value)
        found["the function itself"] = pickle.loads(pickle.dumps(pickle.dumps))(value)

    def serialise(target):  # as a finaliser would, in the thread that writes
        found["this thread"] = pickle.dumps(value)
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()

    functions.serialised(serialise)
    assert found == dict.fromkeys(["this thread", "another thread", "the function itself"], expected)


def test_plans_written_while_another_is_written_have_their_own_tokens():
    outer, inner, function = Functions(), Functions(), Given()
    plan = FRAME.lazy().map_batches(function)
    data = []
    outer.serialised(lambda target: data.append(inner.serialised(plan._ldf.serialize_binary)))
    del outer
    assert pl.LazyFrame.deserialize(io.BytesIO(data[0])).collect(engine="in-memory").height == 3


def test_pickling_is_as_it_was_after_a_failure():
    before = pickle.dumps
    with pytest.raises(ZeroDivisionError):
        Functions().serialised(lambda target: 1 / 0)
    assert pickle.dumps is before
    assert not polars_functions._writers


def test_whoever_replaces_pickling_meanwhile_is_left_alone(monkeypatch):
    before, other = pickle.dumps, lambda value: b"other"
    monkeypatch.setattr(pickle, "dumps", before)  # undone whatever happens
    Functions().serialised(lambda target: setattr(pickle, "dumps", other))
    assert pickle.dumps is other


def test_a_token_ends_with_those_who_made_it():
    functions, function = Functions(), Given()
    alive = weakref.ref(function)
    token = functions.token(function)
    assert pickle.loads(token) is function
    del functions, function
    gc.collect()
    assert alive() is None
    with pytest.raises(UserError, match="the query it was part of is over"):
        pickle.loads(token)


def test_a_token_leads_to_nothing_in_another_process():
    functions = Functions()
    token = functions.token(len)
    code = f"import pickle, polars; pickle.loads({token!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert "it belongs to another process" in done.stderr


def test_a_forked_process_makes_tokens_of_its_own(monkeypatch):
    monkeypatch.setattr(polars_functions, "_process", polars_functions._process)
    functions, function = Functions(), Given()
    token = functions.token(function)
    polars_functions._forget_parent()
    assert pickle.loads(token) is function  # what was there before is still there
    assert polars_functions._process.encode() not in token


def test_expressions_and_lazy_frames_with_functions_that_cannot_be_pickled_have_fingerprints():
    from nectar.keys.outcome import outcome_of

    lock = threading.Lock()

    def made(number):
        def function(values):
            with lock:
                return values + number

        return A.map_batches(function, return_dtype=pl.Int64)

    one, same, other = (outcome_of(made(number)).digest for number in (1, 1, 2))
    assert one == same != other
    frames = [outcome_of(FRAME.lazy().select(made(number))).digest for number in (1, 1, 2)]
    assert frames[0] == frames[1] != frames[2]
