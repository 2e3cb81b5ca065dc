"""Numbers of categories are those of a process: what looks at them is not cached, and the rest is."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.dialects.polars.test_content import _refusal
from tests.observation.installed import forget, install

from nectar.dialects.polars.categories import NUMBERED

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[3]
KINDS = pl.Enum(["x", "y"])
LF = pl.LazyFrame(
    {"k": ["x", "y"], "b": ["x", "y"], "a": [1, 2], "d": [datetime.date(2020, 1, 1)] * 2, "l": [["x"], ["y"]]},
    schema={"k": pl.Categorical, "b": pl.String, "a": pl.Int64, "d": pl.Date, "l": pl.List(pl.Categorical)},
)
K, B, A, L = (pl.col(name) for name in "kbal")
REFUSED = {
    "of a column": LF.select(K.to_physical()), "of categories": LF.select(K.cat.physical()),
    "of a cast": LF.select(B.cast(pl.Categorical).to_physical()), "of lists": LF.select(L.to_physical()),
    "of a struct": LF.select(pl.struct("k").to_physical()),
    "within lists": LF.select(L.list.eval(pl.element().to_physical())),
    "of all columns": LF.select(pl.all().to_physical()), "of named categories": LF.select(
        B.cast(pl.Categorical(pl.Categories("cities"))).to_physical()),
    "of a type of another column": LF.select(B.cast(pl.dtype_of("k")).to_physical()),
    "of groups": LF.group_by("b").agg(K.to_physical().max()), "in a filter": LF.filter(K.to_physical() > 0),
    "in an order": LF.sort(K.to_physical()),
    "of a literal": LF.select(pl.lit(pl.Series(["x"], dtype=pl.Categorical)).to_physical()),
    "of quantiles": LF.select(A.qcut([0.5]).to_physical()),
    "in a join": LF.join(LF, left_on=K.to_physical(), right_on="a"),
    "on the right": LF.join(LF, left_on="a", right_on=K.to_physical()), "of the nearest": LF.join_asof(LF, on="k"),
    "hashes of lists": LF.select(L.hash()), "peaks": LF.select(K.peak_max()), "smallest": LF.select(K.bottom_k(1)),
    "in a condition": LF.select(pl.when(K.to_physical() > 0).then(A)),
    "in a window": LF.select(A.sum().over(K.to_physical())),
    "below": LF.select(K.to_physical()).filter(K > 0), "of functions": LF.select(
        B.map_batches(lambda column: column.cast(pl.Categorical), pl.Categorical).to_physical()),
    "in a function of a column": LF.select(K.map_batches(lambda column: column, pl.Int64)),
    "in a function of a cast": LF.select(B.cast(pl.Categorical).map_batches(lambda column: column, pl.Int64)),
    "in a function of several": LF.select(pl.map_batches(["a", "k"], lambda columns: columns[0])),
    "in a function of a frame": LF.map_batches(lambda frame: frame.select("a"), schema={"a": pl.Int64}),
    "in a function of groups": LF.group_by("a").map_groups(lambda frame: frame, schema=None),
    "in an aggregate": LF.group_by("b").agg(K.map_batches(lambda column: column.len(), pl.Int64)),
    "in a fold": LF.select(pl.fold(A, lambda one, other: one, exprs=[K])),
    "in a reduction": LF.select(pl.reduce(lambda one, other: one, exprs=[K, K])),
    "in a function of lists": LF.select(L.map_elements(lambda column: column.len(), pl.Int64)),
}  # fmt: skip
CACHED = {
    "enums": LF.select(B.cast(KINDS).to_physical()), "dates": LF.select(pl.col("d").to_physical()),
    "hashes of texts": LF.select(B.hash()), "beside": LF.select("k", B.hash(), pl.col("d").to_physical()),
    "by categories": LF.join_asof(LF, on="d", by="k"), "orders": LF.sort("k").select(K.max(), r=K.rank()),
    "groups": LF.group_by("k").agg(A.sum()),
    "intervals": LF.select(A.bin_intervals([1.0], labels=["m", "n"]).to_physical()),
    "texts of categories": LF.select(K.cast(pl.String).hash()), "smallest": LF.select(A.bottom_k(1)),
    "functions of values": LF.select(K.map_elements(lambda text: text + "!", pl.String)),
    "functions of texts": LF.select("k", B.map_batches(lambda column: column, pl.String)),
    "functions of texts in groups": LF.select("b", "a").group_by("a").map_groups(lambda frame: frame, schema=None),
    "dates in lists": LF.select(pl.concat_list("d").to_physical()),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_of_categories_are_refused(name):
    assert _refusal(REFUSED[name]) == NUMBERED


@pytest.mark.parametrize("name", CACHED)
def test_what_is_the_same_in_every_process_is_not(name):
    assert _refusal(CACHED[name]) == ""


def _programs(categories):
    script = Path(__file__).with_name("category_programs.py")
    done = subprocess.run(
        [sys.executable, str(script), categories],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def test_what_is_cached_is_the_same_in_a_process_that_met_other_categories_first():
    here, there = _programs("x,y,z,w,v"), _programs("q,v,w,z,y,x")
    cached = [name for name, (refusal, _) in here.items() if refusal == ""]
    assert len(cached) > 200
    assert [name for name in cached if here[name] != there[name]] == []
    assert here["k.to_physical"][1] != there["k.to_physical"][1]


MEMO = """
import sys
import nt_codes
import polars as pl
import nectar

