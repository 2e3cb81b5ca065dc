"""A budget that is kept, used up and recovered; sites that are left alone until they become slow."""

import json
from math import inf
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nectar.errors import SettingError
from nectar.overhead.ledger import Ledger
from nectar.overhead.sites import Sites
from nectar.overhead.steering import Steering
from nectar.settings import load_settings


class Timer:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def steering(share=0.02, floor=0.05, memory=None, program="main.py"):
    timer = Timer()
    made = Steering(share, floor, memory, timer, program, age=0.0)
    made.timer = timer
    return made


def frame(line, file="main.py"):
    return SimpleNamespace(f_code=SimpleNamespace(co_filename=file), f_lineno=line, f_lasti=2 * line)


class Program:
    """Queries that run one after the other; a look at one costs the same each time."""

    def __init__(self, steering, cost=0.005):
        self.steering, self.cost = steering, cost
        self.plain = self.own = self.looks = 0.0

    def query(self, seconds, line=1, hit=False):
        site = self.steering.sites.at(frame(line))
        looked = self.steering.looks_at(site)
        self.plain += seconds
        if looked:
            self.looks += 1
            self.own += self.cost
            self.steering.timer.now += self.cost + (0.0 if hit else seconds)
            self.steering.looked(site, seconds, self.cost, seconds if hit else 0.0)
            self.steering.ledger.save(seconds if hit else 0.0)
        else:
            self.steering.timer.now += seconds
            self.steering.ran_alone(site, seconds)
        return looked


# the budget


def test_the_budget_is_a_floor_and_a_share_of_what_the_program_takes_by_itself():
    timer = Timer()
    ledger = Ledger(0.02, 0.05, timer)
    assert ledger.left == pytest.approx(0.05)
    timer.now += 10
    assert ledger.left == pytest.approx(0.25)
    ledger.spend("looking up", 1.0)  # a second of those ten
    assert ledger.program == pytest.approx(9)
    assert ledger.left == pytest.approx(0.05 + 0.18 - 1.0)
    timer.now += 100
    assert ledger.left > 1.0, "it recovers as the program goes on"


def test_what_was_saved_is_time_that_the_program_would_have_taken_and_half_of_it_may_be_spent():
    ledger = Ledger(0.02, 0.05, Timer())
    ledger.save(100)
    assert ledger.program == 100
    assert ledger.left == pytest.approx(0.05 + 2.0 + 50.0)


def test_one_look_that_takes_long_says_little_of_what_the_next_ones_take():
    """The first look at a site meets functions and files for the first time, and loads parts of Nectar."""
    steer = steering(floor=0.5)
    first, other = (steer.sites.at(frame(line)) for line in (1, 2))
    assert steer.looks_at(first)
    steer.looked(first, 0.1, own=0.2)
    assert steer.looks_at(first), "the next one may be as quick as any"
    assert steer.looks_at(other)
    assert not steer.ran_alone(other, 0.1)
    for _ in range(3):
        steer.looked(first, 0.1, own=0.2)
    assert not steer.looks_at(first), "it was no exception"


def test_what_looks_take_is_learned_bit_by_bit():
    steer = steering(floor=1e6)
    site = steer.sites.at(frame(1))
    for _ in range(60):
        steer.looked(site, 1.0, own=0.08)
    assert steer.cost_of(steer.sites.at(frame(2))) == pytest.approx(0.08, rel=0.1)


def test_work_in_the_background_takes_nothing_from_the_time_of_the_program():
    timer = Timer()
    ledger = Ledger(0.02, 0.05, timer)
    timer.now += 10
    ledger.spend("in the background", 0.1)
    assert ledger.program == pytest.approx(10)
    assert ledger.left == pytest.approx(0.15)


