"""Histories of folders: files come, and after each the answer is compared with that of the plain engine."""

import glob
import math
import os

import pytest

import nectar

OWN = ("rows.arrow", "rows.parquet")  # files in which Nectar hands rows to the engine


@pytest.fixture
def plain(new_session):
    """A session that knows nothing of Nectar: it is made before Nectar is enabled."""
    return new_session()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def sent(monkeypatch):
    """For each plan that Nectar has sent on its own, the names of the files it could read."""
    from nectar.catalog.rates import LearnedRates
    from nectar.dialects.spark.incremental import growing
    from nectar.dialects.spark.incremental.server import Server
    from nectar.rewrite.cost import Rates

    # What is known is used however little that saves, and one part rather than two, so that no test depends on how long
    # anything takes.
    nothing = LearnedRates("nothing", Rates(0.0, 1e-6, 0.0, 0.0))
    monkeypatch.setattr(growing, "rates", dict.fromkeys(growing.rates, nothing))
    monkeypatch.setattr(growing, "LEAST_PLANS", 0)
    monkeypatch.setattr(growing, "_failures", {})
    seen, before = [], Server.run

    def run(self, relation):
        if not asks_for_no_rows(relation):
            seen.append(sorted(files_read(relation)))
        return before(self, relation)

    monkeypatch.setattr(Server, "run", run)
    return seen


def asks_for_no_rows(relation):
    """Whether only the schema of a relation is of interest."""
    if relation.HasField("show_string"):
        relation = relation.show_string.input
    return relation.HasField("limit") and relation.limit.limit == 0


def files_read(message):
    """The names of all files that the reads of a relation could read."""
    if message.DESCRIPTOR.full_name == "spark.connect.Read.DataSource":
        for path in message.paths:
            for found in glob.glob(path):
                if os.path.isfile(found):
                    yield os.path.basename(found)
                for _, _, names in os.walk(found):
                    yield from names
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
            for each in value if descriptor.is_repeated else (value,):
                yield from files_read(each)


@pytest.fixture
def compared(plain, enabled, spark, sent):
    """Runs a program with and without Nectar, compares, and tells which files Nectar's own plans have read.

    The names are those of all plans; None if the program ran as it was sent.
    """

    def run(program):
        sent.clear()
        given = answered(program, spark)
        report = nectar.last_run()
        enabled.settle()
        expected = answered(program, plain)
        if isinstance(expected, str):
            assert given == expected
            return None
        same(given, expected)
        put_together = "put together" in report.parts[-1].reason
        return sorted(name for names in sent for name in names if name not in OWN) if put_together else None

    return run


def answered(program, session):
    """What a program gives, or how it fails."""
    try:
        return program(session).toArrow()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def same(given, expected):
    assert given.schema.equals(expected.schema, check_metadata=True), f"{given.schema}\n{expected.schema}"
    rows, others = (sorted(map(_row, table.to_pylist()), key=_order) for table in (given, expected))
    assert len(rows) == len(others)
    for one, other in zip(rows, others, strict=True):
        for mine, its in zip(one, other, strict=True):
            equal = math.isclose(mine, its, rel_tol=1e-9, abs_tol=1e-9) if _is_number(mine, its) else mine == its
            assert equal, f"{one}\n{other}"


def _is_number(*values):
    return all(isinstance(value, float) and math.isfinite(value) for value in values)


def _row(row):
    return tuple(map(_value, row.values()))


def _value(value):
    if isinstance(value, list):
        return tuple(value)
    return repr(value) if value != value else value


def _order(row):
    return repr([f"{value:.6g}" if isinstance(value, float) else value for value in row])
