"""What every index does, whatever it keeps its rows in. A new one adds its factory to conftest.INDEXES and passes."""

import threading

import pytest
from msgspec.structs import asdict, replace
from tests.catalog.making import entry, key

from nectar.catalog.state import Accept, Decline, Granted, Lapsed, Present, Taken
from nectar.model.entry import Job, JobPart, Lease, Reservation, Span, Usage

NOW = 1_000_000.0


def put(index, number=0, now=NOW, **changes):
    """An entry that is there."""
    decision = index.add(entry(number, **changes), "", 0.0, now)
    assert isinstance(decision, Accept)
    return decision.entry


def counted(index, now=NOW):
    """The counts are right; what they are."""
    rows = list(index.entries())
    usage = index.usage(now)
    assert replace(usage, index=0) == Usage(
        entries=len(rows),
        size=sum(each.size for each in rows),
        files=sum(each.files for each in rows),
        pending=sum(lease.size for lease in index.leases() if lease.until > now),
        doomed=sum(size for _, size in index.doomed()),
    )
    assert not index.recount(apply=False)
    return usage


# entries


def test_empty_index_knows_nothing(index):
    assert index.lookup([key(1)]) == {}
    assert index.inquire([key(1)]) == {key(1): []}
    assert index.lookups([key(1)]) == {key(1): 0}
    assert list(index.entries()) == list(index.candidates()) == index.leases() == index.doomed() == index.jobs() == []
    assert index.find("") == index.names() == index.history("a") == []
    assert index.resolve("a") is None
    assert index.get_recipe(bytes(32)) is None
    assert index.usage(NOW) == Usage()
    assert not index.recount()
    assert index.expire(NOW) == 0
    assert index.evict([key(1)], NOW) == ([], {})
    assert index.referred(["aa/bb"]) == set()
    assert not index.pin(key(1), True)
    assert not index.unbind("a", "me", NOW)


def test_calls_with_nothing_do_nothing(index):
    assert index.lookup([]) == {}
    assert index.inquire([]) == {}
    assert index.lookups([]) == {}
    assert index.put_leases([]) == []
    assert index.referred([]) == set()
    assert index.evict([], NOW) == ([], {})
    index.touch({})
    index.supersede([])
    index.count_lookups({}, NOW)
    index.drop_leases([])
    index.doom([], NOW)
    index.forget_doomed([])
    counted(index)


def test_entry_comes_back_as_it_was_added(index, another):
    added = entry(
        1, kind="arrow", rows=2**40, seconds=0.1, size=2**50, manifest=bytes(range(32)), recipe=b"r" * 32,
        spans=(Span(b"a", b"b", 3), Span(b"c", b"c", 1)), producer="ü@host:1", signature=b"\x00s", rebuildable=False,
    )  # fmt: skip
    decision = index.add(added, "", 60.0, NOW)
    assert decision == Accept(replace(added, used=NOW, protected=NOW + 60.0))
    assert another().lookup([key(1)]) == {key(1): decision.entry}
    assert counted(index).size == 2**50


def test_inline_result_comes_back(index):
    added = put(index, 1, location="", inline=bytes(range(256)) * 16, files=0)
    assert index.lookup([key(1)])[key(1)] == added
    assert index.evict([key(1)], NOW) == ([added], {})
    assert index.doomed() == []
    counted(index)


def test_of_two_results_the_first_stays_and_the_second_is_doomed(index):
    first = put(index, 1)
    second = entry(1, location="ff/other", size=77)
    assert index.add(second, "", 0.0, NOW + 1) == Decline(first)
    assert index.lookup([key(1)]) == {key(1): first}
    assert index.doomed() == [("ff/other", 77)]
    assert index.add(first, "", 0.0, NOW + 2) == Decline(first), "the same one once more"
    assert index.doomed() == [("ff/other", 77)]
    assert counted(index).total == first.size + 77


