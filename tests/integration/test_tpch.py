"""TPC-H at a tenth of its smallest scale: the same answers with Nectar as without, computed once and then known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import mul
from pathlib import Path

import polars as pl
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal
from tests.integration import tpch

import nectar

if not tpch.GENERATOR.exists():
    pytest.skip("tpchgen-cli is not installed", allow_module_level=True)

SCALE = 0.1
ROOT = Path(__file__).parents[2]
# Rows of answers that the parameters of a query decide, whatever the scale.
ROWS = {1: 4, 3: 10, 4: 5, 5: 5, 6: 1, 7: 4, 8: 2, 9: 25 * 7, 10: 20, 12: 2, 14: 1, 15: 1, 17: 1, 19: 1, 22: 7}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> tpch.Tables:
    return tpch.generate(tmp_path_factory.mktemp("tpch"), SCALE)


@pytest.fixture(scope="module")
def plain(tables) -> dict[int, pl.DataFrame]:
    """The answers of Polars alone."""
    return {number: query(tables).collect() for number, query in tpch.QUERIES.items()}


@dataclass(frozen=True)
class Run:
    """What a process that ran all queries got, and what became of the parts: name, outcome, kept."""

    answers: dict[int, pl.DataFrame]
    parts: dict[int, list[tuple[str, str, bool]]]

    def outcomes(self, number: int) -> Counter[str]:
        return Counter(outcome for _, outcome, _ in self.parts[number])


@dataclass(frozen=True)
class TwoRuns:
    home: Path
    first: Run
    second: Run


@pytest.fixture(scope="module")
def runs(tables, tmp_path_factory) -> TwoRuns:
    """All queries in two processes, one after the other, with one store."""
    home = tmp_path_factory.mktemp("home")
    first, second = (_run(tables, home, tmp_path_factory.mktemp("answers")) for _ in range(2))
    return TwoRuns(home, first, second)


def _run(tables: tpch.Tables, home: Path, answers: Path) -> Run:
    arguments = [str(tables.folder), str(tables.scale), str(home), str(answers)]
    command = [sys.executable, "-m", "tests.integration.tpch_run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    parts = {int(number): found for number, found in json.loads(done.stdout.splitlines()[-1]).items()}
    found = {number: pl.read_ipc(answers / f"{number}.arrow") for number in parts}
    return Run(found, parts)


def assert_same_answer(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Rows in order, types and names are equal; floats but for the order in which they were summed."""
    assert_frame_equal(found, expected, rel_tol=1e-6, abs_tol=0.0)


# the tables and the queries themselves


@pytest.mark.parametrize("name", [*tpch.GROWING, *tpch.FIXED])
def test_tables_have_the_rows_of_the_specification(tables, name):
    expected = tpch.FIXED.get(name) or round(tpch.GROWING[name] * SCALE)
    assert tables.scan(name).select(pl.len()).collect().item() == expected


def test_orders_have_one_to_seven_lines(tables):
    lines = tables.lineitem.group_by("l_orderkey").agg(pl.len()).collect()
    assert lines.height == 1_500_000 * SCALE
    assert (lines["len"].min(), lines["len"].max()) == (1, 7)


@pytest.mark.parametrize("number", ROWS)
def test_answers_have_the_rows_their_parameters_ask_for(plain, number):
    assert plain[number].height == ROWS[number]


@pytest.mark.parametrize("number", set(tpch.QUERIES) - set(ROWS))
def test_answers_are_not_empty(plain, number):
    assert 0 < plain[number].height <= 10_000


def test_the_pricing_summary_counts_every_line_once(tables, plain):
    """As Arrow sees them."""
    lines = pq.read_table(tables.folder / "lineitem.parquet", columns=["l_shipdate", "l_quantity"])
    lines = lines.filter(pc.less_equal(lines["l_shipdate"], date(1998, 9, 2)))
    assert plain[1]["count_order"].sum() == lines.num_rows
    assert plain[1]["sum_qty"].sum() == pc.sum(lines["l_quantity"]).as_py()


