"""Python functions in Polars queries do their work in threads of Polars, and are seen there."""

import itertools
import random
import sys
import threading
import warnings
import xml.etree.ElementTree

import pytest

import nectar
from nectar import session
from nectar.errors import NectarWarning
from nectar.observation.watch import Watch

pl = pytest.importorskip("polars")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(path)
    return path


@pytest.fixture
def elements(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("<a/>")
    return str(path)


def repr_of_type(value):
    return type(value).__name__


def settled():
    session.current().settle()


def outcomes():
    return [part.outcome for part in nectar.last_run().parts]


def reader_of(path):
    def length(value):
        return value + len(xml.etree.ElementTree.ElementTree(file=path).getroot().tag)

    return length


def with_function(source, function):
    return pl.scan_parquet(source).with_columns(b=pl.col("a").map_elements(function, return_dtype=pl.Int64))


def test_a_function_that_reads_a_file_is_not_kept_and_is_remembered(source, elements, enabled, tmp_path):
    query = with_function(source, reader_of(elements))
    with pytest.warns(NectarWarning, match=r"reads .*a\.xml") as caught:
        first = query.collect()
    assert caught[0].filename == __file__
    settled()
    open(elements, "w").write("<abc/>")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NectarWarning)
        second = with_function(source, reader_of(elements)).collect()
    assert first["b"].to_list() == [2, 3, 4]
    assert second["b"].to_list() == [4, 5, 6]
    assert outcomes() == ["uncacheable"]
    nectar.enable(home=tmp_path / "home", reserve=0)  # as a new process would
    with_function(source, reader_of(elements)).collect()
    assert outcomes() == ["uncacheable"]
    assert "was seen" in str(nectar.explain(with_function(source, reader_of(elements))))


def test_effects_and_draws_are_not_lost(source, enabled, tmp_path):
    def drawn(value):
        return value + getattr(random, "randrange")(1000)

    def written(value):
        getattr(tmp_path / "out", "write_text")(str(value))
        return value

    for function in (drawn, written):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with_function(source, function).collect()
            settled()
            (tmp_path / "out").unlink(missing_ok=True)
            with_function(source, function).collect()
        assert "reused" not in outcomes()
    assert (tmp_path / "out").exists()


def test_usual_functions_are_kept(source, enabled):
    def doubled(value):
        import fractions

        return int(fractions.Fraction(value, 1) * 2)

    for _ in range(2):
        found = with_function(source, doubled).collect()
        settled()
    assert found["b"].to_list() == [2, 4, 6]
    assert outcomes() == ["reused"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
def test_files_that_native_code_opens_are_seen_if_they_are_named(source, enabled, tmp_path):
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "b.arrow")

    def height(value):
        import pyarrow

        return value + pyarrow.ipc.open_file(path).read_all().num_rows

    for rows in (1, 2):
        pl.DataFrame({"a": [1] * rows}).write_ipc(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = with_function(source, height).collect()
        settled()
        assert found["b"].to_list() == [1 + rows, 2 + rows, 3 + rows], nectar.last_run().details()


def test_queries_without_functions_are_not_watched(source, enabled, monkeypatch):
    from nectar.dialects.polars import watching

    monkeypatch.setattr(watching, "Watch", None)  # calling it would fail
    assert pl.scan_parquet(source).select(pl.col("a").sum()).collect().item() == 6


def test_several_queries_at_once(source, elements, enabled):
    def doubled(value):
        return value * 2

    queries = [with_function(source, reader_of(elements)), with_function(source, doubled)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.collect_all(queries)
        settled()
        open(elements, "w").write("<abc/>")
        first, second = pl.collect_all([with_function(source, reader_of(elements)), with_function(source, doubled)])
    assert first["b"].to_list() == [4, 5, 6]
    assert second["b"].to_list() == [2, 4, 6]


def test_functions_that_somebody_vouches_for_are_kept(source, elements, enabled):
    @nectar.pure
    def length(value):
        return value + len(xml.etree.ElementTree.ElementTree(file=elements).getroot().tag)

    for _ in range(2):
        with_function(source, length).collect()
        settled()
    assert outcomes() == ["reused"]


ask, done = threading.Event(), threading.Event()


@nectar.pure
def meet():
    ask.set()
    done.wait(20)


def doubled_while_others_read(value):
    meet()
    return value * 2


def test_what_runs_beside_a_query_is_not_remembered_against_it(source, elements, enabled):
    def other():
        ask.wait(20)
        reader_of(elements)(1)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with_function(source, doubled_while_others_read).collect()
    thread.join()
    assert "may have done" in nectar.last_run().parts[0].keeping


def test_a_memoised_function_is_answerable_for_its_queries(source, elements, enabled):
    def of_query(path, other):
        return pl.DataFrame({"a": [1]}).select(pl.col("a").map_elements(reader_of(other), return_dtype=pl.Int64)).item()

    memo = nectar.memo(of_query)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo("x", elements)
    settled()
    assert not memo.check_call_in_cache("x", elements)


@pytest.mark.parametrize("captured", [itertools.count(100), iter([1, 2, 3]), (each for each in "ab")], ids=repr_of_type)
def test_a_function_that_has_no_fingerprint_runs_as_in_plain_polars(captured, source, enabled):
    kept = [captured]
    query = with_function(source, lambda value: value + len(kept))
    assert query.collect()["b"].to_list() == [2, 3, 4]
    assert outcomes() == ["uncacheable"]


@pytest.mark.parametrize("broken", ["Watch.begin", "Watch.end", "Watch.observations", "Watch.__init__"])
def test_a_query_that_cannot_be_watched_runs_and_is_not_kept(broken, source, enabled, monkeypatch):
    name = broken.removeprefix("Watch.")
    working = getattr(Watch, name)

    def fails(*arguments, **options):
        if name == "end":
            working(*arguments, **options)
        raise RuntimeError("out of order")

    monkeypatch.setattr(Watch, name, fails)
    query = with_function(source, lambda value: value + 1)
    for _ in range(2):
        assert query.collect()["b"].to_list() == [2, 3, 4]
        settled()
        assert outcomes() == ["computed"]