@given(st.lists(st.tuples(st.floats(1e-5, 2.0), st.integers(1, 40)), min_size=1, max_size=400))
def test_whatever_a_program_does_looks_that_find_nothing_stay_within_the_budget(queries):
    program = Program(steering())
    tried = 0.0  # what the first few looks at slow sites may take beyond the budget
    for seconds, line in queries:
        looks = program.steering.sites.at(frame(line)).looks
        tried += program.cost if program.query(seconds, line) and 0 < looks < 8 else 0.0
    assert program.own <= 0.05 + 0.02 * program.plain + program.cost + tried
    assert tried <= 40 * 8 * program.cost


def test_a_budget_that_is_used_up_recovers():
    program = Program(steering())
    assert [program.query(0.001, line) for line in range(100)].count(True) <= 11
    assert not program.query(0.01, 200)
    program.steering.timer.now += 60  # the program does something else
    assert program.query(0.01, 201)


def test_without_a_limit_everything_is_looked_at():
    program = Program(steering(share=inf))
    assert all(program.query(1e-6) for _ in range(1000))


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.5", 0.5), (0.1, 0.1), ("unlimited", inf), (None, inf)])
def test_the_setting(text, share):
    assert load_settings({"overhead": text, "home": "x"}, {}).overhead == share


@pytest.mark.parametrize("text", ["-1%", "much", "nan"])
def test_a_setting_that_means_nothing(text):
    with pytest.raises(SettingError, match="overhead"):
        load_settings({"overhead": text, "home": "x"}, {})


# sites


def test_a_site_that_proved_quick_is_left_alone():
    program = Program(steering())
    assert [program.query(0.001) for _ in range(1000)].count(True) == 1


def test_sites_that_are_all_new_and_quick_use_up_the_floor_and_no_more():
    program = Program(steering())
    for line in range(300):
        program.query(0.0005, line)
    assert program.own <= 0.05 + 0.02 * program.plain + program.cost


def test_a_quick_site_that_becomes_slow_is_worth_a_late_look_and_then_a_look():
    program = Program(steering())
    for _ in range(1000):
        program.query(0.001)
    site = program.steering.sites.at(frame(1))
    assert not program.steering.is_worth_a_late_look(site, 0.001)
    assert program.steering.is_worth_a_late_look(site, 0.3)
    assert not program.query(0.3), "it was quick until now"
    assert program.query(0.3)


def test_a_slow_query_at_a_new_site_gets_a_late_look_though_nothing_is_left():
    made = steering()
    made.ledger.spend("starting", 10)
    site = made.sites.at(frame(1))
    assert not made.looks_at(site)
    assert made.is_worth_a_late_look(site, 0.2)
    assert not made.is_worth_a_late_look(site, 0.05)
    for _ in range(8):
        made.looked(site, 0.2, 0.005)
    assert not made.is_worth_a_late_look(site, 0.2), "nothing was found there"
    assert not made.looks_at(site)


def test_a_site_where_parts_of_results_are_found_counts_by_what_they_save():
    made = steering()
    for line, found in ((1, 0.8), (2, 0.008)):
        site = made.sites.at(frame(line))
        for _ in range(20):
            made.looked(site, 1.0, 0.005, found)
        assert site.chance == pytest.approx(found)
    assert made.ledger.left < 0.0
    assert made.looks_at(made.sites.at(frame(1)))
    assert not made.looks_at(made.sites.at(frame(2))), "what is found there does not pay for the look"


def test_a_site_whose_results_are_found_is_looked_at_though_nothing_is_left():
    program = Program(steering())
    assert program.query(1.0, hit=True)
    program.steering.ledger.spend("starting", 10)
    assert all(program.query(1.0, hit=True) for _ in range(50))


def test_a_site_whose_results_are_no_longer_found_is_looked_at_less():
    program = Program(steering(), cost=0.04)
    program.query(1.0, hit=True)
    program.steering.ledger.spend("starting", 1000)
    assert [program.query(1.0) for _ in range(100)].count(True) < 30


# what is remembered