def test_the_forecast_is_what_arrow_computes(tables, plain):
    columns = ["l_shipdate", "l_discount", "l_quantity", "l_extendedprice"]
    lines = pq.read_table(tables.folder / "lineitem.parquet", columns=columns)
    conditions = [
        pc.greater_equal(lines["l_shipdate"], date(1994, 1, 1)),
        pc.less(lines["l_shipdate"], date(1995, 1, 1)),
        pc.greater_equal(lines["l_discount"], Decimal("0.05")),
        pc.less_equal(lines["l_discount"], Decimal("0.07")),
        pc.less(lines["l_quantity"], Decimal(24)),
    ]
    lines = lines.filter(reduce(pc.and_, conditions))
    revenue = sum(map(mul, lines["l_extendedprice"].to_pylist(), lines["l_discount"].to_pylist()))
    assert plain[6].item() == pytest.approx(float(revenue), rel=1e-9)


def test_the_distribution_of_customers_has_each_customer_once(plain):
    assert plain[13]["custdist"].sum() == tpch.GROWING["customer"] * SCALE
    without_orders = plain[13].filter(pl.col("c_count") == 0)["custdist"].item()
    assert without_orders >= tpch.GROWING["customer"] * SCALE / 3  # a third of all customers never orders


def test_large_orders_are_as_large_as_asked(plain):
    assert plain[18]["quantity"].min() > 300
    assert plain[18]["o_totalprice"].is_sorted(descending=True)


# with Nectar


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_the_first_run_gives_the_same_answer(runs, plain, number):
    assert_same_answer(runs.first.answers[number], plain[number])


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_the_first_run_computes_and_keeps(runs, number):
    outcomes = runs.first.outcomes(number)
    assert outcomes["computed"] >= 1
    assert not outcomes["uncacheable"], runs.first.parts[number]
    assert all(kept for _, outcome, kept in runs.first.parts[number] if outcome == "computed")


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_another_process_knows_the_answer(runs, plain, number):
    assert runs.second.outcomes(number) == {"reused": 1}
    assert_same_answer(runs.second.answers[number], plain[number])
    assert_frame_equal(runs.second.answers[number], runs.first.answers[number], check_exact=True)


def test_the_share_of_parts_reused_in_the_first_run_is_told(runs, record_property):
    """No two of the queries have a result in common, so whatever is reused is a part; nothing is computed in vain."""
    outcomes = sum((runs.first.outcomes(number) for number in tpch.QUERIES), Counter())
    record_property("parts_reused_in_first_run", outcomes["reused"])
    record_property("parts_in_first_run", outcomes.total())
    assert len(set(map(str, runs.first.answers.values()))) == len(tpch.QUERIES)
    assert outcomes["computed"] >= len(tpch.QUERIES)


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_what_follows_a_known_query_starts_from_its_answer(runs, tables, plain, number):
    column = plain[number].columns[-1]
    longer = tpch.QUERIES[number](tables).select(pl.col(column).head(3).reverse())
    with nectar.reuse(home=runs.home) as report:
        found = longer.collect()
    assert_same_answer(found, plain[number].select(pl.col(column).head(3).reverse()))
    assert [part.outcome for part in report.parts] == ["reused", "computed"]


def test_a_table_written_anew_is_noticed(tables, tmp_path):
    """The same program on other content: computed, and right."""
    for name in tpch.TABLES:
        (tmp_path / f"{name}.parquet").symlink_to(tables.folder / f"{name}.parquet")
    here = tpch.Tables(tmp_path, SCALE)
    with nectar.reuse(home=tmp_path / "home") as report:
        before = tpch.q22(here).collect()
    customers = pl.read_parquet(tables.folder / "customer.parquet").head(5_000)
    (tmp_path / "customer.parquet").unlink()
    customers.write_parquet(tmp_path / "customer.parquet")
    expected = tpch.q22(here).collect()
    with nectar.reuse(home=tmp_path / "home") as report:
        after = tpch.q22(here).collect()
    assert_same_answer(after, expected)
    assert after["numcust"].sum() < before["numcust"].sum()
    assert [part.outcome for part in report.parts] == ["computed"]
