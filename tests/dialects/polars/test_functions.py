"""Python functions in queries: run as the objects they are, looked at again, and pickled for recipes only."""

from __future__ import annotations

import gc
import io
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import types

import polars as pl
import pytest

import nectar
from nectar.keys.values import polars_functions
from nectar.recipes.recipe import recipes_of

RATE = 7
FACTORS = [2]


@pytest.fixture
def path(tmp_path):
    pl.DataFrame({"i": [1, 2, 3]}).write_parquet(tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def _mapped(path, function, dtype=pl.Int64):
    return pl.scan_parquet(path).select(pl.col("i").map_elements(function, return_dtype=dtype))


def _values(path, function, dtype=pl.Int64):
    return _mapped(path, function, dtype).collect().to_series().to_list()


def _entries(session):
    assert session.settle(30)
    return list(session.catalog.index.entries())


class Scorer:
    """As many classes do: what can be loaded again is not pickled."""

    def __init__(self, weight):
        self._weight = weight

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self._weight = 1

    def __call__(self, x):
        return x * self._weight


# the same objects


def test_an_object_is_called_and_not_a_copy_of_what_it_pickles(path, enabled):
    scorer = Scorer(5)
    assert _values(path, scorer) == _values(path, lambda x: scorer(x)) == [5, 10, 15]


def test_identities_hold(path, enabled):
    module = types.ModuleType("prices")
    exec("MISSING = object()\ndef lookup(x): return {1: 10}.get(x, MISSING)", vars(module))
    sys.modules["prices"] = module
    try:
        missing, lookup = module.MISSING, module.lookup
        assert _values(path, lambda x: lookup(x) is not missing, pl.Boolean) == [True, False, False]
    finally:
        del sys.modules["prices"]


def test_names_that_are_looked_up_by_text_are_there(path, enabled):
    assert _values(path, lambda x: eval("RATE") * x) == [7, 14, 21]


@pytest.mark.parametrize("way", ["collect", "collect_all", "in the background", "in batches"])
def test_changes_arrive_in_the_objects_of_the_program(path, enabled, way):
    buffer, seen = bytearray(4), []
    view = memoryview(buffer)

    def touch(x):
        view[x] = 1
        seen.append(x)
        return x

    lf = _mapped(path, touch)
    for _ in range(2):
        if way == "collect_all":
            pl.collect_all([lf, lf.select(pl.col("i") + 1)])
        elif way == "in batches":
            list(lf.collect_batches())
        else:
            lf.collect() if way == "collect" else lf.collect(background=True).fetch_blocking()
    assert bytes(buffer) == b"\0\1\1\1"
    assert sorted(seen) == [1, 1, 2, 2, 3, 3]  # and each time they are called


@pytest.mark.parametrize("dtype", [pl.Object, None, pl.List(pl.Object)], ids=str)
def test_python_objects_are_given_as_without_nectar(path, enabled, dtype):
    def answer():
        try:
            return _values(path, lambda x: x if dtype == pl.List(pl.Object) else {x}, dtype)
        except Exception as error:
            return type(error)

    with nectar.reuse(off=True):
        plain = answer()
    assert answer() == answer() == plain
    assert not [entry for entry in _entries(enabled) if entry.about.startswith("select")]


def test_a_function_that_holds_a_lock_is_run_and_reused(path, enabled):
    lock = threading.Lock()

    def guarded(x):
        with lock:
            return x + 1

    assert _values(path, guarded) == [2, 3, 4]
    (entry,) = _entries(enabled)
    assert not entry.rebuildable  # it cannot be pickled, and is kept to the last
    assert _values(path, guarded) == [2, 3, 4]
    assert not nectar.last_run().computed


def test_a_lazy_frame_that_was_unpickled_runs_and_is_reused(path, enabled):
    lf = pickle.loads(pickle.dumps(_mapped(path, lambda x: x * RATE)))
    for _ in range(2):
        assert lf.collect().to_series().to_list() == [7, 14, 21]
        assert enabled.settle(30)
    assert not nectar.last_run().computed


def test_a_polars_that_pickles_in_another_way_runs_its_queries_without_caching(path, enabled, monkeypatch):
    from nectar.dialects.polars import content

    monkeypatch.setattr(content, "tokens_work", lambda: False)
    assert _values(path, lambda x: x + 1) == [2, 3, 4]
    assert "is not known" in str(nectar.explain(_mapped(path, lambda x: x + 1)))
    assert not _entries(enabled)


# looked at again


def test_what_changed_while_it_ran_is_not_kept(path, enabled, monkeypatch):
    engine = nectar.PolarsEngine("in-memory")
    factors, inner = [2], engine.inner

    class Meddling(type(inner)):
        def collect(self, lf, **options):
            factors[0] += 1
            return super().collect(lf, **options)

    query = _mapped(path, lambda x: x * factors[0])
    engine.inner = Meddling()
    assert query.collect(engine=engine).to_series().to_list() == [3, 6, 9]
    assert not _entries(enabled)
    engine.inner = inner
    assert query.collect(engine=engine).to_series().to_list() == [3, 6, 9]
    (entry,) = _entries(enabled)
    factors[0] = 2
    assert query.collect(engine=engine).to_series().to_list() == [2, 4, 6]


def test_a_variable_of_a_loop_is_kept_as_it_was(path, enabled):
    for factor in (1, 2, 3):
        FACTORS[0] = factor
        assert _values(path, lambda x: x * FACTORS[0]) == [factor, 2 * factor, 3 * factor]
    entries = _entries(enabled)
    assert len(entries) == 3
    for entry in entries:
        for written in recipes_of(enabled.catalog, entry.key):
            assert written.plan or written.recipe.refusals, "what cannot be run again is written without its plan"


# recipes


def test_no_pickle_is_read_where_the_program_runs(path, enabled):
    """Reading one runs code of the program's classes, and gives classes of a script back what they were."""
    read = []

    class Settings:
        limit = 3

        def __call__(self, x):
            return x * self.limit

        def __setstate__(self, state):
            read.append(state)

    method = Settings.__call__
    assert _values(path, Settings()) == [3, 6, 9]
    (entry,) = _entries(enabled)
    assert recipes_of(enabled.catalog, entry.key)
    Settings.limit = 9
    assert _values(path, Settings()) == [9, 18, 27]
    assert len(_entries(enabled)) == 2
    assert Settings.limit == 9
    assert Settings.__call__ is method
    assert not read


SCRIPT = """
import polars as pl
import nectar

nectar.enable(overhead="unlimited")
FACTOR = 1

class Scale:
    def times(self, x):
        return x * FACTOR

scaled = pl.col("i").map_elements(lambda x: Scale().times(x), return_dtype=pl.Int64)
pl.scan_parquet("x.parquet").select(scaled).collect()
assert nectar.session.current().settle(30)
assert nectar.last_run().parts[0].keeping == "kept", nectar.last_run().details()
FACTOR = 5
print(Scale().times(7))
"""


def test_classes_of_a_script_stay_what_they_are(path, home):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-"], input=SCRIPT, cwd=path.parent, capture_output=True, text=True,
        env={**os.environ, "NECTAR_HOME": str(home)},
    )  # fmt: skip
    assert done.stdout == "35\n", done.stderr


