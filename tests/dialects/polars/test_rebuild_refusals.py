"""What stands in the way of making a deleted result again, and is told; and what recipes do not hold."""

import os
import zlib
from types import SimpleNamespace

import msgspec
import polars as pl
import pytest
from tests.dialects.polars.projects import MAIN, QUERY, PolarsProject, simple
from tests.recipes.projects import reasons_of, write_distribution

from nectar.dialects.polars.keying import _text
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.recipe import _scans
from nectar.dialects.polars.scans import Source, without_secrets
from nectar.recipes.rebuild import rebuild
from nectar.recipes.recipe import Package, found_by, recipes_of


@pytest.fixture
def project(tmp_path):
    return PolarsProject(tmp_path)


# what stands in the way


def test_inputs_that_are_gone_or_changed_are_named(project):
    project.environment["NECTAR_IDENTITY"] = "content"
    data, other = project.data(), project.data("b.parquet", start=500)
    project.write(
        steps=QUERY % f"pl.concat([pl.scan_parquet('{data}'), pl.scan_parquet('{other}')]).filter(pl.col('a') > 3)",
        main=MAIN,
    )
    project.run()
    key, before = project.evict_one()
    text = other.read_bytes()
    other.unlink()
    reasons = reasons_of(project, key)
    assert reasons == (f"the file {other} is gone", "1 of 2 files are what they were")
    project.data("b.parquet", rows=51)
    assert f"the file {other} was changed: it had {len(text)} bytes" in reasons_of(project, key)[0]
    same_size = bytearray(text)
    same_size[10] ^= 1
    other.write_bytes(same_size)
    assert "was rewritten, replaced or touched" in reasons_of(project, key)[0]
    other.write_bytes(text)  # known by its content, which is what it was
    _, after = project.rebuild(key)
    assert after.equals(before)


def test_a_function_whose_pickle_is_not_what_it_is_cannot_be_rebuilt(project):
    forgetful = (
        "class Scorer:\n    def __init__(self):\n        self.weight = 2\n"
        "    def __getstate__(self):\n        return {}\n"
        "    def __setstate__(self, state):\n        self.weight = 1\n"
        "    def __call__(self, x):\n        return x * self.weight\nchange = Scorer()\n"
    )
    _, key, _ = simple(project, function=forgetful)
    assert reasons_of(project, key)


def of_another_engine(recipe):
    return msgspec.structs.replace(
        recipe, environment=msgspec.structs.replace(recipe.environment, engine_version="2.0.99")
    )


def test_another_environment_is_refused_unless_it_is_allowed(project):
    _, key, before = simple(project)
    project.change_recipe(key, of_another_engine)
    reasons = reasons_of(project, key)
    assert reasons[0] == f"it was made by Polars 2.0.99, and this is Polars {pl.__version__}"
    assert "--allow-environment-change" in reasons[1]
    done, after = project.rebuild(key, allow_environment_change=True)
    assert done.changes == reasons[:1]
    assert after.equals(before)


def test_an_older_recipe_of_the_same_key_is_run_where_the_latest_cannot_be(project):
    _, key, before = simple(project)
    project.change_recipe(key, of_another_engine, alone=False)
    done, after = project.rebuild(key)
    assert not done.changes
    assert after.equals(before)


def test_in_another_environment_another_result_is_not_taken_for_the_old_one(project):
    def change(recipe):
        checksum = msgspec.structs.replace(recipe.checksum, exact=bytes(32))
        return msgspec.structs.replace(of_another_engine(recipe), checksum=checksum)

    _, key, before = simple(project)
    project.change_recipe(key, change)
    (reason,) = reasons_of(project, key, allow_environment_change=True)
    assert "it may differ" in reason
    assert not project.keys()


def test_another_version_of_a_package_is_refused_unless_it_is_allowed(project):
    def change(recipe):
        packages = tuple(
            msgspec.structs.replace(package, version="0.0.1") if package.name == "toolz" else package
            for package in recipe.packages
        )
        return msgspec.structs.replace(recipe, packages=packages)

    _, key, before = simple(project, head="import toolz\n", function="def change(x):\n    return toolz.identity(x)\n")
    project.change_recipe(key, change)
    assert reasons_of(project, key)[0].startswith("change (steps.py:3) needs toolz 0.0.1, and ")
    done, after = project.rebuild(key, allow_environment_change=True)
    assert after.equals(before)


