"""Which rule makes a query from parts, or the reason why none does: each case is also run, while its streams grow."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars.incremental.rules import rules_for
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import Plan

ROWS = {"t": pl.Int64, "k": pl.String, "v": pl.Int64}
CASES = {
    "map_groups": (lambda a, b: a.group_by("k").map_groups(lambda group: group.head(1), ROWS), "TouchedFunction"),
    "median": (lambda a, b: a.group_by("k").agg(pl.col("v").median()), "TouchedAggregates"),
    "sum": (lambda a, b: a.group_by("k").agg(pl.col("v").sum()), "StateParts"),
    "dynamic": (lambda a, b: a.group_by_dynamic("t", every="5i").agg(pl.len()), "WindowParts"),
    "rolling": (lambda a, b: a.rolling("t", period="5i").agg(pl.len()), "WindowParts"),
    "concat": (lambda a, b: pl.concat([a, b]).group_by("k").agg(pl.len()), "StateParts"),
    "row index": (lambda a, b: a.filter(pl.col("v") > 2).with_row_index(), "RowParts"),
    "row index of a scan": (lambda a, b: a.with_row_index(), "it is a source"),
    "join": (lambda a, b: a.join(b, on="v").group_by("k").agg(pl.len()), "Rectangle"),
    "unpivot": (lambda a, b: a.unpivot("v", index="k").group_by("k").agg(pl.len()), "StateParts"),
    "no duplicates": (
        lambda a, b: a.unique("k", keep="none", maintain_order=True),
        "a row that has no duplicate in its part may have one in another, and parts do not keep those they drop",
    ),
    "from the middle": (
        lambda a, b: a.slice(3, 4), "which rows a slice from the middle takes depends on how many stand before it",
    ),
    "rows of unpivot": (
        lambda a, b: a.unpivot("v", index="k").filter(pl.col("k") == "x"),
        "rows of parts, one after the other, would stand in another order",
    ),
}  # fmt: skip


def write(folder, number):
    folder.mkdir(exist_ok=True)
    times = range(20 * number, 20 * number + 20)
    rows = {
        "t": times,
        "k": [f"{time % 7}x"[: 1 + time % 2] for time in times],
        "v": [time * 37 % 11 for time in times],
    }
    pl.DataFrame(rows).write_parquet(folder / f"{number}.parquet")


@pytest.mark.parametrize("name", CASES)
def test_the_rule_that_is_taken(tmp_path, enabled, name):
    query, expected = CASES[name]
    scans = lambda: [pl.scan_parquet(f"{tmp_path}/{side}/*.parquet") for side in "ab"]
    for number in range(4):
        write(tmp_path / "a", number)
        write(tmp_path / "b", number)
        answer = query(*scans()).collect()
        session.current().settle()
        with nectar.reuse(off=True):
            assert_frame_equal(answer, query(*scans()).collect(), check_row_order=False)
    found = keyed(Plan.of(query(*scans())), enabled.inputs)
    with nectar.reuse(off=True):
        rules = rules_for(found, enabled.catalog, False, lambda frame: frame.collect())
        parts = rules.parts_of(found.program.root)
    assert (parts if isinstance(parts, str) else type(parts).__name__) == expected