def test_large_functions_are_pickled_after_the_program_has_gone_on(path, enabled, monkeypatch):
    from nectar.dialects.polars import recipe

    monkeypatch.setattr(recipe, "AT_ONCE", 10)
    _values(path, lambda x: x + 1)
    (entry,) = _entries(enabled)
    assert recipes_of(enabled.catalog, entry.key)


def test_large_functions_that_changed_meanwhile_have_no_recipe(path, enabled, monkeypatch):
    from nectar.dialects.polars import recipe

    monkeypatch.setattr(recipe, "AT_ONCE", 10)
    FACTORS[0] = 2
    _values(path, lambda x: x * FACTORS[0])
    FACTORS[0] = 3
    (entry,) = _entries(enabled)
    assert not recipes_of(enabled.catalog, entry.key)
    assert not entry.rebuildable


def test_nothing_but_recipes_needs_cloudpickle(tmp_path, path):
    (tmp_path / "main.py").write_text(
        textwrap.dedent(f"""
            import sys
            sys.modules["cloudpickle"] = None
            import polars as pl, nectar
            nectar.enable(home={str(tmp_path / "home")!r}, reserve=0)
            def query():
                return pl.scan_parquet({str(path)!r}).select(pl.col("i").map_batches(lambda s: s + 1)).collect()
            query()
            from nectar import session
            assert session.current().settle(30)
            query()
            assert not nectar.last_run().computed
            print([entry.rebuildable for entry in session.current().catalog.index.entries()])
        """)
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout.strip() == "[False]", done.stderr


# nothing stays


def test_queries_leave_no_functions_behind(path, enabled):
    class Held:
        alive = 0

        def __init__(self):
            Held.alive += 1

        def __del__(self):
            Held.alive -= 1

        def __call__(self, x):
            return x

    before = len(polars_functions._table)
    for _ in range(20):
        held = Held()
        # Polars itself remembers functions of values, to warn about them.
        pl.scan_parquet(path).map_batches(lambda frame, held=held: held(frame)).collect()
    del held
    pl.scan_parquet(path).collect()  # until then the last report could still tell what the function was
    assert enabled.settle(30)
    gc.collect()
    assert Held.alive == 0
    assert len(polars_functions._table) <= before
    assert not polars_functions._writers


# all at once


class Hostile:
    """Pickling it runs a query, writes down a plan and pickles something else."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        lock = threading.Lock()
        asked = pl.scan_parquet(self.path).select(pl.col("i").map_batches(lambda s: s if lock else s)).collect()
        plan = pl.scan_parquet(self.path).map_batches(len).serialize()
        assert pickle.loads(pickle.dumps(asked.height)) == 3
        assert pl.LazyFrame.deserialize(io.BytesIO(plan)) is not None
        return Hostile, (self.path,)

    def __call__(self, x):
        return x + 1


def test_queries_pickles_and_plans_of_many_threads_do_not_meet(path, enabled):
    faults, stop = [], threading.Event()

    def query(number):
        lock = threading.Lock()
        for turn in range(10):
            with_lock = lambda x, number=number, turn=turn: x * number + turn if lock else 0
            expected = [number + turn, 2 * number + turn, 3 * number + turn]
            if _values(path, with_lock) != expected or _values(path, Hostile(path)) != [2, 3, 4]:
                faults.append(("query", number, turn))

    def pickling():
        import cloudpickle

        value = {"a": [1, 2], "f": len}
        while not stop.is_set():
            for pickled in (pickle.dumps(value), cloudpickle.dumps(lambda: value)):
                found = pickle.loads(pickled)
                if (found() if callable(found) else found) != value:
                    faults.append("pickle")

    def plans():
        while not stop.is_set():
            data = pl.scan_parquet(path).map_batches(lambda frame: frame).serialize()
            if polars_functions._function_of.__name__.encode() in data:
                faults.append("a token in a plan of others")
            pl.LazyFrame.deserialize(io.BytesIO(data)).collect_schema()

    def watched(work, *arguments):
        try:
            work(*arguments)
        except BaseException as error:
            faults.append(error)

    others = [threading.Thread(target=watched, args=(work,)) for work in (pickling, plans)]
    asking = [threading.Thread(target=watched, args=(query, number)) for number in (1, 2, 3)]
    for thread in [*others, *asking]:
        thread.start()
    for thread in asking:
        thread.join(120)
    stop.set()
    for thread in others:
        thread.join(30)
    assert not faults
    assert not any(thread.is_alive() for thread in [*others, *asking])
    assert enabled.settle(60)  # which writes plans too
    assert type(pickle.dumps).__name__ == "builtin_function_or_method"


def test_settings_count_for_arrays_that_columns_give(enabled, tmp_path):
    np = pytest.importorskip("numpy")
    pl.DataFrame({"x": [1.0, 2.0]}).write_parquet(tmp_path / "x.parquet")

    def shown():
        text = pl.col("x").map_batches(lambda s: pl.Series([str(s.to_numpy() / 3)]), return_dtype=pl.String)
        found = pl.scan_parquet(tmp_path / "x.parquet").select(text).collect().item()
        enabled.settle()
        return found

    usual = [shown(), shown()]
    assert nectar.last_run().parts[-1].outcome == "reused"
    with np.printoptions(precision=2):
        assert shown() == "[0.33 0.67]"
    assert {*usual, shown()} == {"[0.33333333 0.66666667]"}
