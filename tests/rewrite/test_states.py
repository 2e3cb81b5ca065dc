"""States of runs of a stream are put together, whatever engine makes them: here a state is the set of its files."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nectar.model.entry import SUPERSEDED, Entry, Span
from nectar.rewrite.cost import Rates
from nectar.rewrite.covering import covered
from nectar.rewrite.states import Piece, are_useless, put_together


@dataclass(frozen=True)
class Files:
    """A stream whose extents are numbers."""

    numbers: tuple
    seams: tuple = ()

    @property
    def count(self):
        return len(self.numbers)

    @property
    def first_names(self):
        return {name(self.numbers[0])}

    def size_of(self, start, end):
        return 1000 * (end - start)

    def spans_of(self, start, end):
        return (Span(name(self.numbers[start]), name(self.numbers[end - 1]), end - start),)

    def runs_of(self, spans):
        (span,) = spans
        for start, number in enumerate(self.numbers):
            end = start + span.count
            if name(number) == span.first and end <= self.count and name(self.numbers[end - 1]) == span.last:
                yield start, end

    def ends_of(self, start, end):
        return {name(self.numbers[start])}, {name(self.numbers[end - 1])}, end - start


def name(number):
    return number.to_bytes(4, "big")


@dataclass
class Store:
    """Keeps states, and counts the files that were computed."""

    entries: dict = field(default_factory=dict)
    computed: int = 0
    at_once: bool = False  # states are extended by what is behind them

    def run(self, numbers, seams=()):
        cut = Files(tuple(numbers), seams)
        known = [entry for entry, _ in self.entries.values()]

        def key(start, end, which=0):
            return repr(cut.numbers[start:end]).encode()

        covering = covered(0, cut.count, cut, known, key, Rates(), states=True)
        if are_useless(cut, covering, known):
            return None
        work = Work(self, cut)
        done = put_together(cut, covering, known, work)
        self.computed = work.computed_files
        for piece in [*done.new, *done.merged]:
            self.keep(cut, key(piece.start, piece.end), piece)
        return done

    def keep(self, cut, key, piece):
        assert piece.frame == frozenset(cut.numbers[piece.start : piece.end])
        entry = Entry(
            key, b"", "arrow", "", b"", 10, 0, 0, 0.5 * (piece.end - piece.start), float(len(self.entries)), 0.0,
            spans=cut.spans_of(piece.start, piece.end),
        )  # fmt: skip
        self.entries.setdefault(key, (entry, piece.frame))
        for each in piece.supersedes:
            self.entries[each.key] = (replace(each, protected=SUPERSEDED), self.entries[each.key][1])
        for each in piece.outgrown:
            del self.entries[each.key]


@dataclass
class Work:
    store: Store
    cut: Files
    computed_files: int = 0

    def read(self, entry):
        known, frame = self.store.entries[entry.key]
        self.store.entries[entry.key] = (replace(known, hits=known.hits + 1), frame)
        return frame

    def computed(self, start, end):
        self.computed_files += end - start
        return Piece(start, end, frozenset(self.cut.numbers[start:end]), 0.5 * (end - start))

    def merged(self, pieces):
        for one, other in zip(pieces, pieces[1:], strict=False):
            assert one.end == other.start
        return Piece(pieces[0].start, pieces[-1].end, frozenset().union(*(piece.frame for piece in pieces)), 0.1)

    def extended(self, head, end):
        if not self.store.at_once:
            return None
        return self.merged([Piece(head.start, head.end, self.read(head.what), 0.1), self.computed(head.end, end)])


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stream_that_grows_computes_what_is_new_and_keeps_few_states(at_once):
    store = Store(at_once=at_once)
    for length in range(2, 200):
        done = store.run(range(length))
        assert done.whole.frame == frozenset(range(length))
        assert store.computed == (2 if length == 2 else 1)
    whole = [entry for entry, _ in store.entries.values() if entry.spans[0].first == name(0)]
    assert len(whole) < 20


def test_a_window_that_moves_merges_few_states():
    store = Store()
    for start in range(300):
        done = store.run(range(start, start + 30))
        assert done.whole.frame == frozenset(range(start, start + 30))
        assert store.computed <= 1 or start < 2
    assert len(store.entries) < 2 * 330 + 30


def test_one_file_needs_no_state():
    assert Store().run([1]) is None


def test_states_that_nobody_uses_are_not_made_for_ever():
    store = Store()
    for _ in range(6):
        store.run([1, 2, 3])
        for key, (entry, frame) in list(store.entries.items()):  # something else changes, and none of them is found
            store.entries[key + b"?"] = (replace(entry, key=key + b"?"), frame)
            del store.entries[key]
    assert store.run([1, 2, 3]) is None


def test_streams_that_stand_behind_each_other_have_no_state_of_both():
    store = Store()
    store.run([1, 2, 10, 11], seams=(2,))
    assert {entry.spans[0].count for entry, _ in store.entries.values()} == {2}
    store.run([1, 2, 3, 10, 11], seams=(3,))
    assert store.computed == 1


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=25), st.booleans())
def test_any_history_gives_the_state_of_all_files(history, at_once):
    store = Store(at_once=at_once)
    for start, length in history:
        done = store.run(range(start, start + length))
        assert done is None or done.whole.frame == frozenset(range(start, start + length))
