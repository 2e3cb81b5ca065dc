"""Where in a program something is asked for, however many frames of engines lie between."""

import gc
import sys
import weakref

import pytest

from nectar.overhead import sites as sites_module
from nectar.overhead.sites import Sites, frame_of_program, is_own


def between(depth, name="polars.lazyframe.frame"):
    """A function of an engine that calls another one, and so on, and at last whatever it is given."""
    made = None
    for _ in range(depth):
        namespace = {"__name__": name, "below": made}
        text = "def call(ask): return ask()" if made is None else "def call(ask): return below(ask)"
        exec(text, namespace)
        made = namespace["call"]
    return made


def line_of(site):
    return int(site.name.rpartition(":")[2])


def line():
    return sys._getframe(1).f_lineno


@pytest.mark.parametrize("name", ["polars.lazyframe.frame", "pyspark.sql.connect.dataframe", "nectar.session", "grpc"])
def test_frames_of_engines_are_not_the_programs(name):
    call = between(3, name)
    found = call(frame_of_program)
    assert found is not None
    assert found.f_code.co_name == "test_frames_of_engines_are_not_the_programs"


def test_code_without_a_name_is_the_programs():
    namespace = {"ask": frame_of_program}
    exec("def run(): return ask()\nfound = run()", namespace)
    assert namespace["found"].f_code.co_name == "run"


def test_the_site_is_the_line_of_the_program_however_deep_the_engine_is():
    sites = Sites(None)
    calls = [between(depth) for depth in (1, 4, 2, 1, 6, 1)]
    found = []
    for call in [*calls, *calls]:
        found.append((call(sites.here), line()))
    assert all(line_of(site) == expected for site, expected in found)
    assert len({id(site) for site, _ in found}) == 1


def test_two_lines_are_two_sites_and_a_helper_is_one():
    sites = Sites(None)
    call = between(2)

    def helper():
        return call(sites.here)

    one, other = call(sites.here), (
        call(sites.here)
    )  # fmt: skip
    assert one is not other
    assert helper() is helper()
    assert helper() not in (one, other)


def test_the_frames_of_the_engine_are_passed_over_once_for_each_site(monkeypatch):
    sites = Sites(None)
    asked, at = [], Sites.at
    monkeypatch.setattr(Sites, "at", lambda self, frame: asked.append(frame) or at(self, frame))
    call = between(3)
    assert len({id(call(sites.here)) for _ in range(10_000)}) == 1
    assert len(asked) == 1, "a loop of tiny queries asks ten thousand times"


def test_fewer_frames_than_the_last_time_are_no_matter():
    sites = Sites(None)
    between(50)(sites.here)
    assert line_of(between(1)(sites.here)) == line()


def test_code_that_is_compiled_again_and_again_is_not_held(monkeypatch):
    """All of it is one site, so that nothing else would ever let go of it."""
    monkeypatch.setattr(sites_module, "_MOST_PLACES", 10)
    sites, codes, found = Sites(None), [], set()
    for _ in range(100):
        code = compile("found.add(sites.at(frame()))", "<made>", "exec")
        exec(code, {"found": found, "sites": sites, "frame": sys._getframe})
        codes.append(weakref.ref(code))
    del code
    gc.collect()
    assert sum(code() is not None for code in codes) <= 10
    assert len(found) == 1


def test_what_nectar_asks_an_engine_is_not_the_programs():
    engine = {"__name__": "nectar.dialects.polars.engine", "is_own": is_own}
    exec("def sink(): return is_own()", engine)
    polars = {"__name__": "polars.dataframe.frame", "sink": engine["sink"]}
    exec("def write(): return sink()", polars)
    write = polars["write"]
    assert not write()
    assert between(1, "nectar.store.formats.arrow")(write)
    assert between(2, "nectar.store.formats.arrow")(write)
    assert not between(1, "program")(write)
    assert not engine["sink"](), "the program calls the engine by itself"


# one function that runs all queries of a program

ENGINE = {"__name__": "polars.lazyframe.frame"}
exec(
    """
def collect(sites, seconds):
    site = sites.apart(sites.here(), seconds)
    site.ran(seconds)
    return site
""",
    ENGINE,
)


def show(sites, seconds):
    """What many programs have: all queries stand at its line."""
    return ENGINE["collect"](sites, seconds)


def tables(sites, large=2.0):
    quick = show(sites, 0.001)
    slow = show(sites, large)
    return [quick, slow, show(sites, 0.001)]


@pytest.mark.parametrize(("large", "sites"), [(2.0, 2), (0.05, 1), (0.002, 1)])
def test_queries_of_very_different_times_through_one_function_are_told_apart_by_its_callers(large, sites):
    made = Sites(None)
    for _ in range(3):
        tables(made, large)
    slow = {site.name for site in made._known.values() if site.seconds > 1.0}
    assert len({site.name for site in tables(made, large)[:2]}) == sites
    assert len(slow) == (large == 2.0)


def test_later_processes_know_which_function_is_told_apart(tmp_path):
    first = Sites(tmp_path, "main.py")
    tables(first)
    first.remember()
    later = Sites(tmp_path, "main.py")
    one, other, _ = tables(later)
    assert one is not other
    assert (other.seconds, other.runs) == (2.0, 2), "what the first one has learned of the slow query"


def test_callers_that_are_known_are_bounded(monkeypatch):
    monkeypatch.setattr(sites_module, "_MOST_PLACES", 5)
    made = Sites(None)
    for number in range(30):
        namespace = {"show": show, "made": made, "seconds": 2.0 if number == 1 else 0.001}
        exec("show(made, seconds)", namespace)
        assert len(made._callers) <= 5
