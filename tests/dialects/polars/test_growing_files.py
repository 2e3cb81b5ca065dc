"""Files that had lines appended: only the new lines are read, and the answer is that of plain Polars."""

import os
import zlib

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.incremental import extents

FORMS = ["csv", "ndjson"]


def lines(form, start, count, header=False):
    rows = pl.DataFrame(
        {"k": [f"k{at % 3}" for at in range(start, start + count)], "v": range(start, start + count)},
    ).with_columns(f=pl.col("v") / 4, t=pl.when(pl.col("v") % 5 > 0).then(pl.lit('a "quoted", text')))
    return rows.write_ndjson() if form == "ndjson" else rows.write_csv(include_header=header)


class Log:
    """A file to which lines are appended."""

    def __init__(self, folder, form):
        self.form, self.rows, self.path = form, 0, folder / f"log.{form}"

    def grow(self, count=150):
        header = not self.path.exists()
        with open(self.path, "a", newline="") as file:
            file.write(lines(self.form, self.rows, count, header))
        self.rows += count

    def scan(self, **options):
        return getattr(pl, f"scan_{self.form}")(self.path, **options)


QUERIES = {
    "rows": lambda rows: rows.filter(pl.col("v") % 2 == 0).with_columns(w=pl.col("v") + 1),
    "groups": lambda rows: rows.group_by("k").agg(pl.col("v").sum(), pl.len(), pl.col("f").mean(), pl.col("t").last()),
    "totals": lambda rows: rows.select(pl.col("v").sum(), pl.col("t").null_count(), pl.col("f").max()),
    "sorted": lambda rows: rows.sort("v", descending=True).head(5),
    "distinct": lambda rows: rows.select("k", "t").unique(maintain_order=True),
}


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def copied(monkeypatch):
    """The stretches that were read since last asked, as their beginnings and ends."""
    found = []

    def copy(run, to):
        found.append((run[0].start, run[-1].upto.size))
        return before(run, to)

    before = extents._copy
    monkeypatch.setattr(extents, "_copy", copy)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.fixture
def computed(monkeypatch):
    """For each query put together since last asked, the runs of parts that were computed."""
    found = []

    def advance(parts, *args):
        done = before(parts, *args)
        if done is not None:
            found.append((len(done.used), [(piece.start, piece.end) for piece in done.new]))
        return done

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    return lambda: [found.pop(0) for _ in range(len(found))]


def checked(query):
    """The answer under Nectar is that of plain Polars, or the error is."""

    def answer():
        try:
            return query().collect()
        except pl.exceptions.PolarsError as error:
            return type(error)

    mine = answer()
    session.current().settle()
    with nectar.reuse(off=True):
        plain = answer()
    if isinstance(plain, type) or isinstance(mine, type):
        assert mine is plain
    else:
        assert_frame_equal(mine, plain, check_row_order=False, rel_tol=1e-9)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("form", FORMS)
def test_only_new_lines_are_read(tmp_path, form, name, copied):
    log = Log(tmp_path, form)
    ends = []
    for _ in range(5):
        log.grow()
        ends.append(log.path.stat().st_size)
        copied()
        checked(lambda: QUERIES[name](log.scan()))
    assert copied() == [(ends[3], ends[4])]


def test_what_was_known_is_used_at_once(tmp_path, computed):
    log = Log(tmp_path, "csv")
    for _ in range(4):
        log.grow()
        checked(lambda: QUERIES["groups"](log.scan()))
    assert computed() == [(0, [(0, 2)]), (1, [(2, 3)]), (1, [(3, 4)])]


def test_a_result_of_long_ago_is_a_part_too(tmp_path, computed, copied):
    log = Log(tmp_path, "csv")
    ends = []
    for at in range(4):
        log.grow()
        ends.append(log.path.stat().st_size)
        checked(lambda: QUERIES["rows"](log.scan()))
        if at in (0, 3):
            computed(), copied()
            checked(lambda: QUERIES["rows"](log.scan().filter(pl.col("v") != 7)))
    assert computed() == [(1, [])]
    assert copied() == [(ends[0], ends[3])], "three appends, read in one"


