"""Deleted results are made again by their recipes, in fresh processes and without the files of the program."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import polars as pl
import pytest

from nectar.catalog.embedded import open_catalog
from nectar.dialects.polars.keying import _text
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.recipe import _scans
from nectar.dialects.polars.scans import Source, without_secrets
from nectar.errors import NectarWarning, RebuildError
from nectar.recipes.rebuild import rebuild, rebuilt
from nectar.recipes.recipe import Package, found_by, put, recipes_of
from nectar.settings import Settings
from nectar.store.read import Result

SOURCE = Path(__file__).parents[3] / "src"


class Project:
    """A program in a folder of its own, run in processes of its own, and the store it uses."""

    def __init__(self, root):
        self.root = root
        self.folder = root / "project"
        self.folder.mkdir()
        self.settings = Settings(home=root / "home", reserve=0)
        self.environment = {
            **os.environ, "NECTAR_HOME": str(self.settings.home), "NECTAR_RESERVE": "0", "PYTHONPATH": str(SOURCE),
        }  # fmt: skip

    def write(self, **texts):
        for name, text in texts.items():
            path = self.folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, *arguments, fails=False):
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert fails or done.returncode == 0, done.stderr
        return done

    def nectar(self, *arguments, fails=False):
        return self.python("-m", "nectar.cli", *arguments, fails=fails)

    def run(self):
        """Runs the program, which prints nothing but the values of its result; returns those."""
        return json.loads(self.nectar("run", "main.py").stdout)

    def data(self, name="a.parquet", rows=50, start=0):
        path = self.root / "data" / name
        path.parent.mkdir(exist_ok=True)
        frame = pl.DataFrame({"a": range(start, start + rows), "g": [each % 3 for each in range(rows)]})
        frame.write_parquet(path)
        return path

    def lose_sources(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def catalog(self):
        return open_catalog(self.settings)

    def keys(self):
        with closing_catalog(self) as catalog:
            return {entry.about.partition(" ")[0]: entry.key for entry in catalog.index.entries()}

    def evict(self):
        """Deletes everything; returns what was there, by key."""
        with closing_catalog(self) as catalog:
            entries = list(catalog.index.entries())
            frames = {entry.key: read(catalog, entry) for entry in entries}
            assert catalog.discard(entries) == len(entries)
            return frames

    def change_recipe(self, key, change, alone=True):
        """The latest recipe of a key is another one. alone: those it had are forgotten."""
        with closing_catalog(self) as catalog:
            written = recipes_of(catalog, key)[0]
            if alone:
                forget = "DELETE FROM versions WHERE label LIKE 'recipe %'"
                catalog.index._write("forget", lambda rows: rows.execute(forget))
            time.sleep(0.01)  # the latest counts
            found_by(catalog, key, put(catalog, replace(written, recipe=change(written.recipe))))

    def rebuild(self, key, **options):
        with closing_catalog(self) as catalog:
            done = rebuilt(catalog, key, self.settings, **options)
            return done, read(catalog, done.entry)


class closing_catalog:
    def __init__(self, project):
        self.catalog = project.catalog()

    def __enter__(self):
        return self.catalog

    def __exit__(self, *_):
        self.catalog.close()


def read(catalog, entry):
    opened = catalog.open(entry)
    assert isinstance(opened, Result)
    return opened.to_polars().clone()


QUERY = "import polars as pl\ndef query():\n    return %s\n"
MAIN = """
    import json
    import polars as pl
    from steps import query
    if __name__ == "__main__":
        print(json.dumps(query().collect().rows()))