def test_later_processes_know_what_was_learned(tmp_path):
    first = Program(steering(memory=tmp_path))
    first.query(0.001, 1)
    first.query(1.0, 2)
    first.steering.sites.at(frame(2)).kept_now = True
    first.steering.sites.remember()
    second = Program(steering(memory=tmp_path))
    second.steering.ledger.spend("starting", 10)
    assert not second.query(0.001, 1)
    assert second.query(1.0, 2, hit=True), "an earlier process has kept something"


def test_another_program_knows_nothing_of_it(tmp_path):
    first = Program(steering(memory=tmp_path))
    first.query(0.001)
    first.steering.sites.remember()
    assert Program(steering(memory=tmp_path, program="other.py")).query(0.001)


TOO_LONG = json.dumps({"figures": {"odd": 9.0}, "sites": {}, "x": "x" * (1 << 20)})  # and in memory far longer


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"sites": {"main.py:1": [1]}}', '{"figures": 3, "sites": {}}', "x", TOO_LONG]
)
def test_a_damaged_memory_is_none(tmp_path, damage):
    first = Program(steering(memory=tmp_path))
    first.query(0.001)
    first.steering.sites.remember()
    (file,) = tmp_path.iterdir()
    file.write_text(damage)
    again = Program(steering(memory=tmp_path))
    assert again.query(0.001)
    assert "odd" not in again.steering.sites.figures
    again.steering.sites.remember()
    assert json.loads(file.read_text())["sites"]


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path):
    (tmp_path / "file").write_text("")
    program = Program(steering(memory=tmp_path / "file"))
    program.query(0.001)
    program.steering.sites.remember()


def test_programs_and_sites_that_are_remembered_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("nectar.overhead.sites._MOST_PROGRAMS", 5)
    monkeypatch.setattr("nectar.overhead.sites._MOST", 7)
    others = [tmp_path / name for name in ("notes.txt", "sites.json", "backup")]
    others[0].write_text("{}")
    others[1].write_text("{}")
    others[2].mkdir()
    for number in range(12):
        sites = Sites(tmp_path, f"{number}.py")
        for line in range(100):
            sites.at(frame(line)).ran(1.0)
            assert len(sites._known) <= 14
        sites.remember()
    assert all(each.exists() for each in others), "they are not ours"
    ours = set(tmp_path.iterdir()).difference(others)
    assert 0 < len(ours) <= 6
    assert all(len(json.loads(each.read_text())["sites"]) <= 7 for each in ours)


# keeping


def test_what_takes_longer_to_write_than_the_budget_allows_is_not_written():
    made = steering()
    assert made.why_not_keep(0.3, 100_000_000).startswith("writing it would take about")
    assert not made.why_not_keep(0.3, 100_000)
    assert not made.why_not_keep(30.0, 100_000_000)


def test_what_is_asked_for_again_is_written_if_that_pays_the_next_time():
    made = steering()
    assert not made.why_not_keep(1.0, 100_000_000, asked_before=True)
    assert made.why_not_keep(0.3, 100_000_000, asked_before=True)


def test_the_speed_of_this_disk_is_measured(tmp_path):
    made = steering(memory=tmp_path)
    made.sites.at(frame(1)).ran(1.0)
    assert not made.why_not_keep(2.0, 20_000_000)
    for _ in range(100):
        made.wrote(10_000_000, 1.0)
    assert made.why_not_keep(2.0, 20_000_000)
    made.sites.remember()
    later = steering(memory=tmp_path)
    later.sites.at(frame(1))
    assert later.why_not_keep(2.0, 20_000_000)


def test_a_small_result_says_little_of_how_long_a_large_one_takes():
    """Two megabytes took 0.35 s on a busy machine; by that, 42 would take seven seconds, and would never be kept."""
    made = steering()
    made.wrote(2_000_000, 0.35)
    assert made.writing(42_000_000) < 0.3
    assert not made.why_not_keep(4.0, 42_000_000, asked_before=True)
    for _ in range(10):
        made.wrote(100_000_000, 10.0)
    assert made.writing(42_000_000) > 2.0, "the disk is slow"
    for _ in range(20):
        made.wrote(100_000_000, 0.2)
    assert made.writing(42_000_000) < 0.3, "it was, for a while"