def test_without_its_last_line_end_a_file_is_not_cut(tmp_path, computed):
    log = Log(tmp_path, "csv")
    log.path.write_text("k,v\na,1\nb,2")
    checked(lambda: log.scan().filter(pl.col("v") > 0))
    with open(log.path, "a") as file:
        file.write("3\nc,4\n")
    checked(lambda: log.scan().filter(pl.col("v") > 0))
    assert computed() == []


def test_lines_that_end_within_quotes(tmp_path, copied):
    path = tmp_path / "log.csv"
    path.write_text("k,v\na,1\n")
    schema = {"k": pl.String, "v": pl.String}
    query = lambda: pl.scan_csv(path, schema=schema).filter(pl.col("k") != "z")
    checked(query)
    for more in ('b,"2\n', 'c,\nd"\n', 'e,"5\n6"\n'):
        with open(path, "a") as file:
            file.write(more)
        checked(lambda: pl.scan_csv(path, schema=schema, quote_char=None).filter(pl.col("k") != "z"))
        copied()
        checked(query)
    assert copied() == [(19, 27)]


OTHER_BYTES = {
    "of equal length": lambda old, new: old.replace(b"k1", b"k9") + new,
    "one byte before the seal": lambda old, new: old[:-2] + b"7\n" + new,
    "shorter and grown again": lambda old, new: old[: old.index(b"\n", 200) + 1] + new * 3,
    "another beginning": lambda old, new: old[:4] + new + old,
    "the new lines first": lambda old, new: old[: old.index(b"\n") + 1] + new + old[old.index(b"\n") + 1 :],
}


@pytest.mark.parametrize("change", OTHER_BYTES)
@pytest.mark.parametrize("name", ["rows", "groups"])
def test_a_file_that_was_rewritten_is_a_new_file(tmp_path, change, name, copied):
    log = Log(tmp_path, "csv")
    for _ in range(3):
        log.grow()
        checked(lambda: QUERIES[name](log.scan().select("k", "v", "f", "t")))
    copied()
    log.path.write_bytes(OTHER_BYTES[change](log.path.read_bytes(), lines("csv", 900, 40).encode()))
    checked(lambda: QUERIES[name](log.scan().select("k", "v", "f", "t")))
    assert all(start < 20_000 for start, _ in copied())


def test_a_file_with_the_bytes_of_what_was_appended_is_something_else(tmp_path):
    log, other, new = tmp_path / "log.csv", tmp_path / "other.csv", "a,b\n7,8\n"
    query = lambda path: pl.scan_csv(path, infer_schema=False).filter(pl.col("a") > "0")
    log.write_text("a,b\n1,2\n")
    other.write_text(new)
    checked(lambda: query(log))
    checked(lambda: query(other))
    with open(log, "a") as file:
        file.write(new)
    checked(lambda: query(log))
    assert query(log).collect().height == 3, "the first line of the other file names its columns"


def test_branches_of_equal_length(tmp_path, copied):
    log = Log(tmp_path, "csv")
    log.grow()
    query = lambda: QUERIES["groups"](log.scan())
    checked(query)
    trunk = log.path.read_bytes()
    for letter in "xyzxy":
        log.path.write_bytes(trunk + f"{letter},1,2.0,t\n".encode())
        copied()
        checked(query)
        log.path.write_bytes(trunk + f"{letter},1,2.0,t\nq,1,2.0,t\n".encode())
        checked(query)
    assert copied() == [], "both branches are known by now"


def test_a_file_that_is_appended_to_while_it_is_read_is_not_kept(tmp_path, monkeypatch):
    log = Log(tmp_path, "csv")
    for _ in range(3):
        log.grow()
        checked(lambda: QUERIES["rows"](log.scan()))
    log.grow()
    catalog = session.current().catalog
    before = {entry.key for entry in catalog.index.entries()}
    copy = extents._copy

    def slow(run, to):
        copy(run, to)
        log.grow(10)

    monkeypatch.setattr(extents, "_copy", slow)
    QUERIES["rows"](log.scan()).collect()
    session.current().settle()
    assert {entry.key for entry in catalog.index.entries()} == before
    monkeypatch.setattr(extents, "_copy", copy)
    checked(lambda: QUERIES["rows"](log.scan()))


