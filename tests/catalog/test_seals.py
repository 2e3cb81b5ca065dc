"""Rows that answers depend on: one that is not as it was written counts for nothing, and is found."""

import sqlite3

import pytest
from tests.catalog.making import key, manual_clock, opened, value

from nectar.catalog.check import check
from nectar.catalog.index.schema import MIGRATIONS
from nectar.errors import DamagedNameError
from nectar.model.entry import Content, Length
from nectar.model.lineage import Made, Provenance, Sources
from nectar.store.read import Result


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path / "home", manual_clock())
    yield catalog
    catalog.close()


def change(catalog, statement):
    with sqlite3.connect(catalog.index.path) as connection:
        connection.execute(statement)
    connection.close()


def kinds(catalog, **how):
    return [finding.what for finding in check(catalog, thorough=True, **how)]


CHANGES = {
    "the key of the newest": "UPDATE names SET key = zeroblob(32) WHERE version = 2",
    "the key of another version": "UPDATE names SET key = (SELECT key FROM names WHERE version = 1) WHERE version = 2",
    "the name of the newest": "UPDATE names SET name = 'team/x' WHERE version = 2",
    "the number of the newest": "UPDATE names SET version = 66 WHERE version = 2",
    "the newest is gone": "DELETE FROM names WHERE version = 2",
    "a name of another type": "UPDATE names SET since = 'then' WHERE version = 2",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES.keys())
def test_a_damaged_name_leads_to_nothing_until_it_is_saved_again(catalog, statement):
    for number in (1, 2):
        catalog.bind("team/a", key(number))
    catalog.bind("team/b", key(3))
    assert catalog.index.resolve("team/a").key == key(2)
    change(catalog, statement)
    with pytest.raises(DamagedNameError, match="save it again"):
        catalog.index.resolve("team/a")
    with pytest.raises(DamagedNameError):
        catalog.index.history("team/a")
    assert [name.name for name in catalog.index.names()] == ["team/b"]
    assert "damaged name" in kinds(catalog)
    catalog.bind("team/a", key(4))
    assert catalog.index.resolve("team/a").key == catalog.index.history("team/a")[0].key == key(4)
    assert catalog.index.resolve("team/b").key == key(3)


def test_repair_removes_a_damaged_name_and_says_so_in_its_history(catalog):
    for number in (1, 2):
        catalog.bind("team/a", key(number))
    change(catalog, CHANGES["the key of the newest"])
    assert kinds(catalog, repair=True) == ["damaged name"]
    assert kinds(catalog) == []
    assert catalog.index.resolve("team/a") is None
    removed, first = catalog.index.history("team/a")
    assert (removed.removed, removed.note, first.key) == (True, "its row in the catalog was damaged", key(1))


def test_what_is_remembered_of_an_input_is_forgotten_if_it_is_damaged(catalog):
    catalog.remember({b"a": Content(key(1), True), b"b": Content(key(2), True)})
    catalog.remember_lengths([Length(b"p", 10, b"s", True, key(1)), Length(b"p", 20, b"t", True, key(2))])
    assert kinds(catalog) == []
    change(catalog, "UPDATE contents SET digest = (SELECT digest FROM contents WHERE origin = x'62')")
    change(catalog, "UPDATE lengths SET size = 21 WHERE size = 20")
    assert catalog.known([b"a", b"b"]) == {b"b": Content(key(2), True)}
    assert [length.size for length in catalog.lengths([b"p"])[b"p"]] == [10]
    assert kinds(catalog, repair=True) == ["damaged row", "damaged row"]
    assert kinds(catalog) == []


ODD = ("-1", str(2**62), "20000000000", "x'fffe'", "'x'", "1.5", "0", "zeroblob(40)", "NULL")