def test_adding_ends_lease_and_reservation(index):
    new = entry(1)
    assert index.announce(Lease("t", new.location, "me", NOW + 9, 500), None, NOW)
    assert counted(index).pending == 500
    index.reserve(Reservation(key(1), "r", "me", NOW + 9), NOW)
    assert isinstance(index.add(new, "t", 0.0, NOW), Accept)
    assert index.leases() == []
    assert counted(index).pending == 0
    index.evict([key(1)], NOW)
    assert isinstance(index.reserve(Reservation(key(1), "s", "you", NOW + 9), NOW), Granted)


def test_a_writer_whose_lease_was_forgotten_adds_nothing(index):
    new = entry(1)
    index.announce(Lease("t", new.location, "me", NOW + 9, 500), None, NOW)
    assert index.expire(NOW + 9) == 1
    assert index.add(new, "t", 0.0, NOW + 10) == Lapsed()
    assert index.lookup([key(1)]) == {}
    assert index.doomed() == [(new.location, new.size)]
    counted(index)


def test_a_writer_who_is_late_adds_while_its_lease_is_known(index):
    new = entry(1)
    index.announce(Lease("t", new.location, "me", NOW + 9, 500), None, NOW)
    assert isinstance(index.add(new, "t", 0.0, NOW + 100), Accept)


def test_inquire_finds_all_entries_of_a_program(index):
    added = [put(index, number) for number in range(20)]
    found = index.inquire([key(0), key(1), key(99)])
    assert {each.key for each in found[key(0)]} == {each.key for each in added if each.program == key(0)}
    assert found[key(99)] == []
    assert set(found) == {key(0), key(1), key(99)}


def test_inquire_finds_those_that_were_added_last(index):
    added = [put(index, number) for number in range(0, 70, 7)]
    found = index.inquire([key(0), key(99)], 3)
    assert {each.key for each in found[key(0)]} == {each.key for each in added[-3:]}
    assert found[key(99)] == []
    index.evict([added[-1].key], NOW)
    assert {each.key for each in index.inquire([key(0)], 3)[key(0)]} == {each.key for each in added[-4:-1]}


def test_same_key_or_program_asked_twice(index):
    added = put(index, 1)
    assert index.lookup([key(1), key(1)]) == {key(1): added}
    assert index.inquire([key(1), key(1)])[key(1)] == [added]
    assert index.referred([added.location, added.location]) == {added.location}


def test_large_batches(index):
    added = {key(number): put(index, number) for number in range(5000)}
    wanted = [key(number) for number in range(2500, 7500)]
    assert index.lookup(wanted) == {each: added[each] for each in wanted if each in added}
    assert len(index.inquire([key(number) for number in range(5000)])[key(0)]) == 715
    index.count_lookups(dict.fromkeys(wanted, 2), NOW)
    assert index.lookups(wanted) == dict.fromkeys(wanted, 2)
    index.touch({each: (1, NOW + 1) for each in wanted})
    assert sum(each.hits for each in index.candidates()) == 2500
    locations = [each.location for each in added.values()]
    assert index.referred(locations) == set(locations)
    held = index.put_leases([Lease(str(number), place, "me", NOW + 1) for number, place in enumerate(locations)])
    assert len(held) == 5000
    index.drop_leases([lease.token for lease in held])
    gone, kept = index.evict(wanted, NOW)
    assert (len(gone), kept) == (2500, {})
    index.forget_doomed([each.location for each in gone])
    assert counted(index).entries == 2500


def test_entries_come_in_the_order_of_keys_and_candidates_in_any(index):
    for number in range(300):
        put(index, number)
    keys = [each.key for each in index.entries()]
    assert keys == sorted(keys)
    assert sorted(each.key for each in index.candidates()) == keys


def test_more_entries_than_one_page(index):
    for number in range(10_001):
        index.add(entry(number), "", 0.0, NOW)
    assert sum(1 for _ in index.entries()) == sum(1 for _ in index.candidates()) == counted(index).entries == 10_001


def test_entries_may_change_while_they_are_listed(index):
    for number in range(50):
        put(index, number)
    for each in index.entries():
        index.evict([each.key], NOW)
    assert counted(index).entries == 0