"""


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def only(frames):
    ((key, frame),) = frames.items()
    return key, frame


def reasons_of(project, key, **options):
    with pytest.raises(RebuildError) as raised:
        project.rebuild(key, **options)
    return raised.value.reasons


# getting it back


def test_a_program_with_code_of_many_kinds_is_run_again_without_its_files(project):
    data = project.data()
    package = {
        "app/__init__": "",
        "app/deep/__init__": "FACTOR = 2",
        "app/helpers": "from app.deep import inner\nLIMIT = 3\ndef clean(x):\n    return inner.twice(x) + LIMIT\n",
        "app/deep/inner": "from . import FACTOR\nfrom .shape import Shape\n"
        "def twice(x):\n    return Shape(x).area() * FACTOR\n",
        "app/deep/shape": "class Shape:\n    def __init__(self, side):\n        self.side = side\n"
        "    def area(self):\n        return self.side * self.side\n",
    }
    project.write(**package)
    project.write(
        main=f"""
            import json
            import polars as pl
            from app import helpers
            OFFSET = 7
            SCALE = {{"one": 1.5}}
            class Box:
                def __init__(self, value):
                    self.value = value
                def get(self):
                    return self.value * SCALE["one"] + OFFSET
            def local(x):
                return Box(helpers.clean(x)).get()
            query = pl.scan_parquet({str(data)!r}).with_columns(
                b=pl.col("a").map_elements(lambda v: local(v), return_dtype=pl.Float64),
                c=pl.col("a").map_elements(helpers.clean, return_dtype=pl.Int64),
            )
            print(json.dumps(query.collect().rows()))
        """
    )
    rows = project.run()
    key, before = only(project.evict())
    assert not project.keys()
    project.lose_sources()
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert after.equals(before)
    assert after.schema == before.schema
    assert [list(row) for row in after.rows()] == rows
    again, same = project.rebuild(key)  # it is there now
    assert not again.made
    assert same.equals(before)


def test_relative_paths_begin_where_the_program_ran(project):
    project.data()
    project.write(
        steps=QUERY % "pl.scan_parquet('../data/a.parquet').filter(pl.col('a') > 3)",
        main=MAIN,
    )
    project.run()
    key, before = only(project.evict())
    done, after = project.rebuild(key)
    assert after.equals(before)


def test_files_that_came_later_do_not_belong_to_an_old_result(project):
    data = project.data().parent
    project.write(
        steps=QUERY % f"pl.scan_parquet('{data}/*.parquet').filter(pl.col('a') > 3)",
        main=MAIN,
    )
    project.run()
    key, before = only(project.evict())
    project.data("b.parquet", start=1000)
    done, after = project.rebuild(key)
    assert not done.difference
    assert after.equals(before)


def test_partitions_of_a_folder_are_read_as_they_were(project):
    for value in (1, 2):
        path = project.root / "parts" / f"day={value}" / "x.parquet"
        path.parent.mkdir(parents=True)
        pl.DataFrame({"a": [value, 10], "day": [77, 77]}).write_parquet(path)
    project.write(
        steps=QUERY % f"pl.scan_parquet('{project.root}/parts').filter(pl.col('a') > 0)",
        main=MAIN,
    )
    assert sorted(day for _, day in project.run()) == [1, 1, 2, 2]
    key, before = only(project.evict())
    later = project.root / "parts" / "day=3" / "x.parquet"
    later.parent.mkdir()
    pl.DataFrame({"a": [5], "day": [77]}).write_parquet(later)
    done, after = project.rebuild(key)
    assert after.equals(before)


def test_parts_that_are_still_known_are_reused(project):
    data = project.data()
    counter = project.root / "counter"
    project.write(
        steps=f"""
            import polars as pl
            import nectar
            @nectar.pure
            def slow(x):
                with open({str(counter)!r}, "a") as file:
                    file.write("x")
                return x + 1
            def part():
                slowly = pl.col("a").map_elements(slow, return_dtype=pl.Int64)
                return pl.scan_parquet({str(data)!r}).with_columns(b=slowly).sort("b")
            def query():
                return part().filter(pl.col("b") > 3)
        """,
        main="""
            import json
            import nectar
            from steps import part, query
            part().collect()
            nectar.session.current().settle()
            print(json.dumps(query().collect().rows()))
        """,
    )
    project.run()
    assert counter.stat().st_size == 50
    key = project.keys()["filter"]
    with closing_catalog(project) as catalog:
        catalog.discard(catalog.index.lookup([key]).values())
    project.lose_sources()
    done, after = project.rebuild(key)
    assert done.made
    assert after.height == 47
    assert counter.stat().st_size == 50


def test_results_over_files_that_programs_wrote_are_rebuilt_three_deep(project):
    data = project.data()
    first, second = project.root / "first.parquet", project.root / "second.parquet"
    project.write(
        steps=f"""
            import polars as pl
            def step(x):
                return x * 2
            def doubled(path):
                scan = pl.scan_parquet(path)
                return scan.with_columns(pl.col("a").map_elements(step, return_dtype=pl.Int64))
            def query():
                doubled({str(data)!r}).sink_parquet({str(first)!r})
                doubled({str(first)!r}).sink_parquet({str(second)!r})
                return doubled({str(second)!r})
        """,
        main=MAIN,
    )
    project.run()
    key, before = only(project.evict())
    project.lose_sources()
    _, after = project.rebuild(key)
    assert after.equals(before)
    assert after["a"].to_list() == [each * 8 for each in range(50)]
    project.evict()
    second.unlink()
    assert reasons_of(project, key)[0] == f"the file {second} is gone"


def test_queries_of_frames_in_memory_need_no_files(project):
    project.write(
        steps=QUERY % "pl.LazyFrame({'a': [3, 1, 2]}).sort('a').with_columns(b=pl.col('a') * 2)",
        main=MAIN,
    )
    rows = project.run()
    key, before = only(project.evict())
    project.lose_sources()
    done, after = project.rebuild(key)
    assert [list(row) for row in after.rows()] == rows


MANY = """
    import json
    import sys
    import polars as pl
    from kinds import Adder, each_name, largest, widen
    folder = sys.argv[1]
    parquet, csv = f"{folder}/a.parquet", f"{folder}/a.csv"
    pl.read_parquet(parquet).write_csv(csv)
    pl.read_parquet(parquet).write_ndjson(f"{folder}/a.ndjson")
    pl.read_parquet(parquet).write_ipc(f"{folder}/a.arrow")
    scan = pl.scan_parquet(parquet)
    names = pl.LazyFrame({"g": [0, 1, 2], "name": ["zero", "one", "two"]})
    kept = {
        "rows": scan.filter(pl.col("a") > 3).with_columns(b=pl.col("a") * 0.5),
        "csv": pl.scan_csv(f"{folder}/*.csv").filter(pl.col("a") > 4),
        "ndjson": pl.scan_ndjson(f"{folder}/a.ndjson").filter(pl.col("a") > 4),
        "ipc": pl.scan_ipc(f"{folder}/*.arrow").filter(pl.col("a") > 4),
        "join with memory": scan.join(names, on="g", how="left", maintain_order="left"),
        "concat": pl.concat([scan, pl.scan_parquet(f"{folder}/*.parquet"), scan.head(3)]).filter(pl.col("a") < 30),
        "diamond": scan.join(scan.group_by("g").agg(pl.col("a").max().alias("most")), on="g").sort("a"),
        "with paths": pl.scan_parquet(f"{folder}/*.parquet", include_file_paths="path", row_index_name="n"),
        "groups": scan.group_by("g").map_groups(largest, schema=None).sort("g"),
        "whole frame": scan.map_batches(widen),
        "callable object": scan.with_columns(pl.col("a").map_batches(Adder(5), return_dtype=pl.Int64)),
        "fold": scan.select(pl.fold(pl.lit(0), lambda total, x: total + x, [pl.col("a"), pl.col("g")]).alias("t")),
        "names": scan.select(pl.all().name.map(each_name)).filter(pl.col("x_a") > 2),
        "constants": scan.filter(pl.col("a").is_in([1, 2, 3])).with_columns(c=pl.lit(float("nan")), d=pl.lit(b"x")),
        "pivot": scan.head(6).pivot(on="g", on_columns=[0, 1, 2], index="a", values="a", aggregate_function="first"),
    }
    print(json.dumps({name: query.collect().height for name, query in kept.items()}))
