"""Recipes are made in the background, cost little room, and never cost a result."""

import types

import polars as pl

import nectar
from nectar.dialects.polars import recipe as recipes
from nectar.keys.values import polars_plans
from nectar.recipes.recipe import recipes_of


def kept(enabled):
    enabled.settle()
    return list(enabled.catalog.index.entries())


def test_a_result_is_kept_with_its_recipe(enabled, log):
    frame = pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").sum()).collect()
    (entry,) = kept(enabled)
    (written,) = recipes_of(enabled.catalog, entry.key)
    recipe = written.recipe
    assert entry.recipe == written.identity
    assert entry.rebuildable
    assert (recipe.key, recipe.program) == (entry.key, entry.program)
    assert [file.url for scan in recipe.scans for file in scan.files] == [
        str(log / "day-1.parquet"), str(log / "day-2.parquet"),
    ]  # fmt: skip
    assert recipe.checksum.rows == frame.height
    assert not recipe.ordered
    assert recipe.fixed is not None
    assert recipe.fixed != recipe.proof


def test_a_plan_that_names_its_files_needs_no_other(enabled, log):
    pl.scan_parquet([log / "day-1.parquet", log / "day-2.parquet"]).filter(pl.col("day") > 0).collect()
    (entry,) = kept(enabled)
    (written,) = recipes_of(enabled.catalog, entry.key)
    assert written.recipe.fixed is None
    assert written.recipe.ordered


def test_a_result_is_kept_although_its_recipe_fails(enabled, log, monkeypatch):
    def fail(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(recipes, "recipe_of", fail)
    frame = pl.scan_parquet(log / "*.parquet").filter(pl.col("seconds") > 3).collect()
    (entry,) = kept(enabled)
    assert entry.rows == frame.height
    assert (entry.recipe, entry.rebuildable) == (None, False)


def test_a_recipe_is_there_once_however_often_its_result_is_computed(enabled, log):
    query = pl.scan_parquet(log / "*.parquet").filter(pl.col("seconds") > 3)
    for _ in range(3):
        query.collect()
        (entry,) = kept(enabled)
        enabled.catalog.discard([entry])
    assert len(recipes_of(enabled.catalog, entry.key)) == 1


def test_parts_that_are_kept_on_the_way_have_recipes_of_their_own(enabled, log):
    for limit in (1, 2, 3, 4):
        grouped = pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").median())
        grouped.filter(pl.col("seconds") > limit).sort("page").head(limit).collect()
    entries = kept(enabled)
    parts = [entry for entry in entries if entry.about.startswith("group_by")]
    assert parts
    for entry in parts:
        (written,) = recipes_of(enabled.catalog, entry.key)
        assert written.recipe.proof.key == entry.key


def test_the_proof_of_a_part_is_the_proof_of_its_plan_alone(enabled, log):
    """What is recorded from within a larger plan is what a fresh process computes from the part."""
    from nectar.dialects.polars.keying import keyed
    from nectar.dialects.polars.plan import Plan

    left = pl.scan_parquet(log / "day-1.parquet").group_by("page").agg(pl.col("seconds").sum())
    right = pl.concat([pl.scan_parquet(log / "day-2.parquet"), pl.scan_parquet(log / "day-1.parquet")])
    whole = keyed(Plan.of(left.join(right, on="page").sort("page")), enabled.inputs)
    for number, node in enumerate(whole.program.nodes):
        made = recipes.Made(whole, number, pl.DataFrame({"a": [1]}), node.text, 0.0, (), "", None)
        written = recipes.recipe_of(enabled.inputs, made)
        alone = keyed(Plan(written.plan), enabled.inputs)
        names = {scan.step: [file.names[0] for file in scan.files] for scan in written.recipe.scans}
        assert list(names) == [number for number, _, _ in alone.sources]
        assert recipes.proof_of(alone, names).key == written.recipe.proof.key == node.key
        assert set(recipes.proof_of(alone, names).parts) == set(written.recipe.proof.parts)


def test_a_query_in_a_folder_that_is_gone_is_answered(enabled, log, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert pl.scan_parquet(log / "day-1.parquet").filter(pl.col("day") == 1).collect().height == 120
    (entry,) = kept(enabled)
    assert entry.rebuildable


def test_code_of_polars_is_known_again_where_polars_lies_elsewhere(monkeypatch):
    plan = pl.col("a").map_elements(abs, return_dtype=pl.Int64)
    assert isinstance(plan, pl.Expr)
    nested = [constant for constant in pl.Expr.map_batches.__code__.co_consts if isinstance(constant, types.CodeType)]
    wrapped = nested or [
        constant
        for constant in pl.Expr.map_batches.__wrapped__.__code__.co_consts
        if isinstance(constant, types.CodeType)
    ]
    code = wrapped[0]
    assert polars_plans._is_polars_code(code)
    moved = code.replace(co_filename="/opt/elsewhere/polars/expr/expr.py")
    assert not polars_plans._is_polars_code(moved)
    monkeypatch.setattr(polars_plans, "elsewhere", {"/opt/elsewhere/polars/"})
    assert polars_plans._is_polars_code(moved)


def test_a_folder_and_its_files_are_two_sources_where_names_are_partitions(enabled, tmp_path):
    """A folder is read with partitions and a list is not; a column of the same name shows it."""
    path = tmp_path / "parts" / "day=1" / "x.parquet"
    path.parent.mkdir(parents=True)
    pl.DataFrame({"a": [1, 2], "day": [77, 77]}).write_parquet(path)
    asked = [tmp_path / "parts", [path], tmp_path / "parts" / "**" / "*.parquet"]
    for _ in range(2):  # computed, then known
        days = [pl.scan_parquet(each).filter(pl.col("a") > 0).collect()["day"].to_list() for each in asked]
        assert days == [[1, 1], [77, 77], [77, 77]]
        enabled.settle()


def test_nothing_is_written_where_the_store_may_only_be_read(enabled, home, log):
    pl.scan_parquet(log / "day-1.parquet").filter(pl.col("day") == 1).collect()
    before = len(kept(enabled))
    nectar.enable(home=home, reserve=0, read_only=True)
    pl.scan_parquet(log / "day-2.parquet").filter(pl.col("day") == 2).collect()
    session = nectar.session.current()
    session.settle()
    assert len(list(session.catalog.index.entries())) == before