def test_candidates_say_what_policies_need(index):
    added = put(index, 1, rebuildable=False, size=5, files=3, seconds=2.5)
    index.pin(key(1), True)
    index.touch({key(1): (4, NOW + 7)})
    [candidate] = index.candidates()
    assert asdict(candidate) == {
        "key": added.key, "size": 5, "files": 3, "seconds": 2.5, "hits": 4, "created": 0.0, "used": NOW + 7,
        "protected": NOW, "pinned": True, "rebuildable": False,
    }  # fmt: skip


@pytest.mark.parametrize("length", range(7))
def test_find_by_prefix(index, length):
    keys = [bytes.fromhex(text).ljust(32, b"\0") for text in ("abcdef", "abcdee", "abcd", "abc0", "ab", "ff", "00")]
    keys += [b"\xff" * 32, b"\xab" + b"\xff" * 31]
    for each in keys:
        put(index, 0, key=each, location=f"xx/{each.hex()}")
    for prefix in {each.hex()[:length] for each in keys}:
        wanted = sorted(each for each in keys if each.hex().startswith(prefix))
        assert [found.key for found in index.find(prefix)] == wanted
        assert [found.key for found in index.find(prefix.upper())] == wanted


def test_find_by_a_whole_key_and_by_nothing_that_is_a_key(index):
    added = put(index, 1)
    assert index.find(key(1).hex()) == [added]
    assert index.find(key(1).hex() + "00") == []
    assert index.find("no hex") == []
    assert index.find(f"{key(1).hex()[:2]} ") == []


def test_superseded_until_it_is_used_again(index):
    for number in (1, 2):
        put(index, number)
    index.supersede([key(1), key(3)])
    assert {each.key: each.superseded for each in index.candidates()} == {key(1): True, key(2): False}
    index.touch({key(1): (1, NOW)})
    assert not any(each.superseded for each in index.candidates())


def test_touch_adds_uses_and_never_goes_back_in_time(index):
    put(index, 1)
    index.touch({key(1): (2, NOW + 10), key(2): (1, NOW)})
    index.touch({key(1): (1, NOW + 5)})
    found = index.lookup([key(1)])[key(1)]
    assert (found.hits, found.used) == (3, NOW + 10)
    assert key(2) not in index.lookup([key(2)])


def test_lookups_are_counted_without_entries(index, another):
    index.count_lookups({key(1): 1, key(2): 5}, NOW)
    index.count_lookups({key(1): 2}, NOW + 1)
    assert another().lookups([key(1), key(2), key(3)]) == {key(1): 3, key(2): 5, key(3): 0}


def test_pin(index):
    put(index, 1)
    assert index.pin(key(1), True)
    assert index.lookup([key(1)])[key(1)].pinned
    assert index.pin(key(1), False)
    assert not index.lookup([key(1)])[key(1)].pinned


# reservations


def test_one_computes_the_others_wait(index, another):
    other = another()
    asked = Reservation(key(1), "a", "me", NOW + 10)
    assert index.reserve(asked, NOW) == Granted(asked)
    assert other.reserve(Reservation(key(1), "b", "you", NOW + 10), NOW) == Taken(asked)
    assert other.reserve(Reservation(key(2), "b", "you", NOW + 10), NOW).reservation.token == "b"
    longer = replace(asked, until=NOW + 50)
    assert index.reserve(longer, NOW) == Granted(longer), "who has it may ask for more"
    assert other.reserve(Reservation(key(1), "b", "you", NOW + 60), NOW + 20) == Taken(longer)


def test_reservation_ends_with_its_time_or_when_given_back(index):
    index.reserve(Reservation(key(1), "a", "me", NOW + 10), NOW)
    assert isinstance(index.reserve(Reservation(key(1), "b", "you", NOW + 20), NOW + 10), Granted)
    index.release_reservation("a")
    assert isinstance(index.reserve(Reservation(key(1), "c", "him", NOW + 20), NOW + 11), Taken)
    index.release_reservation("b")
    assert isinstance(index.reserve(Reservation(key(1), "c", "him", NOW + 20), NOW + 11), Granted)
    assert index.expire(NOW + 20) == 1