"""
ALL_AT_ONCE = """
    import json
    import sys
    from pathlib import Path
    from nectar.catalog.embedded import open_catalog
    from nectar.dialects.polars.rebuild import run
    from nectar.settings import Settings
    settings = Settings(home=Path(sys.argv[1]), reserve=0)
    answers = [run(settings, bytes.fromhex(key), False) for key in sys.argv[2:]]
    print(json.dumps([[list(answer.reasons), answer.difference] for answer in answers]))
"""


def test_queries_of_all_kinds_prove_themselves_in_another_process(project):
    folder = project.data().parent
    project.write(
        kinds="""
            import polars as pl
            class Adder:
                def __init__(self, more):
                    self.more = more
                def __call__(self, column):
                    return column + self.more
            def each_name(name):
                return f"x_{name}"
            def largest(frame):
                return frame.sort("a").tail(1)
            def widen(frame):
                return frame.with_columns(a=pl.col("a") + 1)
        """,
        main=MANY,
    )
    done = project.nectar("run", "main.py", folder)
    counts = json.loads(done.stdout)
    frames = project.evict()
    assert len(frames) == len(counts) == 15, done.stderr
    project.lose_sources()
    (project.root / "all.py").write_text(textwrap.dedent(ALL_AT_ONCE))
    answers = json.loads(
        project.python(project.root / "all.py", project.settings.home, *(k.hex() for k in frames)).stdout
    )
    assert answers == [[[], ""]] * len(frames)
    with closing_catalog(project) as catalog:
        for key, before in frames.items():
            after = read(catalog, catalog.index.lookup([key])[key])
            assert after.sort(pl.all()).equals(before.sort(pl.all()))


def test_it_does_not_matter_where_polars_is_installed(project):
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "polars").symlink_to(Path(pl.__file__).parent, target_is_directory=True)
    project.environment["PYTHONPATH"] += os.pathsep + str(elsewhere)
    _, key, before = simple(project)
    with closing_catalog(project) as catalog:
        assert recipes_of(catalog, key)[0].recipe.environment.engine_folder == str(elsewhere / "polars")
    _, after = project.rebuild(key)
    assert after.equals(before)


# what stands in the way


def simple(project, *, function="def change(x):\n    return x + 1\n", head=""):
    data = project.data()
    project.write(
        steps=f"{head}import polars as pl\n{function}def query():\n"
        f"    scan = pl.scan_parquet({str(data)!r})\n"
        "    return scan.with_columns(pl.col('a').map_elements(change, return_dtype=pl.Int64))\n",
        main=MAIN,
    )
    project.run()
    return data, *only(project.evict())


def test_inputs_that_are_gone_or_changed_are_named(project):
    project.environment["NECTAR_IDENTITY"] = "content"
    data, other = project.data(), project.data("b.parquet", start=500)
    project.write(
        steps=QUERY % f"pl.concat([pl.scan_parquet('{data}'), pl.scan_parquet('{other}')]).filter(pl.col('a') > 3)",
        main=MAIN,
    )
    project.run()
    key, before = only(project.evict())
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
    with closing_catalog(project) as catalog:
        recipe = recipes_of(catalog, key)[0].recipe
        assert Package("sparkle", "1.2", "sparkle", "change (steps.py:3)") in recipe.packages
        assert [module.name for module in recipe.modules] == ["steps"]
    reasons = reasons_of(project, key)  # this process, and so the one it starts, does not have it
    assert reasons == ("change (steps.py:3) needs sparkle 1.2, which is not installed: pip install 'sparkle==1.2'",)


def write_distribution(folder, name, version, files):
    """An installed package, as an installer leaves it."""
    import base64
    import hashlib

    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = []
    for path, text in files.items():
        (folder / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("\n".join([*lines, f"{info.name}/RECORD,,", ""]))


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
    key, _ = only(project.evict())
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
    with closing_catalog(project) as catalog:
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


# what comes out differently


def test_a_function_that_breaks_its_promise_is_told(project):
    _, key, before = simple(
        project,
        head="import time\nimport nectar\n",
        function="@nectar.pure\ndef change(x):\n    return x + time.time_ns()\n",
    )
    with (
        closing_catalog(project) as catalog,
        pytest.warns(NectarWarning, match=r"values differ.*Suspected: change \(steps.py:6\).*clock"),
    ):
        rebuild(catalog, key, project.settings)
    assert list(project.keys().values()) == [key]


def test_rows_in_an_order_that_nobody_promised_are_the_same(project):
    data = project.data(rows=1000)
    project.write(
        steps=QUERY % f"pl.scan_parquet({str(data)!r}).group_by(pl.col('a') % 97).agg(pl.col('g').sum())",
        main=MAIN,
    )
    project.run()
    key, before = only(project.evict())
    for _ in range(2):
        done, after = project.rebuild(key)
        assert not done.difference
        assert after.sort("a").equals(before.sort("a"))
        project.evict()


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
    parts = catalog.index._read(lambda rows: rows.execute("SELECT content FROM recipe_parts").fetchall())
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


# many askers, and crashes


ASKER = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from nectar.catalog.embedded import open_catalog
    from nectar.errors import RebuildError
    from nectar.recipes.rebuild import rebuild
    from nectar.settings import Settings
    home, key, threads = Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
    settings = Settings(home=home, reserve=0)
    catalog = open_catalog(settings)
    def ask(_):
        try:
            return rebuild(catalog, key, settings).rows
        except RebuildError as error:
            return error.reasons[0]
    with ThreadPoolExecutor(threads) as pool:
        print(*pool.map(ask, range(threads)), sep="\\n")
"""


