"""A home with every kind of file, the ways it is damaged, and the program that uses it afterwards.

Run as a program, it plays a range of seeds in one process: `damaging.py FOLDER FIRST LAST`. Before each seed it says
which one, and afterwards what went wrong, as lines of JSON; a process that ends in between was ended by the damage.
"""

import contextlib
import hashlib
import json
import logging
import os
import pickle
import random
import shutil
import sqlite3
import sys
import time
from pathlib import Path

import numpy
import polars as pl
import pyarrow as pa
import pyarrow.parquet

import nectar
from nectar.catalog.check import check
from nectar.catalog.embedded import open_catalog
from nectar.catalog.rates import LearnedRates
from nectar.errors import NectarError
from nectar.session import current
from nectar.settings import Settings
from nectar.store.read import Result

ROWS = 3000
HELPER = "K = 3\n\ndef g(x):\n    return x * K + 0\n"
BY_ENGINE = bytes(range(32))  # the key of a result in Parquet files
CHOICES = {"overhead": "unlimited", "budget": "1GB", "reserve": "0", "protect": "0"}


# the program


@nectar.memo
def numbers(n):
    return {"n": n, "values": numpy.arange(n) * 3}


@nectar.memo
def small(n):
    return [n, str(n), n / 7]


def queries(folder):
    """Queries, by name: one whose result is kept, others that build on it, one that only Polars can write."""
    base = pl.scan_parquet(folder / "source.parquet").with_columns((pl.col("i") * 3).alias("j"), pl.col("s") + "-x")
    kept = base.sort("i", descending=True)
    return {
        "base": kept,
        "sum": kept.select(pl.col("j").sum()),
        "texts": kept.filter(pl.col("i") % 7 == 0).select("s"),
        "wide": pl.scan_parquet(folder / "source.parquet").select(pl.col("i").cast(pl.Int128)).sort("i"),
        "lines": pl.scan_csv(folder / "lines.csv").group_by("k").agg(pl.col("v").sum()).sort("k"),
    }


def answers(folder, home):
    """What the program gives, by the name of each step."""
    with nectar.reuse(home=home, **CHOICES):
        found = {name: digest(query.collect()) for name, query in queries(folder).items()}
        found["numbers"] = digest(numbers(4000))
        found["small"] = digest(small(5))
        current().settle()
    return found


def named(home):
    """What the name leads to, or the kind of Nectar's error."""
    with nectar.reuse(home=home, **CHOICES):
        try:
            return digest(nectar.open("team/named").to_polars())
        except NectarError as error:
            return type(error).__name__


def digest(value):
    """A digest of a value, whatever library holds it."""
    if isinstance(value, pl.DataFrame):
        value = {name: value[name].to_list() for name in value.columns}
    elif isinstance(value, pa.Table):
        value = value.to_pydict()
    elif isinstance(value, dict) and "values" in value:
        value = {**value, "values": value["values"].tolist()}
    return hashlib.sha256(pickle.dumps(value)).hexdigest()[:16]


def kept(home):
    """What is kept, by key: digests of all results that can be opened."""
    found = {}
    with contextlib.closing(open_catalog(Settings(home=home))) as catalog:
        for entry in catalog.index.entries():
            with contextlib.suppress(NectarError):
                opened = catalog.store.open(entry)
                if isinstance(opened, Result):
                    found[entry.key.hex()] = digest(opened.to_polars() if entry.is_table else opened.to_object())
    return found


def findings(home):
    """What a thorough check finds; an error of the catalog is a finding, too."""
    try:
        with contextlib.closing(open_catalog(Settings(home=home))) as catalog:
            return [finding.what for finding in check(catalog, thorough=True)]
    except NectarError as error:
        return [type(error).__name__]


# a good home