def test_reservation_of_what_is_there(index):
    added = put(index, 1)
    assert index.reserve(Reservation(key(1), "a", "me", NOW + 10), NOW) == Present(added)


# leases


def test_lease_protects_until_its_time(index):
    added = put(index, 1)
    lease = Lease("t", added.location, "me", NOW + 10)
    assert index.put_leases([lease]) == [lease]
    assert index.leases() == [lease]
    gone, kept = index.evict([key(1)], NOW + 9)
    assert gone == []
    assert "me" in kept[key(1)]
    assert index.evict([key(1)], NOW + 10) == ([added], {})


def test_lease_is_prolonged_and_dropped(index):
    added = put(index, 1)
    index.put_leases([Lease("t", added.location, "me", NOW + 10)])
    longer = Lease("t", added.location, "me", NOW + 99)
    assert index.put_leases([longer]) == [longer]
    assert index.leases() == [longer]
    assert index.expire(NOW + 50) == 0
    index.drop_leases(["t", "unknown"])
    assert index.leases() == []
    assert index.evict([key(1)], NOW)[0] == [added]


def test_no_lease_on_what_is_gone(index):
    added = put(index, 1)
    index.evict([key(1)], NOW)
    assert index.put_leases([Lease("t", added.location, "me", NOW + 10)]) == []
    assert index.leases() == []


def test_announced_bytes_count_against_the_limit(index):
    put(index, 1, size=600)
    assert index.announce(Lease("a", "aa/1", "me", NOW + 10, 300), 1000, NOW)
    assert not index.announce(Lease("b", "aa/2", "me", NOW + 10, 101), 1000, NOW)
    assert index.announce(Lease("b", "aa/2", "me", NOW + 10, 100), 1000, NOW)
    assert counted(index).total == 1000
    assert index.announce(Lease("c", "aa/3", "me", NOW + 20, 400), 1000, NOW + 10), "lapsed ones count no more"
    assert index.announce(Lease("d", "aa/4", "me", NOW + 20, 10**15), None, NOW)


def test_doomed_bytes_count_against_the_limit(index):
    added = put(index, 1, size=600)
    index.evict([key(1)], NOW)
    assert not index.announce(Lease("a", "aa/1", "me", NOW + 10, 500), 1000, NOW)
    index.forget_doomed([added.location])
    assert index.announce(Lease("a", "aa/1", "me", NOW + 10, 500), 1000, NOW)


def test_expire_forgets_only_what_ran_out(index):
    index.announce(Lease("a", "aa/1", "me", NOW + 1, 1), None, NOW)
    index.announce(Lease("b", "aa/2", "me", NOW + 2, 1), None, NOW)
    index.reserve(Reservation(key(1), "r", "me", NOW + 1), NOW)
    assert index.expire(NOW + 1) == 2
    assert [lease.token for lease in index.leases()] == ["b"]


# deletion


def test_pinned_is_not_evicted(index):
    put(index, 1)
    index.pin(key(1), True)
    assert index.evict([key(1)], NOW) == ([], {key(1): "pinned"})
    assert key(1) in index.lookup([key(1)])


def test_evicted_files_are_doomed_until_forgotten(index, another):
    added = put(index, 1)
    assert index.evict([key(1), key(2)], NOW) == ([added], {})
    assert counted(another()) == Usage(doomed=added.size)
    assert index.doomed() == [(added.location, added.size)]
    index.forget_doomed([added.location, "aa/unknown"])
    assert counted(index) == Usage()


def test_dooming_twice_counts_once(index):
    index.doom([("aa/1", 10), ("aa/2", 5)], NOW)
    index.doom([("aa/1", 99)], NOW)
    assert counted(index).doomed == 15
    index.forget_doomed(["aa/1"])
    index.forget_doomed(["aa/1"])
    assert counted(index).doomed == 5


