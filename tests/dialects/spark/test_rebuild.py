"""Deleted results of Spark programs are made again by their recipes, in fresh processes without the program's files."""

import os
import textwrap
from dataclasses import replace

import msgspec
import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa
import pyarrow.parquet
from tests.dialects.spark import engines
from tests.recipes.projects import Project, reasons_of

from nectar.dialects.spark.prescription import decoded

pytestmark = engines.only_sail

MAIN = """
    import json
    from pyspark.sql import SparkSession, functions as F
    from pyspark.sql.types import LongType
    spark = SparkSession.builder.getOrCreate()
    def show(df):
        print(json.dumps(sorted(map(list, df.collect()))))
"""


class SparkProject(Project):
    """A program of Spark over a folder of files."""

    def __init__(self, root):
        super().__init__(root)
        self.data = root / "data"
        self.data.mkdir()

    def main(self, text):
        self.write(main=textwrap.dedent(MAIN) + textwrap.dedent(text))

    def file(self, name="a.parquet", rows=50, start=0):
        path = self.data / name
        path.parent.mkdir(exist_ok=True)
        table = pa.table({"a": range(start, start + rows), "g": [each % 3 for each in range(rows)]})
        pa.parquet.write_table(table, path)
        return path

    def copy(self, opened):
        return pa.table(opened.to_arrow().to_pydict(), schema=opened.to_arrow().schema)


