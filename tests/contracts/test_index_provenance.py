"""What every index remembers of how results came about, and what it answers about the graph."""

import sqlite3

import pytest
from tests.catalog.making import key
from tests.contracts.test_index import NOW, put

from nectar.catalog.index.schema import MIGRATIONS
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.model.lineage import FileRead, FunctionUsed, Made, Provenance, Sources


def wide(number: int) -> bytes:
    return number.to_bytes(32, "big")


def made(result: bytes, at=NOW, **changes) -> Made:
    return Made(result, b"p" * 32, "group_by", "me@host", at, 1.0, 10, 100, b"c" * 32, "polars 2", "etl.py:3")._replace(
        **changes
    )


def record(index, result: bytes, *above: bytes, files=(), functions=(), **changes) -> None:
    sources = Sources(tuple(files), tuple(functions), above, changes.pop("schema", None))
    index.record(Provenance(made(result, **changes), sources))


def keys_of(lineage) -> set[bytes]:
    return {each.key for each in lineage.results.values()}


def file(name: str, content: int = 0) -> FileRead:
    return FileRead(f"/data/{name}", wide(content), 7)


CLEAN = FunctionUsed(wide(901), "etl.clean", "etl.py:4", "def clean(x):\n    return x\n")
CLEAN_BEFORE = FunctionUsed(wide(902), "etl.clean", "etl.py:4", "def clean(x):\n    return 1\n")
TIDY = FunctionUsed(wide(903), "tools.etl.tidy", "etl.py:9", CLEAN.text)


def test_nothing_is_known_of_nothing(index):
    assert index.made([key(1)]) == {}
    assert index.schema_of(key(1)) is index.program_of(key(1)) is None
    assert index.function_texts([key(1)]) == {}
    for lineage in (
        index.trace_results([key(1)], "upstream"),
        index.trace_results([], "downstream"),
        index.trace_input("x.csv", "downstream"),
        index.trace_function("f", "downstream"),
    ):
        assert (lineage.start, lineage.results, lineage.names) == ((), {}, ())


def test_what_is_on_record_survives_the_result(index, another):
    put(index, 1)
    record(index, key(1), files=[file("a")], functions=[CLEAN], schema=b"columns")
    index.evict([key(1)], NOW)
    other = another()
    assert other.made([key(1), key(2)]) == {key(1): made(key(1))}
    assert other.schema_of(key(1)) == b"columns"
    assert other.program_of(key(1)) == b"p" * 32
    assert other.function_texts([CLEAN.digest, key(5)]) == {CLEAN.digest: CLEAN.text}
    assert [each.url for each in other.trace_results([key(1)], "upstream").files.values()] == ["/data/a"]


def test_of_two_accounts_the_first_stays(index):
    record(index, key(1), files=[file("a")])
    record(index, key(1), files=[file("b")], about="another")
    lineage = index.trace_results([key(1)], "upstream")
    assert [each.url for each in lineage.files.values()] == ["/data/a"]
    assert index.made([key(1)])[key(1)].about == "group_by"


def test_the_graph_in_both_directions(index):
    #  a.csv -> 1 -> 2 -> 4      b.csv -> 3 -> 4      5 has nothing to do with them
    record(index, wide(1), files=[file("a.csv")], functions=[CLEAN])
    record(index, wide(2), wide(1))
    record(index, wide(3), files=[file("b.csv")], functions=[TIDY])
    record(index, wide(4), wide(2), wide(3))
    record(index, wide(5), files=[file("c.csv")])
    up = index.trace_results([wide(4)], "upstream")
    assert keys_of(up) == {wide(number) for number in (1, 2, 3, 4)}
    assert {each.url for each in up.files.values()} == {"/data/a.csv", "/data/b.csv"}
    assert {each.name for each in up.functions.values()} == {"etl.clean", "tools.etl.tidy"}
    assert len(up.made_from) == 3
    assert keys_of(index.trace_results([wide(2)], "upstream")) == {wide(1), wide(2)}
    assert keys_of(index.trace_results([wide(1)], "downstream")) == {wide(1), wide(2), wide(4)}
    assert keys_of(index.trace_results([wide(1), wide(5)], "downstream")) == {wide(n) for n in (1, 2, 4, 5)}
    assert keys_of(index.trace_input("/data/a.csv", "downstream")) == {wide(1), wide(2), wide(4)}
    assert keys_of(index.trace_input("b.csv", "downstream")) == {wide(3), wide(4)}
    assert keys_of(index.trace_function("clean", "downstream")) == {wide(1), wide(2), wide(4)}
    assert keys_of(index.trace_function("etl.tidy", "downstream")) == {wide(3), wide(4)}


@pytest.mark.parametrize("part", ["csv", "ata/a.csv", "lean", "tl.clean", "%", "_.csv", "", "/", "."])
def test_pieces_of_a_name_are_not_the_name(index, part):
    record(index, wide(1), files=[file("a.csv")], functions=[CLEAN])
    assert not index.trace_input(part, "downstream").results
    assert not index.trace_function(part, "downstream").results


