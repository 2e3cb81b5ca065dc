"""collect, explain, the namespace and the engine by name."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import nectar
from nectar import session


@pytest.fixture
def lf(log):
    return pl.scan_parquet(f"{log}/*.parquet").group_by("page").agg(pl.col("seconds").sum()).sort("page")


@pytest.fixture
def off_by_default(home, monkeypatch):
    """Nobody has enabled Nectar; whoever asks for it by name gets a store of this test."""
    monkeypatch.setenv("NECTAR_HOME", str(home))
    monkeypatch.setenv("NECTAR_RESERVE", "0")
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    yield
    if session._chosen is not None:
        session._chosen.close()


def test_collect_reuses_without_enable(off_by_default, lf):
    first = nectar.collect(lf)
    session.current().settle()
    second = nectar.collect(lf, engine="in-memory")
    assert first.equals(second)
    assert len(nectar.last_run().reused) == 1
    kept = nectar.last_run()
    lf.collect()
    assert nectar.last_run() is kept, "other queries are none of Nectar's business"


def test_an_engine_for_one_query(off_by_default, lf):
    lf.collect(engine=nectar.PolarsEngine("streaming"))
    session.current().settle()
    lf.collect(engine=nectar.PolarsEngine("streaming"))
    assert len(nectar.last_run().reused) == 1
    assert nectar.PolarsEngine("streaming").name == "nectar over streaming"


def test_the_namespace(enabled, lf):
    assert lf.nectar.explain().reason == "it runs for the first time"
    frame = lf.nectar.collect()
    session.current().settle()
    assert str(lf.nectar.explain()).startswith("all of it is known")
    assert lf.collect().equals(frame)


def run(code, home):
    environment = {**os.environ, "PYTHONPATH": str(Path(nectar.__file__).parents[1]), "NECTAR_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("imports", ["import polars as pl, nectar", "import nectar, polars as pl"])
def test_the_namespace_is_there_without_enabling_anything(imports, home, log):
    code = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        f"{imports}\n"
        "loaded = 'nectar.dialects.polars.api' in sys.modules\n"
        f"lf = pl.scan_parquet({str(log)!r}).select('page')\n"
        "print(loaded, lf.nectar.collect().height, lf.collect().height, len(nectar.last_run().parts))\n"
        "nectar.enable(); nectar.disable()\n"
        "print(lf.nectar.explain().reason)\n"
    )
    assert run(code, home).stdout.splitlines() == ["False 240 240 1", "Nectar is off"]


@pytest.mark.parametrize("name", ["scan('team/a').collect", "PolarsEngine", "aggregate", "save", "collect"])
def test_enabling_before_anybody_imports_polars(name, home, enabled, log):
    pl.scan_parquet(log).select("page").nectar.save("team/a")
    code = (
        "import sys, nectar\n"
        "nectar.enable()\n"
        f"nectar.{name}\n"
        "import polars as pl\n"
        "pl.LazyFrame({'a': [1]}).select(pl.col('a').sum()).collect()\n"
        "print(len(nectar.last_run().parts))\n"
    )
    done = run(code, home)
    assert (done.stdout.split(), done.stderr) == (["1"], "")


def test_enabling_does_not_import_polars_and_does_not_miss_it(home):
    code = (
        "import sys, nectar\n"
        "nectar.enable()\n"
        "assert 'polars' not in sys.modules\n"
        "import polars as pl\n"
        "pl.LazyFrame({'a': [1]}).select(pl.col('a').sum()).collect()\n"
        "print(len(nectar.last_run().parts), pl.__loader__ is pl.__spec__.loader)\n"
        "print(type(pl.__loader__).__name__, hasattr(pl.LazyFrame, 'nectar'))\n"
    )
    assert run(code, home).stdout.split() == ["1", "True", "SourceFileLoader", "True"]


def test_disabling_before_polars_comes_leaves_it_alone(home):
    code = (
        "import sys, nectar\n"
        "before = list(sys.meta_path)\n"
        "nectar.enable(); nectar.disable()\n"
        "assert sys.meta_path == before\n"
        "import polars as pl\n"
        "pl.LazyFrame({'a': [1]}).select(pl.col('a').sum()).collect()\n"
        "print(len(nectar.last_run().parts))\n"
    )
    assert run(code, home).stdout.split() == ["0"]


def test_enabling_with_everything_off_leaves_polars_alone(enabled, home):
    before = pl.lazyframe.engine_config._ENGINE_BY_NAME["auto"]
    assert isinstance(before, nectar.PolarsEngine)
    nectar.enable(home=home, off=True)
    assert not isinstance(pl.lazyframe.engine_config._ENGINE_BY_NAME["auto"], nectar.PolarsEngine)
    nectar.enable(home=home)
    assert isinstance(pl.lazyframe.engine_config._ENGINE_BY_NAME["auto"], nectar.PolarsEngine)