def test_a_stretch_that_is_rewritten_before_it_is_read_is_not_believed(tmp_path, monkeypatch, computed):
    log = Log(tmp_path, "csv")
    for _ in range(2):
        log.grow()
        checked(lambda: QUERIES["rows"](log.scan()))
    computed()
    log.grow()
    copy = extents._copy

    def late(run, to):
        data = log.path.read_bytes()
        log.path.write_bytes(data.replace(b"k0,399", b"k9,399"))
        return copy(run, to)

    monkeypatch.setattr(extents, "_copy", late)
    checked(lambda: QUERIES["rows"](log.scan()))
    assert computed() == []


# options that look at the whole file: exact, or computed as a whole

EXACT = {
    "comments": {"comment_prefix": "#"},
    "no quotes": {"quote_char": None, "truncate_ragged_lines": True}, "lossy": {"encoding": "utf8-lossy"},
    "ragged": {"truncate_ragged_lines": True}, "nulls": {"null_values": ["k1"]}, "texts": {"infer_schema": False},
    "renamed": {"new_columns": ["k", "v", "x", "t"]}, "low memory": {"low_memory": True},
    "typed": {"schema_overrides": {"v": pl.Float32}}, "empty texts": {"empty_string_is_null": False},
}  # fmt: skip
REFUSED = {
    "skipped rows": {"skip_rows": 2, "has_header": False}, "skipped lines": {"skip_lines": 2, "has_header": False},
    "skipped after the header": {"skip_rows_after_header": 3}, "first rows": {"n_rows": 200},
    "numbered": {"row_index_name": "i"}, "paths": {"include_file_paths": "p"}, "other quotes": {"quote_char": "'"},
    "other line ends": {"eol_char": ";", "infer_schema": False}, "errors left out": {"ignore_errors": True},
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXACT, *REFUSED])
def test_options(tmp_path, name, computed):
    log = Log(tmp_path, "csv")
    options = {**EXACT, **REFUSED}[name]
    for at in range(4):
        log.grow()
        with open(log.path, "a") as file:
            file.write("#,1,1.0,comment\n" if at % 2 else "#\xe9,2,1.5,\n")
        checked(lambda: log.scan(**options).filter(pl.first().is_not_null()))
    used = [count for count, _ in computed()]
    assert used == ([1, 1, 1] if name in EXACT else [])


DATES = {
    "found out": ({"try_parse_dates": True}, ["2024-01-05", "2024-01-06", "08-01-2024"]),
    "given": ({"schema_overrides": {"d": pl.Date}}, ["2024-01-05", "2024-01-06", "08-01-2024"]),
    "moments": ({"schema_overrides": {"d": pl.Datetime}}, ["2024-01-05", "2024-01-06", "08-01-2024"]),
    "times": ({"try_parse_dates": True}, ["01:00:00", "02:00:00", "03:00"]),
    "at first null": ({"schema_overrides": {"d": pl.Date}}, ["", "2024-01-06", "08-01-2024"]),
}


@pytest.mark.parametrize("name", DATES)
@pytest.mark.parametrize(
    "query", [lambda rows: rows.filter(pl.col("v") >= 0), lambda rows: rows.select(pl.all().max())]
)
def test_the_way_dates_are_written_holds_for_all_of_a_file(tmp_path, name, query, computed):
    path = tmp_path / "log.csv"
    path.write_text("d,v\n")
    options, dates = DATES[name]
    for date in [dates[0], dates[0], *dates[1:]]:
        with open(path, "a") as file:
            file.write(f"{date},1\n")
        checked(lambda: query(pl.scan_csv(path, **options)))
    with nectar.reuse(off=True), pytest.raises(pl.exceptions.PolarsError):
        query(pl.scan_csv(path, **options)).collect()
    assert computed() == []


def test_dates_among_the_lines_of_json(tmp_path):
    path = tmp_path / "log.ndjson"
    for date in ("2024-01-05", "2024-01-05", "2024-01-06", "08-01-2024"):
        with open(path, "a") as file:
            file.write(f'{{"d": "{date}", "v": 1}}\n')
        checked(lambda: pl.scan_ndjson(path, schema_overrides={"d": pl.Date}).filter(pl.col("v") >= 0))


def compressed(text):
    """A text, compressed so that the last byte looks like the end of a line: it belongs to the checksum."""
    endings = (f"{text}{'a' * odd}{'z' * many},1,1.0,\n".encode() for odd in (0, 1) for many in range(200))
    return next(zlib.compress(each) for each in endings if zlib.adler32(each) & 0xFF == ord("\n"))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("pack", [compressed, str.encode], ids=["compressed", "plain"])
