"""What every index deletes of its records: exactly what neither an entry, nor a name, nor lineage leads to."""

import random
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.catalog.making import entry, key
from tests.contracts.test_index import NOW, put
from tests.contracts.test_index_provenance import CLEAN, TIDY, file, record

from nectar.catalog.index.sqlite import SqliteIndex
from nectar.model.entry import RECIPE_LABEL, Content, Length, Version

LATER = NOW + 1000.0


@pytest.fixture(autouse=True)
def _noise(monkeypatch):
    """What stands for recipes here is noise, which may look like anything."""
    monkeypatch.setattr("nectar.catalog.index.recipes.looks_secret", lambda part: False)


def label(number):
    return f"{RECIPE_LABEL}{key(number).hex()}"


def with_recipe(index, number, *parts, now=NOW):
    """A recipe, to which the key leads; some parts are those of others."""
    identity = index.put_recipe([b"recipe %d" % number, *parts], now)
    index.add_version(Version(label(number), identity, identity, now))
    return identity


def forget_all(index, before=LATER, most=3):
    gone = 0
    while went := index.forget_unneeded(before, most):
        gone += went
    return gone


def on_record(index, numbers):
    return {number for number in numbers if key(number) in index.made([key(number)])}


def has_recipe(index, number):
    versions = index.versions(label(number))
    return bool(versions) and index.get_recipe(versions[0].trace) is not None


def test_what_an_entry_or_a_name_leads_to_stays(index):
    put(index, 1)
    index.bind("team/two", key(2), "me", NOW)
    index.bind("team/three", key(3), "me", NOW)
    index.unbind("team/three", "me", NOW)
    for number in (1, 2, 3, 4):
        record(index, key(number))
        with_recipe(index, number, b"shared")
    forget_all(index)
    assert on_record(index, range(5)) == {1, 2, 3}, "team/three@1 is a name for ever"
    assert [has_recipe(index, number) for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert index.versions(label(4)) == []


def test_what_a_kept_result_was_made_from_stays_and_what_was_made_from_it_goes(index):
    put(index, 3)
    record(index, key(1))
    record(index, key(2), key(1))
    record(index, key(3), key(2))
    record(index, key(4), key(3))
    record(index, key(5), key(4), key(1))
    for number in range(1, 6):
        with_recipe(index, number)
    forget_all(index)
    assert on_record(index, range(6)) == {1, 2, 3}
    assert [has_recipe(index, number) for number in range(1, 6)] == [True, True, True, False, False]
    index.evict([key(3)], NOW)
    forget_all(index)
    assert on_record(index, range(6)) == set()
    assert not any(has_recipe(index, number) for number in range(1, 6))


def test_what_was_written_lately_stays_since_its_result_is_still_to_come(index):
    record(index, key(1), at=LATER)
    with_recipe(index, 2, now=LATER)
    alone = index.put_recipe([b"no label yet"], LATER)
    assert forget_all(index) == 0
    assert on_record(index, [1]) == {1}
    assert has_recipe(index, 2)
    assert index.get_recipe(alone) == [b"no label yet"]
    forget_all(index, LATER + 1)
    assert index.get_recipe(alone) is None
    assert not has_recipe(index, 2)


def test_a_recipe_that_is_used_again_is_as_good_as_new(index):
    identity = with_recipe(index, 1)
    assert index.renew_recipe(identity, LATER)
    assert forget_all(index) == 0
    assert has_recipe(index, 1)
    forget_all(index, LATER + 1)
    assert not index.renew_recipe(identity, LATER), "it has to be written anew"


def test_a_recipe_that_is_used_again_outlives_an_old_record(index):
    """Its result is about to be kept once more."""
    record(index, key(1))
    index.renew_recipe(with_recipe(index, 1), LATER)
    assert forget_all(index) == 1
    assert on_record(index, [1]) == set()
    assert has_recipe(index, 1)
    forget_all(index, LATER + 1)
    assert not has_recipe(index, 1)


def test_parts_that_other_recipes_share_stay(index):
    index.bind("one", key(1), "me", NOW)
    first = with_recipe(index, 1, b"module", b"plan 1")
    with_recipe(index, 2, b"module", b"plan 2")
    forget_all(index)
    assert index.get_recipe(first) == [b"recipe 1", b"module", b"plan 1"]
    assert index.totals().recipes == 1
    assert index.broken_recipes() == []


def test_recipes_that_entries_and_functions_lead_to_stay(index):
    by_entry = index.put_recipe([b"of an entry"], NOW)
    trace = index.put_recipe([b"of a function"], NOW)
    index.add_version(Version("app.f", b"p" * 32, trace, NOW))
    index.add(entry(1, recipe=by_entry), "", 0.0, NOW)
    with_recipe(index, 2)
    forget_all(index)
    assert index.get_recipe(by_entry) == [b"of an entry"]
    assert index.get_recipe(trace) == [b"of a function"]


def test_files_and_functions_go_with_the_last_result_that_they_are_of(index):
    put(index, 1)
    record(index, key(1), files=[file("a"), file("b")], functions=[CLEAN])
    record(index, key(2), files=[file("b"), file("c")], functions=[CLEAN, TIDY])
    record(index, key(3), files=[file("b"), file("c")], functions=[CLEAN, TIDY])
    forget_all(index)
    found = index.trace_results([key(1)], "upstream")
    assert {each.url for each in found.files.values()} == {"/data/a", "/data/b"}
    assert index.trace_input("/data/c", "downstream").results == {}
    assert set(index.function_texts([CLEAN.digest, TIDY.digest])) == {CLEAN.digest}
    index.evict([key(1)], NOW)
    forget_all(index)
    assert index.function_texts([CLEAN.digest]) == {}
    record(index, key(1), files=[file("a")], functions=[CLEAN])
    assert set(index.function_texts([CLEAN.digest])) == {CLEAN.digest}, "and can come back"


def test_batches_are_small_and_end(index):
    for number in range(20):
        record(index, key(number))
        with_recipe(index, number)
    assert 0 < index.forget_unneeded(LATER, 3) <= 3 * 3
    assert len(on_record(index, range(20))) == 17
    forget_all(index)
    assert on_record(index, range(20)) == set()
    assert index.totals().recipes == 0


def test_what_nobody_has_seen_for_long_is_forgotten(index):
    index.remember_contents({b"old": Content(b"d" * 32, True)}, NOW)
    index.remember_contents({b"new": Content(b"d" * 32, True)}, LATER)
    index.remember_lengths([Length(b"old" * 8, 1, b"s", True, None)], 10, NOW)
    index.count_lookups({key(1): 1}, NOW)
    index.count_lookups({key(2): 1}, LATER)
    index.add_observed(key(1), "it reads the clock", NOW)
    assert index.forget_old(LATER) == 4
    assert set(index.contents([b"old", b"new"])) == {b"new"}
    assert index.lengths([b"old" * 8]) == {}
    assert index.lookups([key(1), key(2)]) == {key(1): 0, key(2): 1}
    assert index.observed([key(1)]) == {}


def test_the_latest_versions_of_a_function_stay(index):
    for number in range(60):
        trace = index.put_recipe([b"trace %d" % number], NOW)
        index.add_version(Version("app.f", key(number), trace, NOW + number))
        with_recipe(index, number)
    index.forget_old(LATER)
    kept = index.versions("app.f")
    assert [version.program for version in kept] == [key(number) for number in range(59, 19, -1)]
    assert index.get_recipe(kept[-1].trace) == [b"trace 20"]
    assert index.totals().recipes == 40 + 60, "recipes are not versions of a function"
    assert index.broken_recipes() == []


def test_passes_are_known_to_all(index, another):
    assert index.passed("sweep") == float("-inf")
    index.note_pass("sweep", NOW)
    assert another().passed("sweep") == NOW
    another().note_pass("sweep", LATER)
    assert index.passed("sweep") == LATER
    assert index.passed("other") == float("-inf")


def test_records_count_in_what_a_store_takes(index):
    before = index.usage(NOW)
    assert (before.records, before.total) == (0, 0)
    noise = random.Random(1)
    for number in range(5):
        with_recipe(index, number, noise.randbytes(1_000_000))
    after = index.usage(NOW)
    assert 3_900_000 < after.records < 5_200_000
    assert after.total == after.records
    forget_all(index)
    assert index.usage(NOW).total == 0, "its pages are free, and taken for the next rows"


def test_results_in_their_rows_count_once(index):
    for number in range(600):
        index.add(entry(number, location="", size=4000, files=0, inline=bytes(4000)), "", 0.0, NOW)
    usage = index.usage(NOW)
    assert (usage.size, usage.inline) == (2_400_000, 2_400_000)
    assert usage.total < 3_000_000
    assert not index.recount(apply=False)
    index.evict([key(number) for number in range(600)], NOW)
    assert (index.usage(NOW).inline, index.usage(NOW).total) == (0, 0)


def test_a_file_that_has_grown_gives_its_room_back(index, tmp_path):
    noise = random.Random(1)
    index.bind("kept", key(0), "me", NOW)
    for number in range(30):
        with_recipe(index, number, noise.randbytes(1_000_000))
    assert index.shrink(None) == 0, "all of it is in use"
    forget_all(index, most=100)
    assert index.shrink(1_000_000) == 0, "there is no room to write it anew"
    assert index.shrink(None) > 25_000_000
    assert has_recipe(index, 0)
    assert index.path.stat().st_size < 3_000_000
    assert index.sound() == []


# any graph

GRAPHS = st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=3), st.sampled_from("-en")), min_size=1, max_size=14)