@pytest.mark.parametrize("column", ["columns", "program"])
@pytest.mark.parametrize("odd", ODD)
def test_a_damaged_record_of_a_result_counts_as_not_there(catalog, column, odd):
    if (column, odd) == ("program", "NULL"):
        pytest.skip("it cannot be")
    for number in (1, 2):
        made = Made(key(number), key(8), "", "me", 1.0, 1.0, 1, 1, b"c" * 32)
        catalog.index.record(Provenance(made, Sources(schema=b"columns", made_from=(key(9),))))
    assert kinds(catalog) == []
    change(catalog, f"UPDATE results SET {column} = {odd} WHERE key = x'{key(1).hex()}'")
    assert (catalog.index.schema_of(key(1)), catalog.index.program_of(key(1))) == (None, None)
    assert (catalog.index.schema_of(key(2)), catalog.index.program_of(key(2))) == (b"columns", key(8))
    assert kinds(catalog, repair=True) == ["damaged row"]
    assert kinds(catalog) == []
    assert (catalog.index.schema_of(key(1)), catalog.index.program_of(key(1))) == (None, None)
    assert len(catalog.index.trace_results([key(9)], "downstream").results) == 3, "what it came from is known still"


def test_columns_of_another_result_are_none_of_this_one(catalog):
    for number in (1, 2):
        made = Made(key(number), key(8), "", "me", 1.0, 1.0, 1, 1, b"c" * 32)
        catalog.index.record(Provenance(made, Sources(schema=b"columns %d" % number)))
    change(catalog, "UPDATE results SET columns = x'00', seal = (SELECT seal FROM results WHERE number = 2)")
    assert catalog.index.schema_of(key(1)) is catalog.index.schema_of(key(2)) is None


def test_rows_of_older_catalogs_have_no_seals(tmp_path):
    (tmp_path / "home").mkdir()
    with sqlite3.connect(tmp_path / "home" / "catalog.db") as connection:
        for migration in MIGRATIONS[:5]:
            for statement in migration:
                connection.execute(statement)
        connection.execute("PRAGMA user_version=5")
        connection.execute("INSERT INTO names VALUES ('team/a', 1, ?, 1.0, 'somebody', '')", (key(1),))
        connection.execute("INSERT INTO contents VALUES (x'61', ?, 1, 1.0)", (key(1),))
        connection.execute(
            "INSERT INTO results VALUES (1, ?, ?, '', '', 1, 1, 1, 1, x'', '', '', x'6162', 1)", (key(1), key(8))
        )
    connection.close()
    catalog = opened(tmp_path / "home", manual_clock())
    assert catalog.index.resolve("team/a").key == key(1)
    assert catalog.known([b"a"]) == {b"a": Content(key(1), True)}
    assert (catalog.index.schema_of(key(1)), catalog.index.program_of(key(1))) == (b"ab", key(8))
    assert kinds(catalog) == []
    catalog.bind("team/a", key(2))
    assert [name.key for name in catalog.index.history("team/a")] == [key(2), key(1)]
    assert kinds(catalog) == []
    catalog.close()


COLUMNS = ("program", "kind", "location", "manifest", "size", "files", "row_count", "seconds", "created", "used",
           "hits", "inline", "pinned", "rebuildable", "recipe", "spans", "producer", "protected")  # fmt: skip


@pytest.mark.parametrize("size", [10, 5000], ids=["inline", "a file"])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_row_with_a_value_of_another_type_ends_no_program(catalog, column, size):
    for number, odd in enumerate(("'x'", "x'ff00ff'", "9e999", "-1", str(2**62), "zeroblob(40)", "1.5")):
        catalog.keep(key(number), key(0), value(number, size))
        change(catalog, f"UPDATE entries SET {column} = {odd} WHERE key = x'{key(number).hex()}'")
        (known,) = catalog.lookup([key(number)], [key(0)])
        if known.entry is None:
            continue
        assert type(known.entry.seconds) is float
        opened_ = catalog.open(known.entry)
        if isinstance(opened_, Result):
            with opened_:
                assert opened_.to_object() == value(number, size)
    list(catalog.index.entries())
    catalog.inquire([key(0)])
    catalog.collector.enforce()