def test_what_is_found_again_no_sooner_than_computed_is_not_written():
    assert steering().why_not_keep(0.001, 2_000_000).startswith("computing it took")


def test_what_pays_the_first_time_it_is_found():
    made = steering()
    most = made.paying(1.0)
    assert not made.why_not_keep(1.0, int(most) - 1, asked_before=True)
    assert made.why_not_keep(1.0, int(most) + 1, asked_before=True)
    assert made.paying(1.0, slower=8) < most / 6
    assert made.paying(0.001) == 0
    assert steering(inf).paying(0.001) == inf


def test_without_late_looks_a_new_site_is_looked_at_whatever_loading_took():
    made = steering()
    made.ledger.spend("starting", 1000)
    assert not made.looks_at(made.sites.at(frame(1)))
    assert made.looks_at(made.sites.at(frame(1)), late=False)
    made.ledger.spend("looking up", 1)
    assert not made.looks_at(made.sites.at(frame(1)), late=False)


@pytest.mark.parametrize(("own", "seconds", "looks"), [(0.4, 0.01, False), (0.4, 1.0, True), (0.0001, 0.01, True)])
def test_what_a_look_at_a_call_takes_is_known_to_later_processes(tmp_path, own, seconds, looks):
    first = steering(memory=tmp_path)
    site = first.sites.named("prices.total")
    assert first.looks_at_call(site)
    for _ in range(3):
        first.called(site, seconds, own, hit=False)
    first.sites.remember()
    second = steering(memory=tmp_path)
    site = second.sites.named("prices.total")
    assert second.looks_at_call(site) is looks
    second.timer.now += 3600
    assert second.looks_at_call(site), "there is time to see whether that is still so"


class Function:
    """Calls of one memoised function; a look at one costs the same each time."""

    def __init__(self, steering, cost=0.0001):
        self.steering, self.cost = steering, cost
        self.site = steering.sites.named("prices.total")
        self.computing = self.own = 0.0

    def call(self, seconds, hit=False, keeping=0.0):
        looked = self.steering.looks_at_call(self.site)
        if looked:
            own = self.cost + (0.0 if hit else keeping)
            self.own += own
            self.steering.timer.now += own
            self.steering.called(self.site, seconds, own, hit, keeping=own - self.cost)
        else:
            self.steering.call_ran_alone(self.site, seconds)
        self.computing += 0.0 if looked and hit else seconds
        self.steering.timer.now += 0.0 if looked and hit else seconds
        return looked


@pytest.mark.parametrize("hit", [False, True])
def test_calls_that_proved_quicker_than_a_hit_are_left_alone_in_all_processes(tmp_path, hit):
    first = Function(steering(memory=tmp_path))
    assert [first.call(1e-6, hit) for _ in range(20_000)].count(True) == 3
    first.steering.timer.now += 3600
    assert not first.call(1e-6, hit), "whatever time is left, there is nothing to gain"
    first.steering.remember()
    later = Function(steering(memory=tmp_path))
    assert [later.call(1e-6, hit) for _ in range(20_000)].count(True) == 0
    later.steering.timer.now += 3600
    assert not later.call(1e-6, hit)


def test_calls_that_are_slower_than_a_hit_are_looked_at_whatever_keeping_their_results_took(tmp_path):
    """A miss takes longer than computing, and that pays: what was kept is found by the processes that follow."""
    first = Function(steering(share=0.0, floor=0.0, memory=tmp_path))
    looks = [first.call(0.001, keeping=0.001) for _ in range(3000)].count(True)
    assert looks > 1000
    assert first.own <= 0.5 * first.computing + 3 * 0.0011
    first.steering.remember()
    later = Function(steering(share=0.0, floor=0.0, memory=tmp_path))
    assert all([later.call(0.001, hit=True) for _ in range(3000)][5:])