keep = pl.Series(list(sys.argv[1]), dtype=pl.Categorical)
K = pl.Series(["a", "b", "c"], dtype=pl.Categorical)

@nectar.memo
def codes(column):
    return column.to_physical().to_list()

@nectar.memo
def codes_within(frame):
    return frame["l"].explode().struct.field("k").to_physical().to_list()

@nectar.memo
def codes_of_texts():
    return pl.Series(["a", "b", "c"]).cast(pl.Categorical).to_physical().to_list()

@nectar.memo
def texts(column):
    return column.cast(pl.String).to_list()

def said(found):
    part = nectar.last_run().parts[-1]
    print(found, part.outcome)

@nectar.memo
def codes_of_plan(plan):
    return plan.select(pl.col("k").to_physical()).collect()["k"].to_list()

@nectar.memo
def codes_of_expression(expression):
    return pl.select(expression.to_physical()).to_series().to_list()

@nectar.memo
def codes_by_library(column):
    return nt_codes.codes(column)

said(codes(K))
said(codes_of_plan(pl.LazyFrame({"k": K})))
said(codes_of_expression(pl.lit(K)))
said(codes_by_library(K))
nested = pl.List(pl.Struct({"k": pl.Categorical}))
said(codes_within(pl.DataFrame({"l": [[{"k": "a"}], [{"k": "c"}]]}, schema={"l": nested})))
said(codes_of_texts())
said(texts(K))
"""


def test_memoised_functions_that_look_at_numbers_know_them(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nt_codes", {"nt_codes.py": "def codes(s):\n    return s.to_physical().to_list()\n"})
    forget("nt_codes")
    path = os.pathsep.join(sys.path)

    def said(order):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MEMO, order],
            env={**os.environ, "NECTAR_HOME": str(tmp_path / "home"), "PYTHONPATH": path},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    texts = "['a', 'b', 'c']"
    first, other, again = ["[0, 1, 2] computed"] * 4, ["[2, 1, 0] computed"] * 4, ["[0, 1, 2] reused"] * 4
    assert said("abc") == [*first, "[0, 2] computed", "[0, 1, 2] uncacheable", f"{texts} computed"]
    assert said("cba") == [*other, "[2, 0] computed", "[2, 1, 0] uncacheable", f"{texts} reused"]
    assert said("abc") == [*again, "[0, 2] reused", "[0, 1, 2] uncacheable", f"{texts} reused"]
