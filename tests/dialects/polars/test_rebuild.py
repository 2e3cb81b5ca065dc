"""Deleted results are made again by their recipes, in fresh processes and without the files of the program."""

import json
import os
import textwrap
from pathlib import Path

import polars as pl
import pytest
from tests.dialects.polars.projects import MAIN, QUERY, PolarsProject, simple
from tests.recipes.projects import reasons_of

from nectar.errors import NectarWarning
from nectar.recipes.rebuild import rebuild
from nectar.recipes.recipe import recipes_of


@pytest.fixture
def project(tmp_path):
    return PolarsProject(tmp_path)


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
    rows = project.values()
    key, before = project.evict_one()
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
    key, before = project.evict_one()
    done, after = project.rebuild(key)
    assert after.equals(before)


def test_files_that_came_later_do_not_belong_to_an_old_result(project):
    data = project.data().parent
    project.write(
        steps=QUERY % f"pl.scan_parquet('{data}/*.parquet').filter(pl.col('a') > 3)",
        main=MAIN,
    )
    project.run()
    key, before = project.evict_one()
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
    assert sorted(day for _, day in project.values()) == [1, 1, 2, 2]
    key, before = project.evict_one()
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
    with project.catalog() as catalog:
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
    key, before = project.evict_one()
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
    rows = project.values()
    key, before = project.evict_one()
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
    with project.catalog() as catalog:
        for key, before in frames.items():
            after = project.read(catalog, catalog.index.lookup([key])[key])
            assert after.sort(pl.all()).equals(before.sort(pl.all()))


def test_it_does_not_matter_where_polars_is_installed(project):
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "polars").symlink_to(Path(pl.__file__).parent, target_is_directory=True)
    project.environment["PYTHONPATH"] += os.pathsep + str(elsewhere)
    _, key, before = simple(project)
    with project.catalog() as catalog:
        assert recipes_of(catalog, key)[0].recipe.environment.engine_folder == str(elsewhere / "polars")
    _, after = project.rebuild(key)
    assert after.equals(before)


# what comes out differently


def test_a_function_that_breaks_its_promise_is_told(project):
    _, key, before = simple(
        project,
        head="import time\nimport nectar\n",
        function="@nectar.pure\ndef change(x):\n    return x + time.time_ns()\n",
    )
    with (
        project.catalog() as catalog,
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
    key, before = project.evict_one()
    for _ in range(2):
        done, after = project.rebuild(key)
        assert not done.difference
        assert after.sort("a").equals(before.sort("a"))
        project.evict()