def test_what_is_lost_goes_whatever_protects_it(index):
    added = put(index, 1)
    index.pin(key(1), True)
    index.put_leases([Lease("t", added.location, "me", NOW + 10)])
    assert index.lose(added, NOW)
    assert index.lookup([key(1)]) == {}
    assert index.doomed() == [(added.location, added.size)]
    assert not index.lose(added, NOW)
    counted(index)


def test_a_result_that_took_the_place_of_a_lost_one_stays(index):
    lost = put(index, 1)
    index.evict([key(1)], NOW)
    new = put(index, 1, location="aa/new")
    assert not index.lose(lost, NOW)
    assert index.lookup([key(1)]) == {key(1): new}


def test_referred_are_entries_and_pending_deletions(index):
    there, gone = put(index, 1), put(index, 2)
    index.evict([key(2)], NOW)
    index.doom([("aa/doomed", 1)], NOW)
    index.announce(Lease("t", "aa/leased", "me", NOW + 1, 1), None, NOW)
    asked = [there.location, gone.location, "aa/doomed", "aa/leased", "aa/nobody"]
    assert index.referred(asked) == {there.location, gone.location, "aa/doomed"}


# names


def test_name_has_a_history(index, another):
    first = index.bind("team/ü 表/🐝", key(1), "me", NOW)
    assert index.bind("team/ü 表/🐝", key(1), "you", NOW + 1) == first, "nothing new"
    second = index.bind("team/ü 表/🐝", key(2), "you", NOW + 2)
    assert (first.version, second.version) == (1, 2)
    assert index.bind("team/ü 表/🐝", key(1), "me", NOW + 3).version == 3
    other = another()
    assert [name.key for name in other.history("team/ü 表/🐝")] == [key(1), key(2), key(1)]
    assert other.history("team/ü 表/🐝")[1] == second
    assert other.resolve("team/ü 表/🐝").version == 3
    assert index.resolve("team/Ü 表/🐝") is None


def test_names_by_prefix_as_they_are_now(index):
    for name in ("team/b", "team/a", "team/a%", "teamwork", "Team/c"):
        index.bind(name, key(1), "me", NOW)
        index.bind(name, key(2), "me", NOW)
    assert [name.name for name in index.names("team/")] == ["team/a", "team/a%", "team/b"]
    assert [name.name for name in index.names("team/a%")] == ["team/a%"]
    assert {name.version for name in index.names()} == {2}
    assert len(index.names()) == 5


def test_a_removed_name_points_to_nothing_and_its_versions_never_come_again(index, another):
    index.bind("a", key(1), "me", NOW)
    index.bind("a", key(2), "me", NOW)
    assert index.unbind("a", "you", NOW + 5, "it was wrong")
    assert not index.unbind("a", "you", NOW + 6)
    assert index.resolve("a") is None
    assert index.names() == []
    assert index.totals().names == 0
    removed, *before = another().history("a")
    assert (removed.version, removed.removed, removed.by, removed.note) == (3, True, "you", "it was wrong")
    assert [(name.version, name.key) for name in before] == [(2, key(2)), (1, key(1))]
    assert index.bind("a", key(2), "me", NOW + 7).version == 4
    assert index.totals().names == 1


def test_a_new_note_is_a_new_version_and_no_note_is_none(index):
    first = index.bind("a", key(1), "me", NOW, "first try")
    assert index.bind("a", key(1), "me", NOW + 1) == first
    assert index.bind("a", key(1), "me", NOW + 1, "first try") == first
    second = index.bind("a", key(1), "me", NOW + 2, "looked at by two people")
    assert (second.version, second.note) == (2, "looked at by two people")
    assert index.history("a") == [second, first]


def test_names_point_to_keys_without_entries_and_protect_nothing(index):
    added = put(index, 1)
    index.bind("a", key(1), "me", NOW)
    assert index.evict([key(1)], NOW) == ([added], {})
    assert index.resolve("a").key == key(1)


# recipes and jobs


