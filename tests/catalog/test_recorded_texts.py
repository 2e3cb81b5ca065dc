"""Whatever is written into a catalog passes through the redaction: every column that can hold a text has a case here.

A column that is added to the schema has to be added here, too: either to what is written with a canary, or to those
that hold no text of people, with the reason.
"""

import sqlite3
import zlib

import pytest
from tests.catalog.making import entry, key

from nectar.catalog.index.sqlite import SqliteIndex
from nectar.errors import UserError
from nectar.model.entry import Job, JobPart
from nectar.model.lineage import FileRead, FunctionUsed, Made, Provenance, Sources

CANARY = "hunter2canary"
URL = f"postgresql://bob:{CANARY}@db/x"
NOW = 1_000_000.0

DIGESTS = "digests of contents, keys, programs and places"
NUMBERED = "numbers of rows"
MADE_UP = "made up by Nectar: random, or the name of a host, a user or a place in the store"
OF_CODE = "names and places of functions and scripts, as Python has them"
NAMED = "names that people give to results, to be found by them: letters, digits and a few signs"
CHECKED = "parts of recipes: `put_recipe` refuses what looks like a credential"
PACKED = "packed values whose texts are digests"
THE_RESULT = "the bytes of a result, which are the user's"
SCHEMA = "names and types of columns; left out if anything in it looks like a credential"
NO_TEXT = {
    "entries": {"key": DIGESTS, "program": DIGESTS, "kind": MADE_UP, "location": MADE_UP, "manifest": DIGESTS,
                "inline": THE_RESULT, "recipe": DIGESTS, "spans": PACKED, "producer": MADE_UP, "signature": DIGESTS},
    "lookups": {"program": DIGESTS}, "doomed": {"location": MADE_UP}, "counts": {"what": MADE_UP},
    "passes": {"what": MADE_UP},
    "leases": {"token": MADE_UP, "location": MADE_UP, "holder": MADE_UP},
    "reservations": {"key": DIGESTS, "token": MADE_UP, "holder": MADE_UP},
    "names": {"name": NAMED, "key": DIGESTS, "by_whom": MADE_UP, "seal": DIGESTS},
    "recipes": {"identity": DIGESTS, "parts": DIGESTS}, "recipe_parts": {"identity": DIGESTS, "content": CHECKED},
    "versions": {"label": OF_CODE, "program": DIGESTS, "trace": DIGESTS},
    "contents": {"origin": DIGESTS, "digest": DIGESTS, "seal": DIGESTS},
    "lengths": {"place": DIGESTS, "stamp": DIGESTS, "digest": DIGESTS, "seal": DIGESTS},
    "observed": {"program": DIGESTS},
    "results": {"key": DIGESTS, "program": DIGESTS, "by_whom": MADE_UP, "checksum": DIGESTS, "columns": SCHEMA,
                "seal": DIGESTS},
    "streams": {"identity": DIGESTS}, "files": {"identity": DIGESTS}, "kits": {"identity": DIGESTS},
    "functions": {"digest": DIGESTS, "name": OF_CODE, "place": OF_CODE, "text": DIGESTS},
    "function_texts": {"identity": DIGESTS},
}  # fmt: skip
WRITTEN = {
    ("entries", "about"), ("names", "note"), ("observed", "told"), ("jobs", "content"), ("results", "about"),
    ("results", "environment"), ("results", "site"), ("files", "url"), ("function_texts", "content"),
}  # fmt: skip


@pytest.fixture
def index(tmp_path):
    index = SqliteIndex(tmp_path / "catalog.db")
    yield index
    index.close()


def write_everything(index):
    """A canary is handed over for every text that the index takes."""
    index.add(entry(1, about=f"rows(dsn='{URL}')"), "", 0.0, NOW)
    index.add(entry(2, about=f"rows(password='{CANARY}')"), "", 0.0, NOW)
    index.bind("team/a", key(1), "me", NOW, f"from {URL}")
    index.unbind("team/a", "me", NOW, f"moved to {URL}")
    index.add_observed(key(1), f"opens {URL}", NOW)
    part = JobPart(key(1), key(2), "hit", 0.0, details={"url": URL, "password": CANARY})
    index.log(Job(NOW, key(1), key(2), 0.0, (part,), ((URL, 1),)), 10)
    made = Made(key(3), key(1), f"read {URL}", "me", NOW, 0.0, 1, 1, b"", f"polars at {URL}", f"etl.py:3 {URL}")
    function = FunctionUsed(key(9), "etl.f", "etl.py:1", f"def f():\n    password = '{CANARY}'\n    return '{URL}'\n")
    index.record(Provenance(made, Sources((FileRead(URL, key(8)),), (function,), (key(2),), URL.encode())))
    index.record_source(key(4), [key(1)])


def cells(path):
    """Every text and every blob of a catalog: table, column, value; what is compressed is given as it was."""
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for column, kind in connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall():
            if kind in ("TEXT", "BLOB"):
                for (value,) in connection.execute(f"SELECT {column} FROM {table}").fetchall() or [(None,)]:
                    content = value.encode() if isinstance(value, str) else value
                    try:
                        content = zlib.decompress(content)
                    except (zlib.error, TypeError):
                        pass
                    yield table, column, content
    connection.close()


def test_nothing_that_is_written_holds_the_canary(index):
    write_everything(index)
    found = list(cells(index.path))
    assert [place for *place, content in found if content and CANARY.encode() in content] == []
    filled = {(table, column) for table, column, content in found if content and b"..." in content}
    assert filled == WRITTEN, "each of these was written, and the canary left out of it"


def test_every_column_is_accounted_for(index):
    write_everything(index)
    columns = {(table, column) for table, column, _ in cells(index.path)}
    accounted = {(table, column) for table, reasons in NO_TEXT.items() for column in reasons} | WRITTEN
    assert columns - accounted == set(), "who writes it has to redact it: add it to what the test writes"
    assert accounted - columns == set()


def test_files_are_found_by_the_address_they_were_read_from(index):
    write_everything(index)
    assert len(index.trace_input(URL, "downstream").results) == 1


@pytest.mark.parametrize("part", [URL.encode(), f"password={CANARY}".encode(), b"\x80AKIAIOSFODNN7EXAMPLE\x00"])
def test_a_part_of_a_recipe_that_looks_like_a_credential_is_refused(tmp_path, part):
    from tests.catalog.making import opened

    catalog = opened(tmp_path / "home")
    with pytest.raises(UserError, match="may be a credential"):
        catalog.put_recipe([b"whole", part])
    with pytest.raises(UserError, match="may be a credential"):
        catalog.add_version("etl.f", key(1), part)
    assert catalog.index.totals().recipes == 0
    catalog.close()