@given(st.lists(st.tuples(st.sampled_from([1e-6, 1e-4, 1e-3, 0.1]), st.integers(1, 400)), min_size=1, max_size=30))
def test_looks_that_find_nothing_take_no_more_than_half_of_what_is_computed_and_the_budget(calls):
    function = Function(steering(), cost=0.0003)
    for seconds, times in calls:
        for _ in range(times):
            function.call(seconds, keeping=0.0005)
    assert function.own <= 0.05 + 0.52 * function.computing + 4 * 0.0008


def test_calls_whose_arguments_are_new_in_each_process_are_hardly_looked_at_any_more(tmp_path):
    """Their results were kept by the first process, as those of any function, and never asked for again."""
    looks = []
    for _ in range(4):
        function = Function(steering(share=0.0, floor=0.0, memory=tmp_path))
        looks.append([function.call(0.005, keeping=0.0015) for _ in range(1000)].count(True))
        function.steering.remember()
    assert looks[0] == 1000
    assert max(looks[1:]) < 250
    now = Function(steering(share=0.0, floor=0.0, memory=tmp_path))
    found = [now.call(0.005, hit=True) for _ in range(1000)]
    assert all(found[100:]), "they are asked for again"


def test_what_a_look_takes_by_the_clock_of_a_busy_machine_is_held_against_the_clock_time_of_calls():
    steering = Steering(0.0, 0.0)
    site = steering.sites.named("f")
    for _ in range(3):
        steering.called(site, 0.006, 0.002, hit=False, waited=0.006)
    assert not steering.looks_at_call(site)


def test_a_function_that_is_slow_now_and_then_is_looked_at_if_that_pays():
    function = Function(steering(share=0.0, floor=0.0))
    for _ in range(50):
        function.call(1e-6)
    assert not function.call(10.0), "it was quick until now"
    assert all(function.call(1e-6) for _ in range(5000))
    assert function.call(10.0, hit=True)


def test_a_call_that_is_slow_for_once_is_no_reason_to_look_at_those_that_follow():
    function = Function(steering(share=0.0, floor=0.0))
    for _ in range(50):
        function.call(1e-6)
    function.call(0.03)
    assert not any(function.call(1e-6) for _ in range(100))
    function.call(0.03)
    function.call(0.03)
    assert function.call(0.03), "it has become slow"


def test_a_function_that_has_become_quick_is_not_looked_at_for_ever():
    function = Function(steering(share=0.0, floor=0.0), cost=0.001)
    for _ in range(10):
        assert function.call(1000.0, hit=True)
    assert 5000 <= [function.call(1e-6, hit=True) for _ in range(10_000)].count(True) <= 5100


def test_what_an_earlier_version_has_learned_is_read(tmp_path):
    first = steering(memory=tmp_path)
    first.sites.at(frame(1)).ran(0.5)
    first.sites.remember()
    (path,) = tmp_path.iterdir()
    told = json.loads(path.read_text())
    told["sites"] = {name: [0.7, 3, 1, True] for name in told["sites"]}
    path.write_text(json.dumps(told))
    site = steering(memory=tmp_path).sites.at(frame(1))
    assert (site.seconds, site.looks, site.hits, site.kept_before, site.cost) == (0.7, 3, 1, True, 0.0)


LOOKING = "nectar.what_looks"  # which nobody ever loads


def loaded_in(seconds, **settings):
    made = steering(**settings)
    made.loaded(LOOKING, seconds)
    return made


def test_a_first_look_of_a_process_is_not_refused_because_loading_takes_long():
    made = steering()
    made.ledger.spend("starting", 1000)
    assert made.looks_at(made.sites.at(frame(1)), LOOKING)
    assert not made.looks_at(made.sites.at(frame(2))), "it is loaded by now, and counts"
    made.ledger.spend("looking up", 1)
    assert not made.looks_at(made.sites.at(frame(1)), LOOKING)


