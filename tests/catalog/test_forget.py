"""What is forgotten is gone for good: no byte of it is left in any file of the home; the rest is whole."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
import zlib

import polars as pl
import pytest
from click.testing import CliRunner
from tests.catalog.making import entry, key, opened, read

from nectar.catalog.check import check
from nectar.catalog.forget import forget
from nectar.cli.app import main
from nectar.model.entry import RECIPE_LABEL, Job, JobPart, Version
from nectar.model.forgetting import Asked
from nectar.model.lineage import FileRead, FunctionUsed, Sources
from nectar.store.layout import MANIFEST

TEXT = "Ada Lovelace 1815"
FILE = "/data/people/ada-lovelace.parquet"
OTHER = "/data/orders.parquet"


def holding(home, *texts):
    """Files of a home that hold one of the texts: as they lie, and in the rows of the catalog unpacked."""
    forms = [text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-32-le")]
    found = []
    for folder, _, names in os.walk(home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            found += [name for form in forms if form in content]
    connection = sqlite3.connect(home / "catalog.db")
    for table, column in (("recipe_parts", "content"), ("function_texts", "content"), ("jobs", "content")):
        for (packed,) in connection.execute(f"SELECT {column} FROM {table}"):
            found += [table for form in forms if form in zlib.decompress(packed)]
    connection.close()
    return sorted(set(found))


def fill(catalog):
    """Everything that a catalog holds, about what is to be forgotten (1 to 5) and about something else (11 to 15)."""
    index, now = catalog.index, catalog.clock.now()
    words = pl.DataFrame({"a": [f"{number} {TEXT}" for number in range(3000)]})
    others = pl.DataFrame({"a": [f"{number} of others" for number in range(3000)]})
    for first, text, file, frame in ((1, TEXT, FILE, words), (11, "somebody else", OTHER, others)):
        function = FunctionUsed(key(first + 50), f"etl.f{first}", "etl.py:1", f"def f():\n    return {text!r}\n")
        from_file = Sources((FileRead(file, key(first + 60), 10),), (function,), site=f"etl.py:3 ({text})")
        catalog.keep(key(first), key(1), frame, table=True, seconds=9.0)  # in its columns
        catalog.keep(key(first + 1), key(1), [text] * 10, seconds=9.0)  # in a pickle, within the row
        catalog.keep(key(first + 2), key(1), b"1" * 3000, seconds=9.0, about=f"f(name={text!r})")
        recipe = catalog.put_recipe([b"recipe", text.encode(), f"plan {first}".encode()])
        made = catalog.keep(
            key(first + 3), key(1), b"2" * 3000, seconds=9.0, sources=lambda it=from_file: it, recipe=recipe
        )
        catalog.keep(key(first + 4), key(1), b"3" * 3000, seconds=9.0, made_from=[made.entry])  # from the file as well
        index.add_version(Version(f"{RECIPE_LABEL}{key(first + 3).hex()}", key(1), recipe, now))
        catalog.add_version("etl.f", key(first), f'{{"text": "{text}"}}'.encode())
        catalog.bind(f"team/x{first}", key(first + 20), "first")
        catalog.bind(f"team/x{first}", key(first + 21), f"about {text}")
        catalog.bind(f"team/y{first}", key(first + 3), "of the file")
        index.add_observed(key(first), f"reads {text}", now)
        index.log(Job(now, key(1), key(1), 0.0, (JobPart(key(1), key(1), "hit", 0.0, 0, {"x": text}),)), 100)


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    catalog = opened(home)
    fill(catalog)
    catalog.close()
    (home / "programs").mkdir(exist_ok=True)
    (home / "programs" / "1.json").write_text(json.dumps({"sites": {f"/home/{TEXT}/etl.py:3": [1, 1, 1, 1]}}))
    (home / "programs" / "2.json").write_text(json.dumps({"sites": {"/home/etl.py:3": [1, 1, 1, 1]}}))
    return home


def forgotten(home, asked, *, apply=True):
    catalog = opened(home)
    try:
        return forget(catalog, home, asked, apply=apply)
    finally:
        catalog.close()


def test_no_byte_of_a_text_is_left(home):
    assert {"catalog.db", "1.json", "recipe_parts", "function_texts", "jobs"} <= set(holding(home, TEXT))
    done = forgotten(home, Asked(texts=(TEXT,)))
    assert done.left == ()
    assert holding(home, TEXT) == []
    assert {key(1), key(2), key(3), key(4)} <= set(done.keys)
    assert [os.path.basename(path) for path in done.files] == ["1.json"]


def test_no_byte_is_left_of_a_file_and_of_what_was_made_from_it(home):
    assert holding(home, FILE)
    done = forgotten(home, Asked(files=(FILE,)))
    assert done.left == ()
    assert holding(home, FILE) == []
    assert set(done.keys) == {key(4), key(5)}
    assert done.names == ("team/y1",)


def test_a_folder_is_all_files_in_it(home):
    assert set(forgotten(home, Asked(files=("/data",))).keys) == {key(4), key(5), key(14), key(15)}
    assert holding(home, "/data/") == []


def test_the_rest_stays_and_is_whole(home):
    forgotten(home, Asked(texts=(TEXT,), files=(FILE,)))
    catalog = opened(home)
    assert [read(catalog, number, 1) is not None for number in (2, 3, 4, 5, 12, 13, 14, 15)] == [False] * 4 + [True] * 4
    with catalog.open(catalog.index.lookup([key(11)])[key(11)]) as result:
        assert result.to_polars().height == 3000
    assert check(catalog) == []
    assert catalog.index.broken_rows() == []
    assert catalog.index.broken_recipes() == []
    assert not catalog.index.recount(apply=False)
    assert catalog.index.sound() == []
    assert [name.name for name in catalog.index.names()] == ["team/x11", "team/y11"]
    assert catalog.index.resolve("team/x1") is None, (
        "its newest version is gone, and the one before does not take its place"
    )
    assert catalog.index.history("team/x1")[-1].key == key(21)
    assert [each.name for each in catalog.index.trace_results([key(14)], "upstream").functions.values()] == ["etl.f11"]
    catalog.close()


def test_a_dry_run_tells_the_same_and_changes_nothing(home):
    asked = Asked(texts=(TEXT,), files=(FILE,), people=("bob",))
    before = dump(home)
    told = forgotten(home, asked, apply=False)
    assert dump(home) == before
    assert (home / "programs" / "1.json").exists()
    done = forgotten(home, asked)
    assert (told.rows, told.keys, told.names, told.files) == (done.rows, done.keys, done.names, done.files)
    assert dump(home) != before
    again = forgotten(home, asked)
    assert not again, "a second time there is nothing left to forget"


def dump(home):
    connection = sqlite3.connect(home / "catalog.db")
    lines = list(connection.iterdump())
    connection.close()
    return lines


def test_of_a_person_the_name_goes_and_what_they_made_stays(home):
    catalog = opened(home)
    catalog.index.add(entry(90, producer="bob@desk"), "", 0.0, catalog.clock.now())
    catalog.index.bind("team/b", key(90), "bob@desk", catalog.clock.now(), "first")
    catalog.index.bind("team/b", key(91), "bob@desk", catalog.clock.now(), "second")
    catalog.index.bind("team/b", key(92), "bobby@desk", catalog.clock.now(), "third")
    catalog.close()
    done = forgotten(home, Asked(people=("bob",)))
    assert holding(home, "bob@desk") == []
    assert done.rows == {"entries": 1, "names": 2}
    catalog = opened(home)
    assert [each.by for each in catalog.index.history("team/b")] == ["bobby@desk", "", ""]
    assert catalog.index.lookup([key(90)])[key(90)].producer == ""
    assert catalog.index.broken_rows() == []
    catalog.close()


def test_a_result_that_somebody_is_reading_is_told_of(home):
    catalog = opened(home)
    kept = catalog.index.lookup([key(1)])[key(1)]
    leases = catalog.lease([kept], 3600)
    done = forget(catalog, home, Asked(texts=(TEXT,)), apply=True)
    assert ["somebody is reading" in each for each in done.left][0]
    catalog.end(leases)
    assert forget(catalog, home, Asked(texts=(TEXT,)), apply=True).left == ()
    catalog.close()
    assert not [folder for folder, _, names in os.walk(home) if MANIFEST in names and key(1).hex() in folder]


def test_a_reader_of_the_catalog_is_told_of_as_long_as_it_reads(home):
    reader = sqlite3.connect(home / "catalog.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM entries").fetchone()
    catalog = opened(home)
    done = forget(catalog, home, Asked(texts=(TEXT,)), apply=True)
    assert [each for each in done.left if "another process is reading it" in each]
    reader.close()
    assert forget(catalog, home, Asked(texts=(TEXT,)), apply=True).left == ()
    catalog.close()
    assert holding(home, TEXT) == []


def test_texts_that_were_cut_off_count_by_their_beginnings():
    asked = Asked(texts=("a long password of somebody",))
    assert asked.is_in("f(x='a long pas...')")
    assert not asked.is_in("f(x='a lo...')")
    assert asked.is_in('"a long password of somebody"')
    assert Asked(texts=('say "x"\n',)).is_in(json.dumps('they say "x"\n there'))
    assert Asked(texts=("müller",)).is_in("f(name='m%C3%BCller')")


# the command


def run(home, *arguments):
    return CliRunner().invoke(main, ["forget", *arguments, "--home", str(home)])


def test_the_command_tells_and_then_does_it(home):
    told = run(home, "--text", TEXT)
    assert told.exit_code == 0
    assert "--apply does it" in told.output
    assert holding(home, TEXT)
    done = run(home, "--text", TEXT, "--apply", "--json")
    assert done.exit_code == 0
    record = json.loads(done.output)
    assert set(record) == {"home", "applied", "rows", "results", "names", "files", "left"}
    assert record["applied"]
    assert record["left"] == []
    assert holding(home, TEXT) == []
    assert "Nothing is known of it" in run(home, "--text", TEXT, "--apply").output


def test_the_command_fails_while_something_is_left(home):
    (home / "notes.txt").write_text(f"about {TEXT}")
    done = run(home, "--text", TEXT, "--apply")
    assert done.exit_code == 1
    assert "notes.txt: it holds it" in done.output


@pytest.mark.parametrize("arguments", [(), ("--text", "abc"), ("--apply",), ("--text", "")])
def test_wrong_usage(home, arguments):
    assert run(home, *arguments).exit_code == 2


def test_a_home_without_a_catalog_is_left_alone(tmp_path):
    done = run(tmp_path / "none", "--text", TEXT, "--apply")
    assert done.exit_code == 0
    assert not (tmp_path / "none").exists()


PROGRAM = """
import nectar, numpy, polars as pl, sys, time
PERSON = "Ada Lovelace 1815"
nectar.enable()
@nectar.memo
def f(name):
    time.sleep(0.05)
    return numpy.array([name] * 5)