def ask_in_processes(project, key, processes, threads):
    script = project.root / "asker.py"
    script.write_text(textwrap.dedent(ASKER))
    command = [sys.executable, str(script), str(project.settings.home), key.hex(), str(threads)]
    asking = [
        subprocess.Popen(command, env=project.environment, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    return [line for each in asking for line in each.communicate()[0].splitlines()]


def counting(project, then="return x"):
    counter = project.root / "counter"
    function = (
        f"@nectar.pure\ndef change(x):\n    if x == 0:\n        with open({str(counter)!r}, 'a') as file:\n"
        f"            file.write('x')\n        time.sleep(1)\n    {then}\n"
    )
    _, key, before = simple(project, head="import nectar\nimport time\nimport os\n", function=function)
    assert counter.read_text() == "x"
    counter.write_text("")
    return counter, key, before


def test_fifty_askers_in_five_processes_get_one_rebuild(project):
    counter, key, before = counting(project)
    answers = ask_in_processes(project, key, 5, 10)
    assert answers == ["50"] * 50
    assert counter.read_text() == "x"


def test_an_error_is_told_to_everybody_who_asked(project):
    counter, key, before = counting(project)
    then = project.root / "data" / "a.parquet"
    then.unlink()
    answers = ask_in_processes(project, key, 2, 5)
    assert answers == [f"the file {then} is gone"] * 10
    assert counter.read_text() == ""


def test_after_a_crash_the_next_asker_rebuilds(project):
    counter, key, before = counting(project)
    script = project.root / "asker.py"
    script.write_text(textwrap.dedent(ASKER))
    command = [sys.executable, str(script), str(project.settings.home), key.hex(), "1"]
    asking = subprocess.Popen(command, env=project.environment, start_new_session=True)
    for _ in range(600):
        if counter.read_text():
            break
        time.sleep(0.05)
    os.killpg(asking.pid, 9)  # in the middle of the rebuild
    asking.wait()
    assert not project.keys()
    done, after = project.rebuild(key)
    assert done.made
    assert after.equals(before)
    assert counter.read_text() == "xx"


def test_a_process_that_breaks_down_is_told_and_the_next_one_rebuilds(project):
    marker = project.root / "marker"
    function = (
        f"@nectar.pure\ndef change(x):\n    if os.path.exists({str(marker)!r}):\n"
        "        os.kill(os.getpid(), 9)\n    return x\n"
    )
    _, key, before = simple(project, head="import os\nimport nectar\n", function=function)
    marker.touch()
    (reason,) = reasons_of(project, key)
    assert reason == "the process that ran it ended with -9"
    marker.unlink()
    _, after = project.rebuild(key)
    assert after.equals(before)


# the command


def test_the_command_rebuilds_by_key_and_by_name(project):
    _, key, before = simple(project)
    with closing_catalog(project) as catalog:
        catalog.bind("team/things", key)
    done = json.loads(project.nectar("rebuild", key.hex(), "--json").stdout)
    assert (done["rebuilt"], done["rows"], done["difference"]) == (True, 50, "")
    assert "nothing had to be rebuilt" in project.nectar("rebuild", key.hex()[:10]).stdout
    project.evict()
    assert "team/things (" in project.nectar("rebuild", "team/things").stdout
    project.evict()
    assert "rebuild   comes back when it is read" in project.nectar("show", "team/things").stdout
    assert json.loads(project.nectar("show", "team/things", "--json").stdout)["rebuildable"]
    assert "team/things@1 (" in project.nectar("rebuild", "team/things@1").stdout
    project.evict()
    assert "was rebuilt" in project.nectar("rebuild", key.hex()[:10]).stdout, "also of a key, its first digits do"
    project.evict()
    (project.root / "data" / "a.parquet").unlink()
    failed = project.nectar("rebuild", "team/things", fails=True)
    assert failed.returncode == 1
    assert "a.parquet is gone" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert project.nectar("rebuild", "abc", fails=True).returncode == 1
