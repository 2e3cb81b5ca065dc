"""What Nectar loads for Polars programs: never a library that the program has no need of."""

import subprocess
import sys

import polars as pl
import pytest

PROGRAM = """
import sys
from pathlib import Path
import polars as pl
import nectar
from nectar import session
from nectar.store.formats import arrow

folder, home, days, way = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if way == "pyarrow":  # as where much was copied
    arrow._copied = arrow._COPYABLE
nectar.enable(home=home, reserve=0, overhead="unlimited", protect=0)
for day in range(days):
    if not (folder / f"{day}.parquet").exists():
        rows = pl.select(v=pl.int_range(200_000) * day).with_columns(k=pl.int_range(pl.len()) % 7)
        rows.write_parquet(folder / f"{day}.parquet")
scan = lambda: pl.scan_parquet(folder)
more = pl.col("k").map_batches(lambda k: k + 1, pl.Int64).alias("e")
whole = scan().with_columns((pl.col("v") * 2).alias("w"), more)
queries = {
    "whole": whole,
    "its rest": whole.filter(pl.col("w") > 100).select("k", "e"),
    "states": scan().group_by("k").agg(pl.col("v").sum(), pl.len()).sort("k"),
    "texts": scan().select(pl.col("k").cast(pl.String).cast(pl.Categorical), pl.col("v").cast(pl.Decimal(38, 2))),
}
for _ in range(2):
    for name, query in queries.items():
        query.collect()
        assert session.current().settle(60)
nectar.save(queries["states"], "states/days")
nectar.scan("states/days").collect()
assert len(nectar.last_run().parts) > 0
print(sum(part.outcome == "reused" for part in nectar.last_run().parts))
assert ("pyarrow" in sys.modules) == (way == "pyarrow") or way == "polars"
assert "pandas" not in sys.modules, "nobody has asked for it: it takes a third of a second"
"""


@pytest.mark.parametrize("way", ["polars", "pyarrow"])
def test_no_program_over_polars_gets_pandas(tmp_path, way):
    pytest.importorskip("pandas")
    folder, home = tmp_path / "days", tmp_path / "home"
    folder.mkdir()
    for days in (2, 2, 3):  # computed, found by another process, grown
        command = [sys.executable, "-c", PROGRAM, str(folder), str(home), str(days), way]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 0
    assert len(list(folder.iterdir())) == 3
    assert pl.scan_parquet(folder).select(pl.len()).collect().item() == 600_000