def test_recipe_parts_are_kept_once(index, another):
    shared, parts = b"shared code " * 1000, [b"a", b"b" * 100_000, b""]
    identities = [index.put_recipe([shared, part]) for part in parts]
    size = index.totals().recipe_bytes
    assert index.put_recipe([shared, b"a"]) == identities[0]
    assert index.totals().recipe_bytes == size
    assert index.totals().recipes == 3
    swapped = index.put_recipe([b"a", shared])
    assert swapped not in identities
    assert index.totals().recipe_bytes == size, "no new part"
    assert [another().get_recipe(each) for each in identities] == [[shared, part] for part in parts]
    assert index.get_recipe(swapped) == [b"a", shared]
    assert size < 2000, "compressed"
    empty = index.put_recipe([])
    assert index.get_recipe(empty) == []
    repeated = index.put_recipe([b"a", b"a"])
    assert index.get_recipe(repeated) == [b"a", b"a"]


def test_job_log_is_bounded_and_comes_newest_first(index):
    parts = (JobPart(key(1), key(2), "hit", 0.5, 10, {"ü": "x"}),)
    jobs = [Job(NOW + number, key(number), key(0), 1.0, parts, (("s3://a", 5),)) for number in range(30)]
    for job in jobs:
        index.log(job, 10)
    assert index.jobs() == jobs[:19:-1]
    assert index.jobs(3) == jobs[:26:-1]
    index.log(jobs[0], 2)
    assert index.jobs() == [jobs[0], jobs[29]]
    assert index.totals().jobs == 2


# many at once


def test_survives_closing(another):
    index = another()
    added = put(index, 1)
    index.put_leases([Lease("t", added.location, "me", NOW + 10)])
    index.reserve(Reservation(key(2), "r", "me", NOW + 10), NOW)
    index.evict([put(index, 3).key], NOW)
    index.close()
    again = another()
    assert again.lookup([key(1)]) == {key(1): added}
    assert len(again.leases()) == 1
    assert isinstance(again.reserve(Reservation(key(2), "s", "you", NOW + 10), NOW), Taken)
    assert len(again.doomed()) == 1
    counted(again)


def at_once(*tasks):
    """Runs all in threads; raises what they raise."""
    failures = []

    def run(task):
        try:
            task()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_threads_do_not_disturb_each_other(another, shared):
    first = another()
    second = first if shared else another()

    def work(index, numbers):
        for number in numbers:
            index.add(entry(number), "", 0.0, NOW)
            index.touch({key(number): (1, NOW)})
            index.count_lookups({key(0): 1}, NOW)
            assert key(number) in index.lookup([key(number)])
            if number % 3 == 0:
                index.evict([key(number)], NOW)

    at_once(lambda: work(first, range(0, 200, 2)), lambda: work(second, range(1, 200, 2)))
    assert counted(first).entries == 200 - 67
    assert counted(second).doomed == 67 * 1000
    assert second.lookups([key(0)]) == {key(0): 200}


def test_one_of_many_reserves(another):
    answers = []

    def ask(number):
        index = another()
        answers.append(index.reserve(Reservation(key(1), str(number), "me", NOW + 10), NOW))

    at_once(*(lambda number=number: ask(number) for number in range(8)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 1


def test_two_who_add_one_key(another):
    decisions = []

    def add(number):
        index = another()
        decisions.append(index.add(entry(1, location=f"aa/{number}"), "", 0.0, NOW))

    at_once(*(lambda number=number: add(number) for number in range(8)))
    assert sum(isinstance(each, Accept) for each in decisions) == 1
    assert len({(each.entry if isinstance(each, Accept) else each.standing).location for each in decisions}) == 1
    assert counted(another()).doomed == 7000


def test_together_they_never_announce_more_than_the_limit(another):
    answers = []

    def announce(number):
        index = another()
        for count in range(10):
            lease = Lease(f"{number}-{count}", f"aa/{number}-{count}", "me", NOW + 10, 100)
            answers.append(index.announce(lease, 2500, NOW))

    at_once(*(lambda number=number: announce(number) for number in range(6)))
    assert sum(answers) == 25
    assert counted(another()).pending == 2500