def test_compressed_files_are_not_cut(tmp_path, header, pack, computed):
    path = tmp_path / "log.csv"
    path.write_bytes(compressed(lines("csv", 0, 150, header)))
    schema = dict.fromkeys("kvftx", pl.String)
    query = lambda: pl.scan_csv(
        path, has_header=header, schema=schema, quote_char=None, missing_columns="insert", truncate_ragged_lines=True
    ).filter(pl.col("v") > "3")
    for at in range(1, 4):
        checked(query)
        with open(path, "ab") as file:
            file.write(pack(lines("csv", at * 150, 150)))
    checked(query)
    assert [used for used, _ in computed() if used] == []


BEGINNINGS = ["\n1,2\n", "\r\n1,2\n", "x^,2\n", "x\x01,2\n", "\ufeffa,2\n", "#a,b\n", '"a\nb",1\n', " \n", ",\n", "1\n"]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("beginning", BEGINNINGS, ids=ascii)
@pytest.mark.parametrize("options", [{}, {"comment_prefix": "#"}], ids=str)
def test_odd_first_lines_of_what_was_appended(tmp_path, header, beginning, options):
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,b\n3,4\n")
    schema = {"a": pl.String, "b": pl.String}
    query = lambda: pl.scan_csv(path, has_header=header, schema=schema, **options).with_columns(c=pl.col("a") + "!")
    checked(query)
    for _ in range(2):
        with open(path, "ab") as file:
            file.write(beginning.encode())
        checked(query)


@pytest.mark.parametrize("beginning", ["\n", "#x\n", "#x\na,b\n", "\n\na,b\n", " \n", '"a\n', "a"], ids=ascii)
def test_odd_first_lines_of_a_file(tmp_path, beginning):
    path = tmp_path / "log.csv"
    path.write_bytes(beginning.encode())
    schema = {"a": pl.String, "b": pl.String}
    query = lambda: pl.scan_csv(path, schema=schema, comment_prefix="#", raise_if_empty=False).filter(
        pl.col("a").is_not_null()
    )
    checked(query)
    for more in ("a,b\n", "1,2\n", "3,4\n"):
        with open(path, "ab") as file:
            file.write(more.encode())
        checked(query)


def test_types_that_change_with_new_lines(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("k,v\na,1\n")
    for value in ("2", "2.5", "x"):
        checked(lambda: pl.scan_csv(path).group_by("k").agg(pl.col("v").max()))
        with open(path, "a") as file:
            file.write(f"a,{value}\n")
    checked(lambda: pl.scan_csv(path).group_by("k").agg(pl.col("v").max()))


def test_a_growing_file_among_others(tmp_path, copied):
    folder = tmp_path / "days"
    folder.mkdir()
    query = lambda: QUERIES["groups"](pl.scan_csv(f"{folder}/*.csv"))
    ends = []
    for day in range(3):
        log = Log(folder, "csv")
        log.path, log.rows = folder / f"{day}.csv", day * 1000
        for _ in range(3):
            copied()
            log.grow()
            ends.append(log.path.stat().st_size)
            checked(query)
    assert copied() == [(ends[-2], ends[-1])]


def test_a_file_known_by_its_origin_is_cut_once_it_has_been_read(tmp_path, copied, monkeypatch):
    monkeypatch.setattr(session.current().inputs._local, "_guard", 0)  # every file has been quiet for long enough
    log = Log(tmp_path, "csv")
    ends, seen = [], []
    for _ in range(5):
        log.grow()
        ends.append(log.path.stat().st_size)
        checked(lambda: QUERIES["rows"](log.scan()))
        seen.append(copied())
    assert seen == [[], [], [(ends[1], ends[2])], [(ends[2], ends[3])], [(ends[3], ends[4])]]


def test_copies_do_not_stay(tmp_path, monkeypatch, copied):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "aside"))
    (tmp_path / "aside").mkdir()
    log = Log(tmp_path, "csv")
    for _ in range(4):
        log.grow()
        checked(lambda: QUERIES["groups"](log.scan()))
    assert copied()
    assert os.listdir(tmp_path / "aside") == []