def test_a_site_that_has_found_nothing_does_not_load_what_looks_take():
    for seconds, loads in ((0.04, True), (0.06, False)):
        made = loaded_in(seconds)
        site = made.sites.at(frame(1))
        site.ran(0.2)
        assert made.looks_at(site, LOOKING) is loads
        assert made.looks_at(site), "once it is loaded a look is cheap"
        site.looked(1.0, 0.005)
        assert made.looks_at(site, LOOKING), "what is found there pays for it"


def test_quick_sites_of_a_known_program_load_nothing(tmp_path):
    """What is a little slower than two looks is left alone unless what looks is there, or something was kept."""
    made = loaded_in(0.03)
    site = made.sites.at(frame(1))
    site.ran(0.05)
    assert not made.looks_at(site, LOOKING)
    assert made.looks_at(site)
    site.kept_before = True
    assert made.looks_at(site, LOOKING)
    site.looks = 30
    assert not made.looks_at(site, LOOKING), "what was kept is never asked for again"


def test_what_is_slow_once_loads_nothing_unless_it_is_much_slower():
    made = loaded_in(0.03)
    site = made.sites.at(frame(1))
    for _ in range(100):
        made.ran_alone(site, 0.0005)
    assert not made.is_worth_a_late_look(site, 0.04, LOOKING)
    assert made.is_worth_a_late_look(site, 0.04)
    assert made.is_worth_a_late_look(site, 0.1, LOOKING)


def test_what_loading_took_is_known_to_later_processes_but_for_exceptions(tmp_path):
    first = steering(memory=tmp_path)
    first.sites.at(frame(1)).ran(1.0)
    assert first.loading(LOOKING) > 0.0, "it takes time, however long"
    first.loaded(LOOKING, 0.02)
    first.sites.remember()
    second = steering(memory=tmp_path)
    second.sites.at(frame(1))
    assert second.loading(LOOKING) == 0.02
    second.loaded(LOOKING, 100.0)
    assert 0.02 < second.loading(LOOKING) < 0.1
    assert second.loading("sys") == second.loading("") == 0.0, "what is there need not be loaded"


def test_what_all_sites_of_a_program_promise(tmp_path):
    first = steering(memory=tmp_path)
    for line in range(3):
        site = first.sites.at(frame(line))
        site.ran(0.4)
        site.looked(0.0, 0.005)
        site.kept_now = line > 0
    first.sites.remember()
    assert first.sites.promise == 0, "what this process has seen promises nothing to itself"
    assert steering(memory=tmp_path).sites.promise == pytest.approx(2 * 0.4 * 0.25)


def test_a_quick_site_has_a_limit_that_a_slow_query_ends():
    """Below the limit nothing else is asked; the first query above it makes the site one that is decided anew."""
    made = Steering(0.02, 0.05, timer=lambda: 0.0, age=0.0)
    site = made.sites.at(frame(1))
    assert not site.limit
    assert made.ran_alone(site, 1e-4)
    assert site.limit > 0.0
    assert not made.looks_at(site)
    assert not made.ran_alone(site, 10.0)
    assert not site.limit
    assert (made.left_alone, made.waived) == (1, 1)


def test_a_site_is_told_by_its_line_whichever_code_runs_there():
    """The same line of code that is made anew is the same site, and what lay where other code lies now is forgotten."""
    made = Steering(0.02, 0.05)
    sites = {id(made.sites.at(frame(5))) for _ in range(3)}
    assert len(sites) == 1
    assert made.sites.at(frame(6)) is not made.sites.at(frame(5))
    assert made.sites.at(None) is made.sites.named("")


def test_a_look_that_had_to_wait_for_other_processes_is_not_held_against_a_call():
    """By the clock it took half a second, of which Nectar worked for a millisecond."""
    steering = Steering(0.02, 0.05)
    site = steering.sites.named("f")
    for _ in range(10):
        steering.called(site, 0.03, 0.001, hit=False, waited=0.5)
    assert steering.looks_at_call(site)
    assert steering.why_not_keep_call(0.03, 0.001) == ""
    assert steering.ledger.spent["looking up"] == pytest.approx(5.0)