@pytest.mark.parametrize("most", [1, 5, 1000])
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=GRAPHS)
def test_what_can_be_reached_stays_and_nothing_else(tmp_path_factory, most, graph):
    """Each result was made from some before it; some have an entry, some a name."""
    with closing(SqliteIndex(tmp_path_factory.mktemp("graph") / "catalog.db")) as index:
        above = {
            number: {each % number for each in sources} if number else set()
            for number, (sources, _) in enumerate(graph)
        }
        for number, (_, held) in enumerate(graph):
            if held == "e":
                put(index, number)
            if held == "n":
                index.bind(f"name{number}", key(number), "me", NOW)
            record(index, key(number), *(key(each) for each in above[number]), files=[file(f"{number % 3}")])
            with_recipe(index, number, b"part %d" % (number % 4))
        reached, waiting = set(), {number for number, (_, held) in enumerate(graph) if held != "-"}
        while waiting:
            reached |= waiting
            waiting = {source for number in waiting for source in above[number]} - reached
        forget_all(index, most=most)
        numbers = range(len(graph))
        assert on_record(index, numbers) == reached
        assert {number for number in numbers if has_recipe(index, number)} == reached
        assert index.totals().recipes == len(reached)
        assert index.broken_recipes() == []
        counted = index._read(lambda connection: [
            connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
            for table in ("recipe_parts", "files", "streams", "stream_files", "reads")
        ])  # fmt: skip
        kinds = len({number % 3 for number in reached})
        assert counted == [len(reached) + len({number % 4 for number in reached}), kinds, kinds, kinds, len(reached)]