def rows(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture
def project(tmp_path):
    return SparkProject(tmp_path)


# getting it back


def test_a_program_with_functions_of_many_kinds_is_run_again_without_its_files(project):
    project.file()
    project.write(
        **{
            "app/__init__": "",
            "app/deep": "FACTOR = 2\ndef twice(x):\n    return x * FACTOR\n",
            "app/clean": "from app import deep\nLIMIT = 3\ndef clean(x):\n    return deep.twice(x) + LIMIT\n",
        }
    )
    project.main(
        f"""
        import pandas as pd
        from app import clean
        OFFSET = 7
        class Box:
            def __init__(self, value):
                self.value = value
            def get(self):
                return self.value + OFFSET
        @F.udf(LongType())
        def boxed(x):
            return Box(clean.clean(x)).get()
        @F.pandas_udf(LongType())
        def added(x: pd.Series) -> pd.Series:
            return x + OFFSET
        imported = F.udf(clean.clean, LongType())
        df = spark.read.parquet({str(project.data)!r})
        show(df.select("a", boxed("a").alias("b"), added("a").alias("c"), imported("g").alias("d")))
        """
    )
    (values,) = project.run()
    key, before = project.evict_one()
    project.lose_sources()
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert after.schema.equals(before.schema, check_metadata=True)
    assert rows(after) == rows(before)
    assert sorted(map(list, zip(*after.to_pydict().values()))) == values
    again, same = project.rebuild(key)
    assert not again.made


PROGRAMS = {
    "group": """show(spark.read.parquet(DATA).groupBy("g").agg(F.sum("a"), F.avg("a")))""",
    "local rows": """show(spark.createDataFrame([(1, "x"), (2, "y")], "n long, s string").filter("n > 1"))""",
    "own plan ids": """
        df = spark.read.parquet(DATA)
        other = df.groupBy("g").agg(F.max("a").alias("most"))
        show(df.join(other, df.g == other.g).select(df.a, other.most))
        """,
    "a view of a frame": """
        spark.read.parquet(DATA).createOrReplaceTempView("v")
        show(spark.sql("select g, count(*) from v group by g"))
        """,
    "a view of a view of a text": """
        spark.read.parquet(DATA).createOrReplaceTempView("v")
        spark.sql("create or replace temporary view w (x, y) as select a, g from v where a > 3")
        show(spark.sql("select y, sum(x) from w group by y"))
        """,
    "a name that has changed its meaning": """
        spark.read.parquet(DATA).createOrReplaceTempView("v")
        spark.sql("create or replace temporary view w as select * from v where g = 1")
        spark.range(3).createOrReplaceTempView("v")
        show(spark.sql("select * from w join v on w.a = v.id"))
        """,
    "a table": """
        spark.sql(f"create table t using parquet location '{DATA}'")
        show(spark.sql("select max(a) from t"))
        """,
    "a registered function": """
        def plus(x):
            return x + 10
        spark.udf.register("plus", plus, LongType())
        show(spark.read.parquet(DATA).selectExpr("plus(a) as p"))
        """,
    "a path in a text": """show(spark.sql(f"select min(a) from parquet.`{DATA}`"))""",
    "settings": """
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        show(spark.read.parquet(DATA).select(F.hour(F.timestamp_seconds("a")).alias("h"), "a"))
        """,
    "a function of pandas": """
        df = spark.read.parquet(DATA)
        show(df.groupBy("g").applyInPandas(lambda frame: frame.head(1), "a long, g long"))
        """,
    "a plan as deep as no message may be": """
        df = spark.read.parquet(DATA)
        for number in range(60):
            df = df.withColumn("a", F.col("a") + 1)
        show(df)
        """,
    "show": """spark.read.parquet(DATA).orderBy("a").limit(3).show()
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_deleted_comes_back_as_it_was(project, name):
    project.file()
    project.file("b.parquet", start=100)
    project.main(f"DATA = {str(project.data)!r}\n" + textwrap.dedent(PROGRAMS[name]))
    assert "nectar: 0 of 1 query from cache" in project.nectar("run", "main.py").stderr
    key, before = project.evict_one()
    assert not project.recipe(key).recipe.refusals
    project.lose_sources()
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert after.schema.equals(before.schema, check_metadata=True)
    assert rows(after) == rows(before)
    project.main(f"DATA = {str(project.data)!r}\n" + textwrap.dedent(PROGRAMS[name]))
    assert "nectar: 1 of 1 query from cache" in project.nectar("run", "main.py").stderr


def test_relative_paths_begin_where_the_program_ran(project):
    project.file()
    project.main("show(spark.read.parquet('../data/a.parquet').filter('a > 3'))")
    project.run()
    key, before = project.evict_one()
    done, after = project.rebuild(key)
    assert rows(after) == rows(before)


@pytest.mark.parametrize(
    ("path", "first", "later"),
    [
        ("", "a.parquet", "b.parquet"),
        ("", "day=1/a.parquet", "day=2/b.parquet"),
        ("/*.parquet", "a.parquet", "b.parquet"),
        ("/a.parquet", "a.parquet", "b.parquet"),
    ],
)
def test_files_that_came_later_do_not_belong_to_an_old_result(project, path, first, later):
    project.file(first)
    project.main(f"show(spark.read.parquet({str(project.data) + path!r}).filter('a > 3'))")
    project.run()
    key, before = project.evict_one()
    project.file(later, start=1000)
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert rows(after) == rows(before)


def test_an_older_version_of_a_delta_table_is_read_again(project):
    table = str(project.root / "table")
    project.main(
        f"""
        more = spark.range(30).withColumn("g", F.col("id") % 2)
        more.write.format("delta").mode("append").save({table!r})
        show(spark.read.format("delta").load({table!r}).groupBy("g").count())
        """
    )
    project.run()
    key, before = project.evict_one()
    project.run()
    done, after = project.rebuild(key)
    assert done.made
    assert rows(after) == rows(before)


def test_files_that_came_later_are_told_where_the_path_is_part_of_the_result(project):
    project.file("day=1/a.parquet")
    project.main(f"show(spark.read.parquet({str(project.data / 'day=1')!r}).filter('a > 3'))")
    project.run()
    key, _ = project.evict_one()
    project.file("day=1/b.parquet", start=1000)
    assert reasons_of(project, key) == ("other files are found where it read: some came or went",)


def test_files_that_came_later_to_a_view_do_not_belong_to_it_and_those_of_a_text_are_told(project):
    project.file()
    project.main(
        f"""
        spark.read.parquet({str(project.data)!r}).createOrReplaceTempView("v")
        show(spark.sql("select count(*) from v"))
        show(spark.sql("select count(*) from parquet.`{project.data}`"))
        """
    )
    project.run()
    tables = project.evict()
    project.file("b.parquet")
    of_text = [key for key in tables if "parquet.`" in str(decoded(project.recipe(key).plan).plan)]
    for key in tables:
        if key in of_text:
            assert reasons_of(project, key) == ("other files are found where it read: some came or went",)
        else:
            _, after = project.rebuild(key)
            assert rows(after) == rows(tables[key])
    assert len(of_text) == 1
    assert len(tables) == 2


def test_a_file_that_is_known_by_another_name_now_is_the_same_file(project):
    path = project.file()
    os.utime(path, (1_000_000_000, 1_000_000_000))
    project.main(f"show(spark.read.parquet({str(path)!r}).filter('a > 3'))")
    project.run()
    key, before = project.evict_one()
    project.settings = replace(project.settings, identity="content")  # it is read, and known by its content
    done, after = project.rebuild(key)
    assert done.made
    assert rows(after) == rows(before)


def test_a_copy_that_was_touched_is_read_if_its_content_is_known(project):
    project.environment["NECTAR_IDENTITY"] = "content"
    path = project.file()
    project.main(f"show(spark.read.parquet({str(path)!r}).filter('a > 3'))")
    project.run()
    key, before = project.evict_one()
    os.utime(path, (1_000_000_000, 1_000_000_000))
    done, after = project.rebuild(key)
    assert rows(after) == rows(before)


def test_a_part_that_the_engine_wrote_is_written_again(project):
    project.file(rows=200_000)
    program = f"""
        df = spark.read.parquet({str(project.data)!r}).groupBy("g").agg(F.sum("a").alias("total"))
        df.cache()
        show(df.select("total"))
        """
    project.main(program)
    (values,) = project.run()
    with project.catalog() as catalog:
        entries = {entry.kind: entry for entry in catalog.index.entries()}
        assert set(entries) == {"arrow", "parquet"}
        before = project.read(catalog, entries["parquet"])
        assert before.column_names == ["g", "total"]
        assert catalog.discard(entries.values()) == 2
    project.lose_sources()
    key = entries["parquet"].key
    written = project.recipe(key).recipe.environment
    elsewhere = msgspec.structs.replace(written, machine="abacus")
    project.change_recipe(key, lambda recipe: msgspec.structs.replace(recipe, environment=elsewhere))
    (reason,) = reasons_of(project, key, allow_environment_change=True)  # counting rows is not enough there
    assert "only the number of its rows can be compared" in reason
    project.change_recipe(key, lambda recipe: msgspec.structs.replace(recipe, environment=written))
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert done.entry.kind == "parquet"
    assert rows(after) == rows(before)
    project.main(program)
    assert project.run() == [values]
    with project.catalog() as catalog:
        assert len(list(catalog.index.entries())) == 2


# what is in the way


def test_every_file_that_is_not_what_it_was_is_told(project):
    one, two, _ = project.file(), project.file("b.parquet"), project.file("c.parquet")
    project.main(f"show(spark.read.parquet({str(project.data)!r}).filter('a > 3'))")
    project.run()
    key, _ = project.evict_one()
    before = two.stat().st_size
    one.unlink()
    project.file("b.parquet", rows=70)
    assert reasons_of(project, key) == (
        f"the file {one} is gone",
        f"the file {two} was changed: it had {before} bytes and has {two.stat().st_size}",
        "1 of 3 files are what they were",
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda e: msgspec.structs.replace(e, engine_version="0.1"), "it was made by Sail 0.1, and this is Sail"),
        (lambda e: msgspec.structs.replace(e, machine="abacus"), "it was made on linux abacus"),
    ],
)
def test_another_environment_is_told_and_may_be_allowed(project, change, told):
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, before = project.evict_one()
    project.change_recipe(key, lambda recipe: msgspec.structs.replace(recipe, environment=change(recipe.environment)))
    reasons = reasons_of(project, key)
    assert told in reasons[0]
    assert "--allow-environment-change" in reasons[1]
    done, after = project.rebuild(key, allow_environment_change=True)
    assert done.changes
    assert rows(after) == rows(before)


def test_an_engine_that_is_not_installed_is_told(project):
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, _ = project.evict_one()

    def of_another_world(recipe):
        packages = [
            msgspec.structs.replace(each, module="pysnail", name="pysnail") if each.name == "pysail" else each
            for each in recipe.packages
        ]
        return msgspec.structs.replace(recipe, packages=tuple(packages))

    project.change_recipe(key, of_another_world)
    (reason,) = reasons_of(project, key)
    assert reason.startswith("a Spark program needs pysnail 0.7")
    assert "not installed: pip install" in reason


def test_a_result_of_a_spark_server_needs_one(project, monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, _ = project.evict_one()

    def by_spark(recipe):
        environment = msgspec.structs.replace(recipe.environment, engine="Spark", engine_version="4.3.0")
        return msgspec.structs.replace(recipe, environment=environment)

    project.change_recipe(key, by_spark)
    (reason,) = reasons_of(project, key)
    assert reason == "it was computed by a server of Spark 4.3.0: name one with SPARK_REMOTE=sc://HOST:PORT"
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    (reason,) = reasons_of(project, key)
    assert "127.0.0.1:1" in reason


def test_a_function_that_was_changed_from_outside_is_not_run(project):
    project.file()
    project.write(app="LIMIT = 3\ndef clean(x):\n    return x + LIMIT\n")
    project.main(
        f"""
        import app
        app.LIMIT = 5
        show(spark.read.parquet({str(project.data)!r}).select(F.udf(app.clean, LongType())("a")))
        """
    )
    project.run()
    key, _ = project.evict_one()
    (reason,) = reasons_of(project, key)
    assert "'project' is not what it was" in reason
    with project.catalog() as catalog:
        assert not catalog.index.lookup([key])


def test_a_result_that_differs_is_told_and_its_function_suspected(project):
    project.file()
    counter = project.root / "counter"
    counter.write_text("0")
    project.main(
        f"""
        import nectar
        from pathlib import Path
        @nectar.pure
        def counted(x):
            path = Path({str(counter)!r})
            path.write_text(str(int(path.read_text()) + 1))
            return int(path.read_text())
        show(spark.read.parquet({str(project.data)!r}).select(F.udf(counted, LongType())("a")))
        """
    )
    project.run()
    key, _ = project.evict_one()
    done, after = project.rebuild(key)
    assert done.difference.startswith("its values differ: two runs of it do not give the same. Suspected: ")
    assert not done.expected


def test_tables_the_engine_has_placed_are_no_reason_to_do_more(project):
    project.file()
    project.main(
        f"""
        df = spark.read.parquet({str(project.data)!r})
        df.write.saveAsTable("t", path={str(project.root / "table")!r})
        show(spark.sql("select max(a) from t"))
        """
    )
    project.run()
    key, _ = project.evict_one()
    assert reasons_of(project, key) == ("how t was made is not kept",)


# what must not be in it


def everything_written(project, key):
    """All bytes of a recipe, and of all files of the store, as far as they can be read."""
    written = project.recipe(key)
    files = b"".join(path.read_bytes() for path in project.settings.home.rglob("*") if path.is_file())
    return msgspec.msgpack.encode(written.recipe) + written.plan + files


@pytest.mark.parametrize(
    "setting",
    [
        """spark.conf.set("spark.hadoop.fs.s3a.secret.key", "canary")""",
        """spark.conf.set("spark.my.database", "postgres://me:canary@host/db")""",
    ],
)
def test_no_credential_of_the_session_is_in_a_recipe(project, setting):
    project.file()
    project.main(f"{setting}\nshow(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, _ = project.evict_one()
    assert b"canary" not in everything_written(project, key)
    (reason,) = reasons_of(project, key)
    assert "may hold a credential" in reason


def test_no_credential_of_the_engine_is_in_a_recipe(project):
    project.environment["SAIL_SOMETHING__PASSWORD"] = "canary"
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, _ = project.evict_one()
    assert b"canary" not in everything_written(project, key)


def test_a_plan_with_too_much_data_is_not_kept_for_ever(project):
    project.main(
        """
        import numpy as np, pandas as pd
        frame = pd.DataFrame({"n": np.random.default_rng(1).integers(0, 1 << 62, 700_000)})
        show(spark.createDataFrame(frame).agg(F.max("n")))
        """
    )
    project.run()
    key, _ = project.evict_one()
    (reason,) = reasons_of(project, key)
    assert "of data, which is too much to be kept in a recipe" in reason


# the command


def test_the_command_rebuilds_and_tells(project):
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, before = project.evict_one()
    done = project.nectar("rebuild", key.hex()[:12])
    assert "was rebuilt in" in done.stdout
    assert "3 rows" in done.stdout
    assert "nothing had to be rebuilt" in project.nectar("rebuild", key.hex()[:12]).stdout