def make(folder):
    """Inputs, a good home, and what is right: answers, what the name leads to, what is kept."""
    frame = pl.DataFrame({"i": range(ROWS), "s": [f"a text that is longer than twelve {i}" for i in range(ROWS)]})
    frame.write_parquet(folder / "source.parquet")
    (folder / "lines.csv").write_text("k,v\n" + "".join(f"{i % 5},{i}\n" for i in range(ROWS)))
    for path in ("source.parquet", "lines.csv"):
        os.utime(folder / path, (1e9, 1e9))
    home = folder / "good"
    right = answers(folder, home)
    with nectar.reuse(home=home, **CHOICES):
        made = pl.scan_parquet(folder / "source.parquet").select(pl.col("i").map_elements(helper(folder), pl.Int64))
        nectar.save(made.head(100), "team/named")
        nectar.save(made, "team/named")
        current().settle()
        catalog = current().catalog
        by_engine(catalog)
        catalog.observed.add(b"p" * 32, "read a file", 0.0)
        rates = LearnedRates("an engine")
        rates.learn(catalog, 10**6, 100.0, states=True)
        rates.remember(catalog)
        lost = [entry for entry in catalog.index.entries() if entry.key == nectar.open("team/named").key]
    name = named(home)
    assert not name.endswith("Error"), name
    assert answers(folder, home) == right
    with contextlib.closing(open_catalog(Settings(home=home))) as catalog:
        catalog.discard(lost)  # so that its recipe is followed
    assert findings(home) == []
    facts = {"answers": right, "named": name, "kept": kept(home)}
    assert len(facts["kept"]) >= 8, facts
    (folder / "right.json").write_text(json.dumps(facts))


def helper(folder):
    """A function of a module, so that recipes hold its text."""
    (folder / "helping.py").write_text(HELPER)
    sys.path.insert(0, str(folder))
    return __import__("helping").g


def by_engine(catalog):
    """A result as Spark writes it."""
    place = catalog.handover(BY_ENGINE, 10_000)
    with place:
        os.mkdir(place.path)
        table = pa.table({"a": list(range(2000)), "b": [str(number) for number in range(2000)]})
        pa.parquet.write_table(table, f"{place.path}/part-0.parquet")
        catalog.keep(BY_ENGINE, BY_ENGINE, place, table=True, seconds=1.0)


# damage


def damaged(home, dice):
    """One thing in a home is not what it was; what was done, and to what."""
    return dice.choice((file_damage, file_damage, file_damage, row_damage, row_damage, swap))(home, dice)


def kinds_of_files(home):
    """Files of a home by kind, so that each kind has its share of the damage."""
    found = {}
    for path in sorted(path for path in home.rglob("*") if path.is_file() and path.stat().st_size):
        kind = path.parent.name if path.suffix == ".json" and path.name != "manifest.json" else path.name
        found.setdefault("verified" if kind.startswith("verified-") else kind, []).append(path)
    return found


def file_damage(home, dice):
    """A flipped bit, a cut, a zeroed block or a zeroed file."""
    kind, paths = dice.choice(sorted(kinds_of_files(home).items()))
    path = dice.choice(paths)
    content = bytearray(path.read_bytes())
    how, at = dice.choice(("flip", "flip", "flip", "cut", "zeroed block", "zeroed")), dice.randrange(len(content))
    if how == "flip":
        content[at] ^= 1 << dice.randrange(8)
    elif how == "cut":
        del content[at:]
    elif how == "zeroed block":
        content[at : at + 512] = bytes(len(content[at : at + 512]))
    else:
        content[:] = bytes(len(content))
    path.write_bytes(content)
    return f"{how} in {kind}", kind


def swap(home, dice):
    """Two files of one kind have changed places."""
    several = {kind: paths for kind, paths in kinds_of_files(home).items() if len(paths) > 1}
    kind = dice.choice(sorted(several))
    one, other = dice.sample(several[kind], 2)
    aside = home / "aside"
    for old, new in ((one, aside), (other, one), (aside, other)):
        old.rename(new)
    return f"swapped {kind}", kind


REPORTED = ("names", "recipe_parts", "recipes")  # tables whose damage nobody else would notice
UNREPORTED = "recipes.since"  # until when a recipe that nobody can reach stays nevertheless: no answer depends on it
TABLES = ("entries", "names", "contents", "lengths", "versions", "recipes", "recipe_parts", "observed", "results",
          "made_from", "lookups", "counts", "function_texts", "files")  # fmt: skip