def test_a_function_of_a_package_that_is_not_installed_any_more(project):
    installed = project.root / "site-packages"
    write_distribution(installed, "sparkle", "1.2", {"sparkle.py": "def shine(x):\n    return x + 5\n"})
    project.environment["PYTHONPATH"] += os.pathsep + str(installed)
    _, key, before = simple(project, head="import sparkle\n", function="def change(x):\n    return sparkle.shine(x)\n")
    with project.catalog() as catalog:
        recipe = recipes_of(catalog, key)[0].recipe
        assert Package("sparkle", "1.2", "sparkle", "change (steps.py:3)") in recipe.packages
        assert [module.name for module in recipe.modules] == ["steps"]
    reasons = reasons_of(project, key)  # this process, and so the one it starts, does not have it
    assert reasons == ("change (steps.py:3) needs sparkle 1.2, which is not installed: pip install 'sparkle==1.2'",)


def test_code_that_its_text_does_not_tell_is_not_run(project):
    data = project.data()
    project.write(
        steps=f"""
            import polars as pl
            LIMIT = 1
            def change(x):
                return x + LIMIT
            def query():
                global LIMIT
                LIMIT = 100
                scan = pl.scan_parquet({str(data)!r})
                return scan.with_columns(pl.col("a").map_elements(change, return_dtype=pl.Int64))
        """,
        main=MAIN,
    )
    project.run()
    key, _ = project.evict_one()
    (reason,) = reasons_of(project, key)
    assert "the step 'with_columns' is not what it was" in reason
    assert not project.keys()


def test_what_is_unknown_cannot_be_rebuilt(project):
    simple(project)
    assert "nothing is known" in reasons_of(project, bytes(32))[0]


def test_inputs_that_change_during_a_rebuild_spoil_it(project):
    marker, data = project.root / "marker", project.root / "data" / "a.parquet"
    function = (
        f"@nectar.pure\ndef change(x):\n    if os.path.exists({str(marker)!r}):\n        os.utime({str(data)!r})\n"
        "    return x\n"
    )
    _, key, _ = simple(project, head="import os\nimport nectar\n", function=function)
    marker.touch()
    (reason,) = reasons_of(project, key)
    assert "while it was read" in reason
    assert not project.keys()


def test_a_recipe_of_another_key_is_not_run(project):
    _, key, _ = simple(project)
    other = bytes(31) + b"x"
    with project.catalog() as catalog:
        found_by(catalog, other, recipes_of(catalog, key)[0].identity)
        assert recipes_of(catalog, other) == []
    assert "nothing is known" in reasons_of(project, other)[0]


def test_a_function_that_fails_is_told(project):
    marker = project.root / "marker"
    function = (
        f"@nectar.pure\ndef change(x):\n    if os.path.exists({str(marker)!r}):\n"
        "        raise ValueError('broken on purpose')\n    return x\n"
    )
    _, key, _ = simple(project, head="import os\nimport nectar\n", function=function)
    marker.touch()
    (reason,) = reasons_of(project, key)
    assert "broken on purpose" in reason
    assert not project.keys()


# secrets


def with_secrets(path):
    """A scan of a local file with options that grant access elsewhere, which Polars leaves out by itself."""
    remote = Plan.of(pl.scan_parquet("s3://bucket/x", storage_options={"aws_secret_access_key": "CANARY"}))
    local = Plan.of(pl.scan_parquet(path))
    options = remote.steps[0].body["unified_scan_args"]["cloud_options"]
    arguments = {**local.steps[0].body["unified_scan_args"], "cloud_options": options}
    return local.with_step("Scan", {**local.steps[0].body, "unified_scan_args": arguments})


def test_credentials_are_in_no_recipe(enabled, tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(path)
    lf = with_secrets(path).filter(pl.col("a") > 1)
    assert b"CANARY" in lf.serialize()
    assert lf.collect()["a"].to_list() == [2, 3]
    enabled.settle()
    catalog = enabled.catalog
    (entry,) = catalog.index.entries()
    assert entry.rebuildable
    parts = catalog.index._index._read(lambda rows: rows.execute("SELECT content FROM recipe_parts").fetchall())
    assert len(parts) >= 2
    assert not [part for (part,) in parts if b"CANARY" in zlib.decompress(part)]
    catalog.discard([entry])
    assert rebuild(catalog, entry.key, enabled.settings).rows == 2


def test_a_scan_without_secrets_has_none_in_its_paths_either():
    secret = "https://user:CANARY@example.org/x.parquet?token=CANARY&part=1"
    plan = Plan.of(pl.scan_parquet("s3://bucket/x.parquet"))
    body = {**plan.steps[0].body, "sources": {"Paths": [{"inner": secret}]}}
    plan = Plan.of(plan.with_step("Scan", body))
    assert b"CANARY" in plan.written(0)
    assert b"CANARY" not in plan.written(0, {0: without_secrets(plan, 0)})
    read = SimpleNamespace(sources=((0, Source(b"", (secret,)), ()),))
    (scan,) = _scans(read, {0: 0})
    assert scan.paths == ("https://example.org/x.parquet?part=1",)
    assert _text(plan.steps[0]) == "scan parquet x.parquet?part=1"