def upper(name):
    time.sleep(0.001)
    return name.upper() + PERSON
f("Ada Lovelace 1815")
frame = pl.scan_parquet("ada-lovelace.parquet").with_columns(pl.col("name").map_elements(upper, return_dtype=pl.String))
frame.filter(pl.col("name") != "Ada Lovelace 1815").collect()
nectar.save(frame, "team/people", note="with Ada Lovelace 1815")
nectar.disable()
"""


def test_all_that_programs_leave_behind(tmp_path):
    """Memoised calls, queries, names, recipes, traces, histories and sites, as the programs themselves write them."""
    home = tmp_path / "home"
    pl.DataFrame({"name": [TEXT, "x"] * 100}).write_parquet(tmp_path / "ada-lovelace.parquet")
    (tmp_path / "etl.py").write_text(PROGRAM)
    environment = {**os.environ, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0"}
    subprocess.run([sys.executable, "etl.py"], cwd=tmp_path, env=environment, check=True)
    assert holding(home, TEXT)
    assert holding(home, "ada-lovelace")
    done = run(home, "--text", TEXT, "--file", str(tmp_path / "ada-lovelace.parquet"), "--apply")
    assert done.exit_code == 0, done.output
    assert holding(home, TEXT, "ada-lovelace.parquet") == []
    assert run(home, "--text", str(tmp_path), "--apply").exit_code == 0
    assert holding(home, str(tmp_path)) == []


def test_a_result_that_cannot_be_opened_now_is_told_of_and_the_rest_goes(home):
    failing = []

    def reach(step):
        if failing and step == "open part":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    catalog = opened(home, reach=reach)
    catalog.keep(key(30), key(1), b"4" * 3000)
    catalog.log(Job(0.0, key(1), key(1), 0.0, (JobPart(key(1), key(1), "hit", 0.0, 0, {"x": TEXT}),)))
    failing.append(True)
    done = forget(catalog, home, Asked(texts=(TEXT,)), apply=True)
    assert done.rows["jobs"]
    assert any(key(30).hex()[:12] in each and os.strerror(errno.EMFILE) in each for each in done.left)
    failing.clear()
    assert read(catalog, 30) == b"4" * 3000
    catalog.close()