def test_a_file_with_other_content_is_the_same_place(index):
    record(index, wide(1), files=[file("a.csv", 1)])
    record(index, wide(2), files=[file("a.csv", 2)])
    assert keys_of(index.trace_input("a.csv", "downstream")) == {wide(1), wide(2)}
    assert len(index.trace_results([wide(1), wide(2)], "upstream").files) == 2


def test_versions_of_a_function_are_told_apart_and_texts_are_kept_once(index):
    record(index, wide(1), functions=[CLEAN_BEFORE])
    record(index, wide(2), functions=[CLEAN, TIDY])
    lineage = index.trace_results([wide(1), wide(2)], "upstream")
    assert sorted(each.digest for each in lineage.functions.values()) == [wide(901), wide(902), wide(903)]
    assert index.function_texts([CLEAN_BEFORE.digest])[CLEAN_BEFORE.digest] == CLEAN_BEFORE.text
    assert index._read(lambda c: c.execute("SELECT COUNT(*) FROM function_texts").fetchone()) == (2,)


def test_what_is_used_together_is_written_down_once(index):
    files = [file(f"day-{day}", day) for day in range(50)]
    for number in range(20):
        record(index, wide(number), files=files)
    assert index._read(lambda c: c.execute("SELECT COUNT(*) FROM stream_files").fetchone()) == (50,)
    for number in range(30, 50):
        record(index, wide(number), functions=[CLEAN, TIDY])
    assert index._read(lambda c: c.execute("SELECT COUNT(*) FROM kit_functions").fetchone()) == (2,)
    record(index, wide(20), files=files[:49])
    assert index._read(lambda c: c.execute("SELECT COUNT(*) FROM files").fetchone()) == (50,)


def test_made_from_something_that_is_not_on_record(index):
    put(index, 1, about="kept by an older version")
    record(index, key(2), key(1), wide(77))
    lineage = index.trace_results([key(2)], "upstream")
    assert {each.about for each in lineage.results.values()} == {"kept by an older version", "", "group_by"}
    record(index, key(1), files=[file("a")], about="told at last")
    lineage = index.trace_results([key(2)], "upstream")
    assert {each.about for each in lineage.results.values()} == {"told at last", "", "group_by"}
    assert [each.url for each in lineage.files.values()] == ["/data/a"]


def test_circles_come_to_an_end(index):
    record(index, wide(1), wide(2), wide(1))
    record(index, wide(2), wide(1))
    for direction in ("upstream", "downstream"):
        assert keys_of(index.trace_results([wide(1)], direction)) == {wide(1), wide(2)}


def test_names_that_point_to_what_is_found(index):
    record(index, wide(1))
    record(index, wide(2), wide(1))
    index.bind("old", wide(1), "me", NOW)
    index.bind("top", wide(1), "me", NOW, "why not")
    index.bind("top", wide(2), "you", NOW + 1)
    lineage = index.trace_results([wide(1)], "downstream")
    assert [(name.name, name.version, lineage.results[at].key) for name, at in lineage.names] == [
        ("old", 1, wide(1)),
        ("top", 1, wide(1)),
        ("top", 2, wide(2)),
    ]


def test_deep_and_wide(index):
    """A chain of a thousand, and a thousand beside each other, each with files and functions of its own."""
    for number in range(1, 1001):
        record(index, wide(number), *[wide(number - 1)] * (number > 1), files=[file(f"deep-{number}")])
        record(index, wide(5000 + number), wide(1000), functions=[CLEAN._replace(digest=wide(9000 + number))])
    assert len(index.trace_results([wide(1000)], "upstream").results) == 1000
    assert len(index.trace_results([wide(1000)], "upstream").files) == 1000
    assert len(index.trace_input("deep-1", "downstream").results) == 2000
    assert len(index.trace_function("clean", "upstream").results) == 2000
    assert len(index.trace_function("clean", "upstream").functions) == 1000


def test_a_catalog_of_format_2_is_brought_up_to_date(tmp_path):
    path = tmp_path / "catalog.db"
    with sqlite3.connect(path) as old:
        for statements in MIGRATIONS[:2]:
            for statement in statements:
                old.execute(statement)
        old.execute("PRAGMA user_version=2")
        old.execute(
            "INSERT INTO entries VALUES (?, ?, 'arrow', 'aa/bb', ?, 100, 1, 10, 2.5, 5.0, 6.0, 3, NULL, 1, 1, NULL, "
            "NULL, 'host:1', ?, 0.0, 'group_by of clicks')",
            (key(1), key(2), b"m" * 32, b""),
        )
        old.execute("INSERT INTO names VALUES ('team/a', 1, ?, 5.0, 'host:1')", (key(1),))
    old.close()
    index = SqliteIndex(path)
    assert index.lookup([key(1)])[key(1)].pinned
    assert index.resolve("team/a").key == key(1)
    assert index.resolve("team/a").note == ""
    assert index.made([key(1)])[key(1)].about == "group_by of clicks"
    record(index, key(3), key(1))
    lineage = index.trace_results([key(3)], "upstream")
    assert keys_of(lineage) == {key(1), key(3)}
    assert [name.name for name, _ in lineage.names] == ["team/a"]
    index.close()
    SqliteIndex(path).close()
    read_only = SqliteIndex(path, read_only=True)
    assert keys_of(read_only.trace_results([key(3)], "upstream")) == {key(1), key(3)}
    read_only.close()
