"""Whatever happens in whatever order: nothing protected is deleted, nothing wrong is returned, budgets hold.

The machine drives the real store and the real index with a clock of its own, and keeps a model beside them: what was
kept under which key, what is leased until when, what is pinned, what was damaged by the test itself.
"""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.catalog.making import As, bytes_on_disk, dead_process, folder_of, key, manual_clock, opened, value

from nectar.catalog.check import check
from nectar.catalog.collect import victims_of
from nectar.catalog.service import Kept, NotKept
from nectar.catalog.state import Budget, Granted, Present, Taken
from nectar.store.problem import Damaged, Gone
from nectar.store.read import Result

KEYS = st.integers(0, 11)
CHOICES = st.integers(0, 100)
SIZES = st.sampled_from([10, 100, 1500, 3000, 9000])
MOMENTS = st.sampled_from([1.0, 30.0, 300.0, 4000.0])
DEEP = os.environ.get("NECTAR_TEST_PROFILE") == "deep"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # nothing here depends on a disk
STEPS = 50
OVERHEAD = 500  # bytes that a result takes besides its content


class StoreMachine(RuleBasedStateMachine):
    steps = 0
    dead = ""  # the name of a process that is no more

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="nectar-machine-", dir=MEMORY))
        self.clock = manual_clock()
        self.values = {}  # number of a key -> what was kept under it last
        self.locations = {}  # number of a key -> where its entry lies
        self.damaged = set()  # numbers of keys whose files the test has damaged
        self.pinned = set()
        self.leases = []  # (lease, number, location)
        self.reserved = {}  # number of a key -> reservation
        self.names = {}
        self.left = set()  # locations where processes were writing that are no more
        self.catalog = None

    # Most rules need results to work on: the store begins with some, and several are kept at a time.

    @initialize(budget=st.sampled_from([0, 8000, 20000]), protect=st.sampled_from([0, 60]))
    def open(self, budget, protect):
        self.settings = {"budget": budget, "protect": protect, "verify": "before"}
        self.catalog = opened(self.home, self.clock, **self.settings)
        foreign = self.home / "results" / "data" / "ab" / "notes.txt"
        foreign.parent.mkdir(parents=True)
        foreign.write_text("mine")
        self.foreign = [foreign]
        self.keep([(number, 1500) for number in range(5)], False)

    def teardown(self):
        if self.catalog is not None:
            self.catalog.close()
        shutil.rmtree(self.home)

    # what may happen

    @rule(results=st.lists(st.tuples(KEYS, SIZES), min_size=1, max_size=6), again=st.booleans())
    def keep(self, results, again):
        for number, size in results:
            self.keep_one(number, size, again)

    def keep_one(self, number, size, again):
        wanted = value(number + (1000 if again else 0), size)
        standing = self.entry(number)
        done = self.catalog.keep(key(number), key(number % 3), wanted, seconds=float(size % 7 + 1))
        if isinstance(done, NotKept):
            budget = self.catalog.collector.budget.size
            held = sum(each.size for each in self.catalog.index.entries() if self.protected(each))
            assert budget, done
            assert held + size + OVERHEAD > budget, f"{done}, although {held} of {budget} bytes are protected"
            return
        assert isinstance(done, Kept)
        self.budget_holds(self.catalog.collector.budget)
        self.reserved.pop(number, None)
        if standing is not None and done.entry.location == standing.location and done.entry.created == standing.created:
            return  # the first result stays
        self.values[number], self.locations[number] = wanted, done.entry.location
        self.damaged.discard(number)
        self.pinned.discard(number)

    @rule(numbers=st.lists(KEYS, min_size=1, max_size=4, unique=True))  # what the first finds lost stays lost
    def look_up_and_open(self, numbers):
        programs = [key(number % 3) for number in numbers]
        for number, known in zip(numbers, self.catalog.lookup([key(n) for n in numbers], programs), strict=True):
            if known.entry is not None:
                self.use(number, known.entry)

    def use(self, number, entry):
        opened = self.catalog.open(entry)
        if isinstance(opened, Result):
            with opened:
                assert number not in self.damaged, "damage was not noticed"
                assert opened.to_object() == self.values[number]
        else:
            assert isinstance(opened, (Gone, Damaged))
            assert number in self.damaged, opened
            assert self.entry(number) is None, "a look-up still finds what is known to be lost"
            self.forget(number)

    def forget(self, number):
        """Damage was found: the result is lost, whatever protected it."""
        self.damaged.discard(number)
        self.pinned.discard(number)
        self.leases = [each for each in self.leases if each[1] != number]

    @rule(choice=CHOICES, seconds=MOMENTS)
    def lease(self, choice, seconds):
        number = self.pick(choice)
        entry = self.entry(number)
        if entry is not None:
            for lease in self.catalog.lease([entry], seconds):
                self.leases.append((lease, number, entry.location))

    @rule(choice=CHOICES)
    def lease_what_is_gone(self, choice):
        number = self.pick(choice)
        entry = self.entry(number)
        if entry is not None and entry.location:
            self.catalog.collector.evict(self.catalog.collector.plan(everything=True))
            held = self.catalog.lease([entry], 10.0)
            assert bool(held) == (self.entry(number) is not None)
            self.leases += [(lease, number, entry.location) for lease in held]

    @precondition(lambda self: self.leases)
    @rule(choice=st.integers(0, 100), seconds=MOMENTS)
    def renew(self, choice, seconds):
        lease, number, location = self.leases.pop(choice % len(self.leases))
        held = self.catalog.renew([lease], seconds)
        entry = self.entry(number)
        there = entry is not None and entry.location == location
        assert bool(held) or not there
        self.leases += [(each, number, location) for each in held if there]

    @precondition(lambda self: self.leases)
    @rule(choice=st.integers(0, 100))
    def release(self, choice):
        self.catalog.end([self.leases.pop(choice % len(self.leases))[0]])

    @rule(choices=st.lists(CHOICES, min_size=1, max_size=3))
    def evict(self, choices):
        entries = {each.key: each for each in map(self.entry, map(self.pick, choices)) if each is not None}
        self.catalog.collector.evict(victims_of(entries.values(), "asked for"))
        left = self.catalog.index.lookup(list(entries))
        assert set(left) == {each.key for each in entries.values() if self.protected(each)}

    @rule(choice=CHOICES, pinned=st.booleans())
    def pin(self, choice, pinned):
        number = self.pick(choice)
        there = self.entry(number) is not None
        assert self.catalog.pin(key(number), pinned) == there
        if there:
            (self.pinned.add if pinned else self.pinned.discard)(number)

    @rule(seconds=MOMENTS)
    def time_passes(self, seconds):
        self.clock.move(seconds)

    @rule(
        size=st.sampled_from([None, 0, 3000, 12000]),
        files=st.sampled_from([None, 2, 6]),
        age=st.sampled_from([None, 100.0]),
    )
    def enforce(self, size, files, age):
        budget = self.catalog.collector.budget
        self.catalog.collector.budget = Budget(size=size, files=files, age=age)
        try:
            done = self.catalog.collector.enforce()
        finally:
            self.catalog.collector.budget = budget
        assert not any(victim.key in {key(number) for number in self.pinned} for victim in done.evicted)
        self.budget_holds(Budget(size=size, files=files, age=age))

    def budget_holds(self, budget):
        now = self.clock.now()
        free = [each for each in self.catalog.index.entries() if not self.protected(each)]
        usage = self.catalog.usage()
        assert budget.size is None or usage.total <= budget.size or not free
        assert budget.files is None or usage.files <= budget.files or not [each for each in free if each.files]
        if budget.age is not None:
            assert not [each for each in free if each.used < now - budget.age and each.protected <= now]

    @rule(grace=st.sampled_from([0.0, 3600.0]))
    def sweep(self, grace):
        doomed = {location for location, _ in self.catalog.index.doomed()}  # these go before anything is swept
        would = self.catalog.collector.sweep(apply=False, grace=grace)
        done = self.catalog.collector.sweep(grace=grace)
        assert [location for location in would.swept if location not in doomed | self.left] == done.swept

    @rule(number=KEYS, staged=st.booleans())
    def leave_garbage(self, number, staged):
        location = self.catalog.store.new_location(key(number))
        folder = self.home / "results" / ("staging/" + location[3:] if staged else "data/" + location)
        folder.mkdir(parents=True)
        (folder / "object.pickle").write_bytes(b"x" * 100)
        if not staged:
            (folder / "manifest.json").write_bytes(b"{}")

    @rule(number=KEYS, size=SIZES, how=st.sampled_from(["writing", "published", "reading", "computing"]))
    def somebody_dies(self, number, size, how):
        """Another process ends in the middle of something; whoever needs room, or sweeps, finds it again."""
        other = opened(self.home, self.clock, **self.settings)
        other.presence = As(self.dead)
        entry = self.entry(number)
        if how == "reading" and entry is not None:
            other.lease([entry], 4000.0)
            self.catalog.collector.end_abandoned()
        elif how == "computing" and number not in self.reserved:
            other.reserve(key(number), 30.0)
            self.catalog.collector.end_abandoned()
        elif how in ("writing", "published"):
            lease = other._announced(key(number), size)
            if lease is not None:
                self.left.add(lease.location)
                staging = other.store.stage(lease.location)
                staging.__enter__()
                staging.write_object(value(number, size))
                if how == "published":
                    staging.publish()
        other.close()

    @rule()
    def room_is_found_again(self):
        self.catalog.collector.enforce()
        assert self.catalog.usage().pending == self.catalog.usage().doomed == 0
        assert not [lease for lease in self.catalog.index.leases() if lease.holder == self.dead]
        assert not [location for location in self.left if self.catalog.store.size_of(location) is not None]
        self.left.clear()

    @rule()
    def restart(self):
        self.catalog.close()
        self.catalog = opened(self.home, self.clock, **self.settings)

    @rule(choice=CHOICES, how=st.sampled_from(["flip", "truncate", "part", "manifest", "folder"]))
    def damage(self, choice, how):
        self.damage_one(self.pick(choice), how)

    def damage_one(self, number, how):
        entry = self.entry(number)
        if entry is None or not entry.location:
            return
        folder = folder_of(self.catalog, entry)
        if number in self.damaged:
            return
        part = folder / "object.pickle"
        if how == "flip":
            content = bytearray(part.read_bytes())
            content[len(content) // 2] ^= 1
            part.write_bytes(content)
        elif how == "truncate":
            part.write_bytes(part.read_bytes()[:-1])
        elif how == "folder":
            shutil.rmtree(folder)
        else:
            (folder / "manifest.json" if how == "manifest" else part).unlink()
        self.damaged.add(number)
        self.catalog.store.verified.forget()  # as after an unclean end

    @rule(choice=CHOICES)
    def damage_and_open(self, choice):
        number = self.pick(choice)
        entry = self.entry(number)
        if entry is None or not entry.location:
            return
        self.damage_one(number, "flip")
        assert isinstance(self.catalog.open(entry), (Damaged, Gone))
        assert self.entry(number) is None
        self.forget(number)

    @rule(number=KEYS, seconds=MOMENTS)
    def reserve(self, number, seconds):
        standing = self.reserved.get(number)
        answer = self.catalog.reserve(key(number), seconds)
        if self.entry(number) is not None:
            assert isinstance(answer, Present)
        elif standing is not None and self.clock.now() < standing.until <= self.clock.now() + 2 * seconds:
            assert answer == Taken(standing)
        else:
            assert isinstance(answer, Granted)
            self.reserved[number] = answer.reservation

    @rule(number=KEYS)
    def give_back(self, number):
        standing = self.reserved.pop(number, None)
        if standing is not None:
            self.catalog.release(standing)

    @rule(name=st.sampled_from(["team/a", "team/ü", "b"]), number=KEYS)
    def bind(self, name, number):
        bound = self.catalog.bind(name, key(number))
        history = self.names.setdefault(name, [])
        if not history or history[0] != key(number):
            history.insert(0, key(number))
        assert bound.version == len(history)

    @rule(thorough=st.booleans())
    def check_and_repair(self, thorough):
        check(self.catalog, repair=True, thorough=thorough, grace=0.0)
        left = check(self.catalog, thorough=thorough, grace=0.0)
        assert {finding.what for finding in left} <= {"foreign file"}
        for number in list(self.damaged):
            if self.entry(number) is None:
                self.forget(number)
            else:
                assert not thorough
        if not [lease for lease, _, _ in self.leases if lease.until > self.clock.now()]:
            sizes = sum(each.size for each in self.catalog.index.entries() if each.location)
            assert bytes_on_disk(self.catalog) == sizes + sum(path.stat().st_size for path in self.foreign)

    # what holds at all times

    def pick(self, choice):
        """One of the keys that have an entry; any, if none has."""
        there = [number for number in sorted(self.values) if self.entry(number) is not None]
        return there[choice % len(there)] if there else choice % 12

    def entry(self, number):
        return self.catalog.index.lookup([key(number)]).get(key(number))

    def protected(self, entry):
        held = {location for lease, _, location in self.leases if lease.until > self.clock.now()}
        return entry.pinned or (entry.location and entry.location in held)

    @invariant()
    def protected_results_are_whole(self):
        if self.catalog is None:
            return
        now = self.clock.now()
        held = {number: location for lease, number, location in self.leases if lease.until > now}
        for number in (held.keys() | self.pinned) - self.damaged:
            entry = self.entry(number)
            assert entry is not None, f"{number} was protected and is gone"
            assert entry.location == held.get(number, entry.location)
            opened = self.catalog.store.open(entry)
            assert isinstance(opened, Result), (number, opened)
            with opened:
                assert opened.to_object() == self.values[number]

    @invariant()
    def entries_have_files(self):
        if self.catalog is None:
            return
        for number in self.values:
            entry = self.entry(number)
            if entry is not None and number not in self.damaged:
                assert not self.catalog.store.examine(entry, thorough=False)

    @invariant()
    def counts_equal_rows(self):
        if self.catalog is None:
            return
        entries = list(self.catalog.index.entries())
        usage = self.catalog.usage()
        assert usage.entries == len(entries)
        assert usage.size == sum(each.size for each in entries)
        assert usage.files == sum(each.files for each in entries)
        assert usage.doomed == sum(size for _, size in self.catalog.index.doomed())
        leases = [lease for lease in self.catalog.index.leases() if lease.until > self.clock.now()]
        assert usage.pending == sum(lease.size for lease in leases if lease.holder == self.dead)

    @invariant()
    def steps_are_counted(self):
        StoreMachine.steps += 1

    @invariant()
    def nothing_foreign_is_deleted(self):
        assert self.catalog is None or all(path.read_text() == "mine" for path in self.foreign)

    @invariant()
    def names_remember(self):
        for name, keys in self.names.items():
            assert [each.key for each in self.catalog.index.history(name)] == keys


def test_whatever_happens_to_a_store():
    StoreMachine.steps, StoreMachine.dead = 0, dead_process()
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=1000 if DEEP else 100,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert StoreMachine.steps >= 1000