def row_damage(home, dice):
    """A value of a row is another one: a flipped bit, nothing, a piece, or that of another row."""
    with contextlib.closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as connection:
        table = dice.choice([table for table in TABLES if _rows(connection, table)])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "seal"]
        column, numbers_of = dice.choice(columns), _rows(connection, table)
        at, other = dice.choice(numbers_of), dice.choice(numbers_of)
        value, others = (
            connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (number,)).fetchone()[0]
            for number in (at, other)
        )
        how = dice.choice(("flip", "flip", "flip", "swap", "piece"))
        with contextlib.suppress(sqlite3.IntegrityError):
            if how == "swap":
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (others, at))
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, other))
            else:
                new = flipped(value, dice) if how == "flip" else piece(value, dice)
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, at))
        now = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (at,)).fetchone()
    return f"{how} in {table}.{column}" + (", which changed nothing" if now == (value,) else ""), table


def _rows(connection, table):
    return [row[0] for row in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]


def flipped(value, dice):
    """The same with one bit turned, as far as there are bits."""
    if isinstance(value, bytes) and value:
        content = bytearray(value)
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        return bytes(content)
    if isinstance(value, str) and value:
        at = dice.randrange(len(value))
        return value[:at] + chr(ord(value[at]) ^ 1 << dice.randrange(4)) + value[at + 1 :]
    if isinstance(value, int):
        return value ^ 1 << dice.randrange(40)
    return value * 2 + 1 if isinstance(value, float) else value


def piece(value, dice):
    """The beginning of a value."""
    return value[: dice.randrange(len(value))] if isinstance(value, (bytes, str)) and value else value


# one seed


def play(folder, right, seed):
    """What went wrong when a home was damaged; and what was done to it."""
    dice = random.Random(seed)
    home = folder / f"home-{seed}"
    shutil.copytree(folder / "good", home)
    wrong = []
    if dice.random() < 0.15:  # of a home in use: there are marks of what was verified
        time.sleep(0.06)
        answers(folder, home)
    done, what = damaged(home, dice)
    changed = "changed nothing" not in done
    if changed and not done.endswith(UNREPORTED) and what in REPORTED and not findings(home):
        wrong.append("check --thorough found nothing")
    if what in (*REPORTED, "versions") and dice.random() < 0.4:  # a rebuild takes a process, and a second
        name = named(home)
        wrong += [f"the name leads to {name}"] * (name != right["named"] and not name.endswith("Error"))
    told = answers(folder, home)
    wrong += [f"{name} is wrong" for name in told if told[name] != right["answers"][name]]
    stays = kept_if_possible(home)
    wrong += [f"{key[:12]} is kept wrong" for key in stays if right["kept"].get(key, stays[key]) != stays[key]]
    if dice.random() < 0.2:
        wrong += mended(home)
    shutil.rmtree(home)
    return done, wrong


def mended(home):
    """What `check` still finds after it has mended what it could; what SQLite finds in its own file is not mended."""
    try:
        with contextlib.closing(open_catalog(Settings(home=home))) as catalog:
            check(catalog, repair=True, thorough=True, grace=0.0)
            left = {finding.what for finding in check(catalog, thorough=True, grace=0.0)}
    except NectarError:
        return []
    return [] if "damaged index" in left else [f"{what} is left" for what in left - {"foreign file"}]


def kept_if_possible(home):
    """What is kept, unless the catalog cannot be opened."""
    try:
        return kept(home)
    except NectarError:
        return {}


def main(folder, first, last):
    """Plays the seeds, one after the other."""
    logging.disable(logging.CRITICAL)
    right = json.loads((folder / "right.json").read_text())
    for seed in range(first, last):
        print(json.dumps({"seed": seed}), flush=True)
        done, wrong = play(folder, right, seed)
        print(json.dumps({"seed": seed, "done": done, "wrong": wrong}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        make(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
