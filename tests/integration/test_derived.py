"""Named results from end to end: saved, evicted, their program deleted, and had again, in processes of their own."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import polars as pl
import pytest
from msgspec.structs import replace
from tests.recipes.projects import write_distribution

from nectar.catalog.embedded import open_catalog
from nectar.recipes.recipe import found_by, put, recipes_of
from nectar.settings import Settings

SOURCE = Path(__file__).parents[2] / "src"
STEPS = """
    import nectar
    import polars as pl

    @nectar.pure
    def counted(frame, level):
        with open({log!r}, "a") as file:
            file.write(level)
        return frame.with_columns(pl.col("a") * 2)

    def first(frame):
        return counted(frame, "x")

    def second(frame):
        return counted(frame, "y")

    def third(frame):
        return counted(frame, "z")
"""
MAIN = """
    import nectar
    import polars as pl
    from steps import first, second, third
    nectar.enable()
    nectar.save(pl.scan_parquet({data!r}).map_batches(first), "chain/one")
    nectar.save(nectar.scan("chain/one").map_batches(second), "chain/two")
    nectar.save(nectar.scan("chain/two").map_batches(third), "chain/three")
"""


class Place:
    """A program and its data, a store, and processes that use it."""

    def __init__(self, root):
        self.root, self.home, self.folder = root, root / "home", root / "project"
        self.data, self.log = root / "data.parquet", root / "log"
        self.folder.mkdir()
        self.environment = {
            **os.environ, "NECTAR_HOME": str(self.home), "NECTAR_RESERVE": "0", "PYTHONPATH": str(SOURCE),
        }  # fmt: skip

    def write(self, **texts):
        for name, text in texts.items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(text))

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def python(self, *arguments, fails=False):
        process = self.start(*arguments)
        out, error = process.communicate()
        assert bool(process.returncode) == fails, error
        return error if fails else out

    def code(self, text, **options):
        return self.python("-c", textwrap.dedent(text), **options)

    def nectar(self, *arguments, **options):
        return self.python("-m", "nectar.cli", *arguments, **options)

    def evict(self):
        """Everything is deleted, and nothing has been computed since."""
        told = json.loads(self.nectar("gc", "--apply", "--all", "--json"))
        assert json.loads(self.nectar("ls", "--json"))["total"] == 0
        self.log.write_text("")
        return told

    def discard(self, *names):
        """The results of these names are deleted."""
        catalog = open_catalog(Settings(home=self.home, reserve=0))
        keys = [catalog.index.resolve(name).key for name in names]
        assert catalog.discard(catalog.index.lookup(keys).values()) == len(names)
        catalog.close()
        self.log.write_text("")

    def lose_sources(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    @property
    def computed(self):
        return self.log.read_text()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def chain(place):
    """Three names, each made from the one before; the program is gone."""
    pl.DataFrame({"a": range(3000), "text": ["some", "more", None] * 1000}).write_parquet(place.data)
    place.write(steps=STEPS.format(log=str(place.log)), main=MAIN.format(data=str(place.data)))
    place.python("main.py")
    assert place.computed == "xyz"
    place.lose_sources()
    return place


READINGS = {
    "open": "nectar.open('chain/one').to_polars().write_ipc(sys.argv[1])",
    "arrow": "pl.from_arrow(nectar.open('chain/one').to_arrow()).write_ipc(sys.argv[1])",
    "scan": "nectar.scan('chain/one').collect().write_ipc(sys.argv[1])",
    "url": "pl.read_parquet(fsspec.open('nectar://chain/one.parquet').open()).write_ipc(sys.argv[1])",
    "pandas": "pl.from_pandas(pandas.read_feather('nectar://chain/one.arrow')).write_ipc(sys.argv[1])",
}


def test_every_way_of_reading_brings_a_result_back(chain):
    """Nectar is off in some of the processes: people who name a dataset mean it."""
    before = chain.root / "before.arrow"
    chain.nectar("export", "chain/one", before)
    expected = pl.read_ipc(before)
    for number, (name, reading) in enumerate(READINGS.items()):
        chain.evict()
        chain.environment["NECTAR_OFF"] = str(number % 2)
        chain.code(
            f"import sys, fsspec, nectar, pandas\nimport polars as pl\n"
            f"from nectar.datasets.filesystem import NectarFileSystem\n"
            f"fsspec.register_implementation('nectar', NectarFileSystem, clobber=True)\n"
            f"sys.argv = ['', {str(chain.root / name)!r}]\n{reading}\n"
        )
        assert chain.computed == "x", name
        assert pl.read_ipc(chain.root / name).equals(expected), name
        assert pl.read_ipc(chain.root / name).schema == expected.schema, name
    del chain.environment["NECTAR_OFF"]
    chain.evict()
    after = chain.root / "after.arrow"
    home = chain.environment.pop("NECTAR_HOME")
    chain.nectar("export", "chain/one", after, "--home", home)
    assert chain.computed == "x"
    assert after.read_bytes() == before.read_bytes()


def test_a_chain_of_names_comes_back_each_once(chain):
    chain.nectar("export", "chain/three", chain.root / "before.arrow")
    chain.evict()
    chain.nectar("export", "chain/three", chain.root / "after.arrow")
    assert chain.computed == "xyz"
    assert (chain.root / "after.arrow").read_bytes() == (chain.root / "before.arrow").read_bytes()
    assert json.loads(chain.nectar("ls", "--json"))["total"] == 3


def test_what_is_known_above_is_not_made_again(chain):
    """Only what is needed: the last is there, and the first is not asked for."""
    chain.evict()
    chain.nectar("rebuild", "chain/three")
    chain.discard("chain/one", "chain/three")
    chain.nectar("rebuild", "chain/three")
    assert chain.computed == "z"


def test_a_catalog_that_moved_brings_its_results_back(chain):
    """Recipes hold where names were scanned; they mean the catalog for which they run."""
    chain.evict()
    moved = chain.root / "elsewhere"
    chain.home.rename(moved)
    chain.environment["NECTAR_HOME"] = str(moved)
    assert json.loads(chain.nectar("rebuild", "chain/three", "--json"))["rebuilt"]
    assert chain.computed == "xyz"
    assert not chain.home.exists()


def test_a_copy_of_a_catalog_does_not_write_to_the_first(chain):
    chain.evict()
    copy = chain.root / "copy"
    shutil.copytree(chain.home, copy)
    chain.nectar("rebuild", "chain/three", "--home", copy)
    assert chain.computed == "xyz"
    assert json.loads(chain.nectar("ls", "--json"))["total"] == 0
    assert json.loads(chain.nectar("ls", "--json", "--home", copy))["total"] == 3


def test_a_name_of_another_catalog_is_found_where_it_was_scanned(chain):
    """Two homes: what was made in one from a name of the other comes back, and so does what it was made from."""
    other = chain.root / "other"
    chain.code(f"""
        import nectar, polars as pl
        lf = nectar.scan("chain/one").filter(pl.col("a") > 7).sort("a", descending=True)
        with nectar.reuse(home={str(other)!r}, reserve=0):
            nectar.save(lf, "mine")
    """)
    chain.evict()
    chain.environment["NECTAR_HOME"] = str(other)
    chain.evict()
    found = chain.code("import nectar; print(nectar.open('mine').to_polars()['a'].sum())")
    assert int(found) == sum(2 * each for each in range(4, 3000))
    assert chain.computed == "x"


def test_fifty_askers_in_five_processes_get_one_rebuild_of_each(chain):
    chain.evict()
    ask = """
        import nectar
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(10) as pool:
            found = list(pool.map(lambda _: nectar.open("chain/three").to_polars()["a"].sum(), range(10)))
        print(*found)
    """
    asking = [chain.start("-c", textwrap.dedent(ask)) for _ in range(5)]
    answers = [each.communicate() for each in asking]
    assert [out.split() for out, _ in answers] == [[str(8 * sum(range(3000)))] * 10] * 5, answers
    assert chain.computed == "xyz"


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_primary_file_that_is_not_what_it_was_is_named(chain, harm):
    """Through all names in between; and what does not need the file can still be had."""
    chain.evict()
    chain.nectar("rebuild", "chain/two")
    chain.discard("chain/one")
    chain.data.unlink() if harm == "gone" else chain.data.write_bytes(b"other bytes")
    chain.code("import nectar; nectar.open('chain/three').to_polars()")
    assert chain.computed == "z", "the second is still there"
    told = chain.code("import nectar; nectar.open('chain/one').to_polars()", fails=True)
    assert f"the file {chain.data} {'is gone' if harm == 'gone' else 'was changed'}" in told
    chain.evict()
    for command in ("export", "rebuild"):
        arguments = ("chain/three", chain.root / "x.csv")[: 2 if command == "export" else 1]
        told = chain.nectar(command, *arguments, fails=True)
        nested = "chain/two@1, which it is made from, cannot be rebuilt: chain/one@1, which it is made from, "
        assert f"{nested}cannot be rebuilt: the file {chain.data} " in told
        assert "Traceback" not in told
    assert chain.computed == ""


def test_a_function_of_a_package_that_is_gone_is_named(place):
    installed = place.root / "site-packages"
    write_distribution(installed, "sparkle", "1.2", {"sparkle.py": "def shine(x):\n    return x + 5\n"})
    pl.DataFrame({"a": [1, 2]}).write_parquet(place.data)
    place.write(
        main=f"""
        import nectar, sparkle
        import polars as pl
        def change(x):
            return sparkle.shine(x)
        nectar.enable()
        lf = pl.scan_parquet({str(place.data)!r}).with_columns(pl.col("a").map_elements(change, return_dtype=pl.Int64))
        nectar.save(lf, "bright")
        nectar.save(nectar.scan("bright").sort("a", descending=True), "brighter")
    """
    )
    place.environment["PYTHONPATH"] += os.pathsep + str(installed)
    place.python("main.py")
    place.lose_sources()
    place.evict()
    assert place.code("import nectar; print(nectar.open('brighter').to_polars()['a'].to_list())").strip() == "[7, 6]"
    place.evict()
    shutil.rmtree(installed)
    told = place.code("import nectar; nectar.open('brighter').to_polars()", fails=True)
    assert "needs sparkle 1.2, which is not installed: pip install 'sparkle==1.2'" in told
    write_distribution(installed, "sparkle", "1.3", {"sparkle.py": "def shine(x):\n    return x + 6\n"})
    told = place.code("import nectar; nectar.open('brighter').to_polars()", fails=True)
    assert "needs sparkle 1.2, and 1.3" in told


def test_a_helper_that_changed_is_not_used(chain):
    """The recipe has the text as it was, also where a module of that name can be imported."""
    chain.evict()
    chain.write(steps="raise SystemExit('this is not the module that made it')")
    chain.environment["PYTHONPATH"] += os.pathsep + str(chain.folder)
    chain.nectar("rebuild", "chain/three")
    assert chain.computed == "xyz"


def test_a_name_that_moves_while_it_is_scanned(chain):
    """What was scanned stays what it was, also if that is deleted meanwhile."""
    found = chain.code(f"""
        import nectar, polars as pl
        nectar.enable()
        lf = nectar.scan("chain/one").select(pl.col("a").sum())
        nectar.save(pl.scan_parquet({str(chain.data)!r}).select(a=pl.lit(1)), "chain/one")
        from nectar.session import current
        catalog = current().catalog
        catalog.discard(list(catalog.index.entries()))
        print(lf.collect().item(), nectar.scan("chain/one").select(pl.col("a").sum()).collect().item())
    """)
    assert found.split() == [str(sum(range(3000)) * 2), "1"]


def test_a_budget_with_room_for_one_of_a_chain_is_enough(chain):
    """What is made from another needs it only until it is read."""
    sizes = [each["size"] for each in json.loads(chain.nectar("ls", "--json"))["entries"]]
    budget = int(1.5 * max(sizes))
    assert budget < sum(sizes)
    chain.evict()
    chain.environment["NECTAR_BUDGET"] = str(budget)
    for _ in range(2):
        found = chain.code("import nectar; print(*(nectar.open(f'chain/{n}').to_polars()['a'][2] for n in "
                           "('three', 'one', 'two')))")  # fmt: skip
        assert found.split() == ["16", "4", "8"]
        assert json.loads(chain.nectar("stats", "--json"))["total"] <= budget


def test_another_environment_is_allowed_for_all_of_a_chain_or_for_none(chain):
    chain.evict()
    catalog = open_catalog(Settings(home=chain.home, reserve=0))
    key = catalog.index.resolve("chain/one").key
    (written,) = recipes_of(catalog, key)
    before = msgspec.structs.replace(written.recipe.environment, python="3.4")
    catalog.index._write(
        "forget", lambda rows: rows.execute("DELETE FROM versions WHERE label LIKE ?", (f"%{key.hex()}",))
    )
    changed = msgspec.structs.replace(written.recipe, environment=before)
    found_by(catalog, key, put(catalog, replace(written, recipe=changed)))
    catalog.close()
    told = chain.nectar("rebuild", "chain/three", fails=True)
    assert "chain/one@1, which it is made from, cannot be rebuilt: it was made by Python 3.4" in told
    assert chain.computed == ""
    chain.nectar("rebuild", "chain/three", "--allow-environment-change")
    assert chain.computed == "xyz"


@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="cannot import socket in such a folder")
def test_a_reader_whose_folder_was_deleted_gets_its_result(chain):
    chain.evict()
    found = chain.code(f"""
        import os
        os.rmdir({str(chain.folder)!r})
        import nectar
        print(nectar.open("chain/three").to_polars()["a"][2])
    """)
    assert found.strip() == "16"


def test_a_child_that_was_forked_opens_names_by_itself(chain):
    chain.evict()
    found = chain.code("""
        import os, nectar
        assert not nectar.open("chain/one").kept
        child = os.fork()
        if child == 0:
            nectar.disable()
            assert nectar.open("chain/one").kept is False
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(nectar.open("chain/one").to_polars()["a"][2])
    """)
    assert found.strip() == "4"


def test_nothing_of_a_recipe_is_lost_with_its_process(chain):
    """A process that ends between two writes has left the recipe first: what is kept can be rebuilt."""
    chain.code(f"""
        import os, nectar, polars as pl
        from nectar.catalog.service import Catalog
        from nectar.dialects.polars import query
        keep = Catalog.keep
        def keep_and_die(*given, **options):
            keep(*given, **options)
            os._exit(0)
        Catalog.keep = keep_and_die
        nectar.enable()
        pl.scan_parquet({str(chain.data)!r}).sort("a", descending=True).nectar.save("never")
    """)
    told = json.loads(chain.nectar("ls", "--json"))["entries"]
    (key,) = [each["key"] for each in told if each["about"].startswith("sort")]
    chain.evict()
    assert json.loads(chain.nectar("rebuild", key, "--json"))["rows"] == 3000


def test_an_input_that_comes_back_differently_is_named(place):
    """One of the functions broke its promise: not the one that was asked for, but one of what that is made from."""
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(place.data)
    place.log.write_text("")
    place.write(
        steps=f"""
            import nectar, os
            @nectar.pure
            def fickle(x):
                return x + os.stat({str(place.log)!r}).st_size
        """,
        main=f"""
            import nectar
            import polars as pl
            from steps import fickle
            nectar.enable()
            change = pl.col("a").map_elements(fickle, return_dtype=pl.Int64)
            nectar.save(pl.scan_parquet({str(place.data)!r}).with_columns(change), "fickle")
            nectar.save(nectar.scan("fickle").select(pl.col("a").sum()), "total")
        """,
    )
    place.python("main.py")
    place.evict()
    place.log.write_text("x")
    told = place.nectar("rebuild", "total", fails=True)
    assert "fickle@1, which it is made from, was rebuilt first: its values differ" in told
    assert "Suspected: " in told
    assert place.code("import nectar; print(nectar.open('total').to_polars().item())").strip() == "9"
