"""Which states of growing and moving streams are kept: few are merged by each run, and the answer is plain Polars'."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.polars.test_incremental import Days, checked

import nectar
from nectar import session
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.incremental import advance as advance_module
from nectar.dialects.polars.incremental.cuts import Streams
from nectar.rewrite import states as states_module
from nectar.rewrite.cost import Rates


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def advances(monkeypatch):
    """What came of each attempt to put states together."""
    found = []

    def advance(parts, *args):
        done = before(parts, *args)
        if parts.are_states:
            found.append(done)
        return done

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    return found


def sizes(pieces):
    return [piece.end - piece.start for piece in pieces]


def totals(days):
    first, last = pl.col("v").first().alias("first"), pl.col("s").last().alias("last")
    return lambda: days.scan().group_by("k").agg(pl.col("v").sum(), pl.len(), pl.col("f").mean(), first, last)


def test_growth_merges_two_states(tmp_path, advances):
    days = Days(tmp_path / "days")
    for _ in range(12):
        days.come()
        checked(totals(days))
    later = advances[1:]
    assert [len(done.used) + len(done.new) for done in later] == [2] * 10
    assert [sizes(done.new) for done in later] == [[1]] * 10
    assert [sizes(done.merged) for done in later] == [[count] for count in range(3, 13)]


def test_several_days_at_once_are_one_state_of_a_growing_stream(tmp_path, advances):
    days = Days(tmp_path / "days")
    for come in (4, 2, 3):
        for _ in range(come):
            days.come()
        checked(totals(days))
    assert [sizes(done.new) for done in advances] == [[6], [3]]


def test_a_window_of_thirty_moved_sixty_times(tmp_path, advances):
    days = Days(tmp_path / "days")
    for _ in range(30):
        days.come(count=8)
    checked(totals(days))
    for _ in range(60):
        days.come(count=8)
        days.go()
        checked(totals(days))
    moved = [len(done.used) + len(done.new) for done in advances[2:]]
    assert len(moved) == 58
    assert max(moved) <= 2 * math.log2(30) + 1
    assert all(sizes(done.new) == [1] for done in advances[2:])
    kept = sum(len(done.new) + len(done.merged) for done in advances)
    assert kept < 2 * 90 + 1, "each arrival adds less than two"


def test_a_window_that_moves_by_several_days_keeps_a_state_of_each(tmp_path, advances):
    days = Days(tmp_path / "days")
    for _ in range(8):
        days.come()
    for _ in range(4):
        checked(totals(days))
        for _ in range(3):
            days.come()
            days.go()
    assert [sizes(done.new) for done in advances] == [[8], [1] * 8, [1] * 3]


def test_a_rewritten_file_in_the_middle(tmp_path, advances):
    days = Days(tmp_path / "days")
    for _ in range(6):
        days.come()
        checked(totals(days))
    days.next -= 3
    days.come()
    days.next += 2
    checked(totals(days))
    assert sizes(advances[-1].new) == [1], "what comes before and after it is known"
    days.come()
    checked(totals(days))
    assert [(len(done.used), sizes(done.new), sizes(done.merged)) for done in advances[-1:]] == [(1, [1], [7])]


def moved_window(tmp_path, length=8):
    """A window that has been moved, so that there are states of one, two, four and more of its files."""
    days = Days(tmp_path / "days")
    for _ in range(length):
        days.come()
    for _ in range(4):
        checked(totals(days))
        days.come()
        days.go()
    checked(totals(days))
    return days


def test_states_of_runs_with_another_file_in_the_middle_are_not_used(tmp_path, advances):
    days = moved_window(tmp_path)
    assert max(sizes(advances[-1].merged + advances[-2].merged + advances[1].merged)) >= 4
    newest = days.next
    for path in sorted(days.folder.iterdir())[1:-1]:
        days.next = int(path.stem)
        days.come()
        days.next = newest
        checked(totals(days))
        assert sizes(advances[-1].new)[:1] == [1]


def test_files_that_changed_places_are_other_streams(tmp_path):
    days = moved_window(tmp_path)
    paths = sorted(days.folder.iterdir())
    for one, other in ((1, 2), (0, 5), (3, 7), (1, 2)):
        aside = tmp_path / "aside.parquet"
        paths[one].rename(aside)
        paths[other].rename(paths[one])
        aside.rename(paths[other])
        checked(totals(days))


def test_files_that_went_from_the_middle_and_came_twice(tmp_path):
    days = moved_window(tmp_path)
    paths = sorted(days.folder.iterdir())
    paths[3].unlink()
    checked(totals(days))
    paths[4].with_name(f"{days.next:03}.parquet").write_bytes(paths[4].read_bytes())
    checked(totals(days))
    twice = [*paths[:3], *paths[4:6], *paths[4:8]]
    checked(lambda: pl.scan_parquet(twice).group_by("k").agg(pl.col("v").sum(), pl.len(), pl.col("s").first()))


def test_a_long_gap_gets_no_more_states_than_are_of_use(tmp_path, advances, monkeypatch):
    monkeypatch.setattr(states_module, "_MOST_NEW_STATES", 3)
    days = Days(tmp_path / "days")
    for _ in range(8):
        days.come()
    for _ in range(3):
        checked(totals(days))
        days.come()
        days.go()
    assert [sizes(done.new) for done in advances] == [[8], [3, 3, 2]]


@settings(deadline=None, max_examples=15)
@given(history=st.lists(st.sampled_from(["come", "come", "go", "go", "rewrite", "run"]), min_size=8, max_size=25))
def test_any_history_of_a_window(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("history")
    days = Days(folder / "days")
    for _ in range(3):
        days.come(count=9)
    with nectar.reuse(home=folder / "home"):
        for event in [*history, "run"]:
            if event == "run":
                checked(totals(days))
            elif event == "come":
                days.come(count=9)
            elif len(list(days.folder.iterdir())) > 1:
                getattr(days, event)()


# what is superseded


def entries_about(word):
    return [entry for entry in session.current().catalog.index.entries() if word in entry.about]


def counts_of_states(superseded):
    states = entries_about("state of")
    return sorted(entry.spans[0].count for entry in states if (entry.protected < 0) == superseded)


def test_states_that_were_outgrown_are_superseded(tmp_path):
    days = Days(tmp_path / "days")
    for _ in range(5):
        days.come()
        checked(totals(days))
    assert counts_of_states(superseded=True) == [2, 4]
    assert counts_of_states(superseded=False) == [1, 1, 1, 5]


def test_of_many_outgrown_states_few_stay(tmp_path):
    days = Days(tmp_path / "days")
    for _ in range(24):
        days.come(count=5)
        checked(totals(days))
    assert len(counts_of_states(superseded=True)) <= math.log2(24) + 1
    assert counts_of_states(superseded=False) == [1] * 22 + [24]


def test_outgrown_states_go_first_and_a_small_store_goes_on(tmp_path, advances):
    days = Days(tmp_path / "days")
    wide = lambda: days.scan().group_by("v", "s", "f", "d", "k").agg(pl.len(), pl.col("m").sum())
    # By age, not by measured seconds: a busy machine may make any old result dearer than the latest state.
    with nectar.reuse(home=tmp_path / "small", budget=400_000, reserve=0, policy="lru"):
        for _ in range(30):
            days.come(count=400)
            checked(wide)
        catalog = session.current().catalog
        assert catalog.usage().total <= 400_000
        prefixes = [entry.spans[0].count for entry in entries_about("state of") if entry.spans[0].count > 1]
    assert max(prefixes) == 30, "the latest is there"
    assert min(prefixes) > 2, "and the first of them is not"
    assert [len(done.used) + len(done.new) for done in advances[1:]] == [2] * 28


def test_a_superseded_state_that_is_used_again_is_as_good_as_others(tmp_path):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come()
        checked(totals(days))
    days.rewrite()
    checked(totals(days))
    catalog = session.current().catalog
    used = [entry for entry in entries_about("state of") if entry.spans[0].count == 3]
    assert len(used) == 1
    catalog.open(used[0])
    catalog.flush()
    assert catalog.index.lookup([used[0].key])[used[0].key].protected == 0


def test_what_parts_save_is_no_more_than_everything_would_take(tmp_path, advances):
    """States add up what each of many runs took, to start above all."""
    days = Days(tmp_path / "days")
    for count in range(1, 9):
        days.come()
        totals(days)().collect()
        saved = sum(part.saved for part in nectar.last_run().parts if part.outcome == "reused")
        session.current().settle()
        if count > 2:
            estimate = advances[-1].estimate
            assert saved <= estimate.whole - estimate.computing + 1e-9 or saved == 0.0


# what pays


def test_states_that_cost_more_to_merge_than_to_compute_are_left_alone(tmp_path, advances, monkeypatch):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come()
        checked(totals(days))
    assert all(done is not None for done in advances)
    monkeypatch.setattr(advance_module.rates, "of", lambda catalog: Rates(opening=10.0))
    days.come()
    checked(totals(days))
    assert advances[-1] is None


def test_estimates_can_be_asked_for(tmp_path, monkeypatch):
    days = Days(tmp_path / "days")
    found = []

    def advance(parts, keyed, catalog, *args):
        found.append(advance_module.covering_of(parts, catalog).estimate)
        return before(parts, keyed, catalog, *args)

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    for _ in range(3):
        days.come()
        checked(totals(days))
    assert found[0] is None, "nothing is known of the past"
    assert found[1].whole > 0
    assert found[1].segments == found[1].computing + found[1].using
    assert "as a whole about" in str(found[1])


def test_rates_are_remembered_by_the_catalog(tmp_path):
    catalog = session.current().catalog
    for _ in range(9):
        advance_module.rates.learn(catalog, 100 << 20, 3.0, states=True)
    learned = advance_module.rates.of(catalog)
    advance_module.rates.remember(catalog)
    advance_module.rates.forget()
    assert advance_module.rates.of(catalog) == learned != Rates()
    before = list(catalog.index.entries())
    advance_module.rates.remember(catalog)
    assert list(catalog.index.entries()) == before, "nothing new was learned"


# ranges of files


@pytest.fixture
def looked_at(monkeypatch):
    """The files whose ranges were computed."""
    found = []

    def computed(self, scan, column, at):
        found.append((column, at))
        return before(self, scan, column, at)

    before = Streams._told
    monkeypatch.setattr(Streams, "_told", computed)
    return found


def write_numbers(folder, number, first):
    folder.mkdir(exist_ok=True)
    frame = pl.DataFrame({"n": range(first, first + 20), "v": range(20)}).select(pl.col("n") // 2, "v")
    frame.write_parquet(folder / f"{number:03}.parquet")


def test_ranges_are_computed_once_for_each_file_that_stands_apart(tmp_path, looked_at):
    folder = tmp_path / "numbers"
    for number in range(6):
        write_numbers(folder, number, 100 * number)
        checked(lambda: pl.scan_parquet(folder / "*.parquet").group_by("n").agg(pl.col("v").sum()))
    assert looked_at == [("n", at) for at in range(6)]
    assert len(entries_about("ranges of n")) == 1


def test_files_that_overlap_are_not_looked_at_for_ever(tmp_path, looked_at, advances):
    folder = tmp_path / "numbers"
    for number in range(6):
        write_numbers(folder, number, number)
        checked(lambda: pl.scan_parquet(folder / "*.parquet").group_by("n").agg(pl.col("v").sum()))
    assert looked_at == [("n", 0), ("n", 1)]
    assert [sizes(done.new) for done in advances] == [[2], [1], [1], [1], [1]]


def test_files_that_begin_to_overlap_are_one_part(tmp_path, looked_at):
    folder = tmp_path / "numbers"
    for number, first in enumerate([0, 100, 200, 5, 400, 105]):
        write_numbers(folder, number, first)
        checked(lambda: pl.scan_parquet(folder / "*.parquet").group_by("n").agg(pl.col("v").sum()))
