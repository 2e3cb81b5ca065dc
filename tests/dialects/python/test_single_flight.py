"""Whoever asks for what is being computed waits for it: threads, tasks, processes; and nobody waits for the dead."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.dialects.python.programs import OUTCOMES, ended

import nectar
from nectar.dialects.python.invocation import Invocation
from nectar.errors import CatalogUnavailableError
from nectar.overhead.steering import Steering

LIMIT = 10.0  # seconds after which a test says that something hangs


def together(count, work):
    """Results of so many threads that start at once; none may hang."""
    barrier = threading.Barrier(count)
    results = [None] * count

    def run(at):
        barrier.wait(LIMIT)
        try:
            results[at] = work(at)
        except BaseException as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return results


# Tests see and steer computations by what leaves no trace in a key: lines that are printed, and files that functions
# which are declared pure look at.


@nectar.pure
def slowly():
    print("computing")
    time.sleep(0.1)


@nectar.pure
def first_time(path):
    """Whether nobody has asked before."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@nectar.pure
def wait_for(path):
    until = time.monotonic() + LIMIT / 2
    while not os.path.exists(path):
        assert time.monotonic() < until, f"nobody has made {path}"
        time.sleep(0.005)


@pytest.fixture
def computed(capsys):
    """How many computations have been printed since this was last asked."""
    return lambda: len(capsys.readouterr().out.splitlines())


@nectar.memo
def once(x):
    slowly()
    return [x]


@nectar.memo
def fib(n):
    print("fib", n)
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@pytest.mark.usefixtures("enabled")
class TestThreads:
    def test_eight_threads_compute_once(self, computed):
        found = together(8, lambda at: once(1))
        assert found == [[1]] * 8
        assert computed() == 1
        assert len({id(each) for each in found}) == 8, "each has a list of its own"

    def test_different_keys_do_not_wait_for_each_other(self, tmp_path):
        @nectar.memo
        def f(x, mine, others):
            first_time(mine)
            for other in others:
                wait_for(other)
            return x

        paths = [str(tmp_path / str(at)) for at in range(4)]
        assert together(4, lambda at: f(at, paths[at], paths)) == [0, 1, 2, 3]

    def test_an_error_is_not_kept_and_the_others_try_for_themselves(self, tmp_path):
        @nectar.memo
        def f(path):
            slowly()
            if first_time(path):
                raise ValueError("the first fails")
            return "good"

        found = together(6, lambda at: f(str(tmp_path / "asked")))
        assert sum(isinstance(each, ValueError) for each in found) == 1
        assert found.count("good") == 5
        assert f(str(tmp_path / "asked")) == "good"

    def test_a_result_that_cannot_be_kept_is_computed_by_each(self, computed):
        @nectar.memo
        def f():
            slowly()
            return lambda: 1

        found = together(4, lambda at: f())
        assert [each() for each in found] == [1] * 4
        assert len({id(each) for each in found}) == 4
        assert computed() == 4

    def test_recursion_does_not_wait_for_itself(self, computed):
        assert together(1, lambda at: fib(40)) == [102334155]
        assert computed() == 41
        assert together(4, lambda at: fib(60)) == [1548008755920] * 4
        assert computed() == 20

    def test_a_call_with_the_same_key_within_itself_ends(self, tmp_path):
        @nectar.memo
        def f(path):
            return f(path) + 1 if first_time(path) else 0

        assert together(1, lambda at: f(str(tmp_path / "asked"))) == [1]

    def test_functions_that_need_each_other_from_two_sides_end(self, tmp_path):
        """Each leads a flight that the other wants to wait for; without Nectar both end, because depth ends it."""

        @nectar.memo(ignore=["depth"])
        def ping(mine, other, depth=0):
            first_time(mine)
            wait_for(other)
            return 1 if depth > 2 else pong(mine, other, depth + 1)

        @nectar.memo(ignore=["depth"])
        def pong(mine, other, depth=0):
            first_time(other)
            wait_for(mine)
            return 1 if depth > 2 else ping(mine, other, depth + 1)

        paths = str(tmp_path / "ping"), str(tmp_path / "pong")
        assert together(2, lambda at: (ping if at else pong)(*paths)) == [1, 1]

    def test_a_call_handed_to_a_thread_by_the_same_call_ends(self, tmp_path):
        """Without Nectar it ends; the thread must not wait for the computation that waits for it."""

        @nectar.pure
        def elsewhere(call, *args):
            done = []
            thread = threading.Thread(target=lambda: done.append(call(*args)), daemon=True)
            thread.start()
            thread.join(30.0)
            return done[0] if done else "it waits for the call that waits for it"

        @nectar.memo
        def f(path):
            return elsewhere(f, path) if first_time(path) else "ended"

        assert f(str(tmp_path / "asked")) == "ended"

    def test_refreshing_beside_a_computation(self, computed):
        assert together(4, lambda at: once.call(1) if at % 2 else once(1)) == [[1]] * 4
        assert 2 <= computed() <= 3
        assert once(1) == [1]
        assert computed() == 0

    def test_waiters_may_change_what_they_get(self):
        def change(at):
            mine = once(7)
            mine.append(at)
            return mine

        assert together(6, change) == [[7, at] for at in range(6)]
        assert once(7) == [7]


@pytest.fixture
def reserving(enabled, monkeypatch):
    """Sets what happens in the catalog between a reservation and the answer; and tells when one was given back."""
    catalog = nectar.session.current().catalog
    index, given_back = catalog.index._index, threading.Event()
    reserve, release = index.reserve, index.release_reservation

    def begin(meanwhile):
        def reserved(*arguments):
            answer = reserve(*arguments)
            meanwhile()
            return answer

        monkeypatch.setattr(index, "reserve", reserved)
        monkeypatch.setattr(index, "release_reservation", lambda token: (release(token), given_back.set()))
        for name in ("reserve", "release_reservation"):
            catalog.index.__dict__.pop(name, None)
        return given_back

    yield begin
    for name in ("reserve", "release_reservation"):
        catalog.index.__dict__.pop(name, None)


def reservations():
    session = nectar.session.current()
    return session.catalog.index.reservations() + list(session.reservations._held)


ALONE = "TEST_ALONE_IN_ITS_PROCESS"


def test_an_interrupt_leaves_no_reservation():
    """In a process of its own, where no other test has had to do with interrupts."""
    asked = f"{__file__}::test_an_interrupt_while_a_reservation_is_asked_for_leaves_none"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", asked]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[3],
        env={**os.environ, ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.skipif(
    ALONE not in os.environ, reason="test_an_interrupt_leaves_no_reservation runs it in a process of its own"
)
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="nobody can interrupt a thread here")
def test_an_interrupt_while_a_reservation_is_asked_for_leaves_none(reserving):
    """It is granted to a call that is there no more: the next one would wait for its own process."""

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.1)

    given_back = reserving(interrupt)
    with pytest.raises(KeyboardInterrupt):
        once(8)
    assert given_back.wait(LIMIT)
    assert reservations() == []


@nectar.memo
def never_kept(x):
    slowly()
    if x < 0:
        raise ValueError("its own")
    return lambda: x


def test_a_catalog_that_falls_ill_while_a_function_runs_is_none_of_its_errors(enabled, monkeypatch):
    def release(reservation):
        raise CatalogUnavailableError("it is locked")

    monkeypatch.setattr(nectar.session.current().catalog, "release", release)
    assert never_kept(1)() == 1
    with pytest.raises(ValueError, match="its own"):
        never_kept(-1)
    assert nectar.session.current().reservations._held == {}


@nectar.memo
async def once_later(x):
    print("computing")
    await asyncio.sleep(0.05)
    return {"x": x}


@pytest.mark.usefixtures("enabled")
class TestTasks:
    def test_tasks_compute_once(self, computed):
        async def main():
            return await asyncio.wait_for(asyncio.gather(*(once_later(1) for _ in range(8))), LIMIT)

        found = asyncio.run(main())
        assert found == [{"x": 1}] * 8
        assert computed() == 1
        assert len({id(each) for each in found}) == 8
        assert asyncio.run(once_later(1)) == {"x": 1}
        assert computed() == 0
        assert asyncio.iscoroutinefunction(once_later)

    def test_a_cancelled_leader_does_not_leave_the_others_waiting(self, computed):
        async def main():
            leader = asyncio.create_task(once_later(2))
            await asyncio.sleep(0.03)
            others = [asyncio.create_task(once_later(2)) for _ in range(3)]
            await asyncio.sleep(0.01)
            leader.cancel()
            return await asyncio.wait_for(asyncio.gather(*others), LIMIT), leader.cancelled()

        assert asyncio.run(main()) == ([{"x": 2}] * 3, True)
        assert computed() >= 2

    def test_a_cancelled_waiter_does_not_cancel_the_leader(self, computed):
        async def main():
            leader = asyncio.create_task(once_later(3))
            await asyncio.sleep(0.03)
            waiter, other = asyncio.create_task(once_later(3)), asyncio.create_task(once_later(3))
            await asyncio.sleep(0.01)
            waiter.cancel()
            return await asyncio.wait_for(asyncio.gather(leader, other), LIMIT)

        assert asyncio.run(main()) == [{"x": 3}] * 2
        assert computed() == 1

    def test_a_task_that_is_cancelled_while_it_asks_for_a_reservation_holds_none(self, reserving):
        """It would be renewed for as long as this process lives, and the next call would wait for it as long."""
        asked, cancelled = threading.Event(), threading.Event()
        given_back = reserving(lambda: (asked.set(), cancelled.wait(LIMIT)))

        async def main():
            task = asyncio.create_task(once_later(5))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.wait([task])
            cancelled.set()
            return task.cancelled()

        assert asyncio.run(main())
        assert given_back.wait(LIMIT)
        assert reservations() == []

    def test_a_loop_goes_on_while_a_task_waits_for_another_thread(self, tmp_path, computed):
        @nectar.memo
        @nectar.pure  # the file that it waits for is made by others
        async def f(path):
            print("computing")
            await asyncio.to_thread(wait_for, path)
            return 1

        path = str(tmp_path / "go")
        thread = threading.Thread(target=lambda: asyncio.run(f(path)), daemon=True)
        thread.start()

        async def main():
            waiting = asyncio.create_task(f(path))
            await asyncio.sleep(0.1)
            first_time(path)
            return await asyncio.wait_for(waiting, LIMIT)

        assert asyncio.run(main()) == 1
        thread.join(LIMIT)
        assert not thread.is_alive()
        assert computed() == 1

    def test_errors_of_tasks_are_not_kept(self, tmp_path, computed):
        @nectar.memo
        async def f(path):
            print("computing")
            if first_time(path):
                raise KeyError("first")
            return 1

        path = str(tmp_path / "asked")
        with pytest.raises(KeyError):
            asyncio.run(f(path))
        assert [asyncio.run(f(path)), asyncio.run(f(path))] == [1, 1]
        assert computed() == 2

    def test_a_coroutine_that_nobody_awaits_blocks_nobody(self):
        once_later(4).close()
        assert asyncio.run(asyncio.wait_for(once_later(4), LIMIT)) == {"x": 4}


PROCESSES = f"""
import json, os, sys, time
import nectar

@nectar.pure
def slowly():
    print("computing", flush=True)
    with open("slow") as file:
        time.sleep(float(file.read()))

@nectar.memo
def f(x):
    slowly()
    if x == "error":
        raise ValueError(x)
    return x * 2
{OUTCOMES}
if __name__ == "__main__":
    sys.stdin.readline() if "wait" in sys.argv else None
    try:
        print(json.dumps(outcomes(f, sys.argv[1])))
    except ValueError as error:
        print(json.dumps(str(error)))
"""


def read(process):
    return ended(process)[0].splitlines()


def test_processes_compute_once(program):
    program.write(script=PROCESSES)
    (program.folder / "slow").write_text("0.3")
    processes = [program.started("script", "a") for _ in range(4)]
    outputs = [read(process) for process in processes]
    assert sum(lines.count("computing") for lines in outputs) == 1
    assert sorted(json.loads(lines[-1])[1] for lines in outputs) == ["f computed"] + ["f reused"] * 3
    assert {json.loads(lines[-1])[0] for lines in outputs} == {"aa"}


def test_when_the_leader_is_killed_a_waiter_takes_over(program):
    program.write(script=PROCESSES)
    leader = started_computing(program, "a", 60)
    waiters = [program.started("script", "a") for _ in range(2)]
    time.sleep(0.3)
    (program.folder / "slow").write_text("0.05")
    assert all(waiter.poll() is None for waiter in waiters), "they wait"
    os.kill(leader.pid, signal.SIGKILL)
    leader.communicate()
    outputs = [read(waiter) for waiter in waiters]
    assert [json.loads(lines[-1])[0] for lines in outputs] == ["aa", "aa"]
    assert 1 <= sum(lines.count("computing") for lines in outputs) <= 2
    assert json.loads(read(program.started("script", "a"))[-1]) == ["aa", "f reused"]


def test_when_the_leader_raises_waiters_compute_themselves(program):
    program.write(script=PROCESSES)
    leader = started_computing(program, "error", 0.3)
    waiter = program.started("script", "error")
    assert json.loads(read(leader)[-1]) == "error"
    assert read(waiter) == ["computing", '"error"']
    assert read(program.started("script", "error")) == ["computing", '"error"'], "errors are not kept"


def test_a_leader_that_ends_without_a_word_leaves_nothing_behind(program):
    """os._exit in mid-computation: no handler runs, and the next process computes at once."""
    program.write(
        script=PROCESSES.replace("time.sleep(float(file.read()))", "os._exit(0) if file.read() == 'die' else 0")
    )
    (program.folder / "slow").write_text("die")
    assert read(program.started("script", "a")) == ["computing"]
    (program.folder / "slow").write_text("")
    assert json.loads(read(program.started("script", "a"))[-1]) == ["aa", "f computed"]


def started_computing(program, argument, seconds):
    (program.folder / "slow").write_text(str(seconds))
    process = program.started("script", argument)
    assert process.stdout.readline() == "computing\n"
    return process


@pytest.mark.usefixtures("enabled")
def test_an_interrupt_while_waiting_for_others_lets_nobody_wait_for_ever(monkeypatch, computed):
    """Ctrl-C in the moment when other processes are asked: the next caller computes."""

    fresh = nectar.memo(once.func)  # one that has not shown yet how quick it is

    def interrupted(self, key):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("nectar.catalog.flights.Reservations.take_or_wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fresh(71)
    assert together(2, lambda at: fresh(71)) == [[71]] * 2
    assert computed() == 1


@nectar.pure
def wait_for_four(folder, number):
    """Ends when four calls are here at once."""
    Path(folder, str(number)).touch()
    while not are_four_here(folder):
        time.sleep(0.01)


def are_four_here(folder):
    return all(os.path.exists(os.path.join(folder, str(each))) for each in range(4))


@nectar.memo
def beside_others(folder, number):
    wait_for_four(folder, number)
    return [number]


def test_calls_that_ran_beside_each_other_save_no_more_than_the_time_that_passed(enabled, monkeypatch, tmp_path):
    """Each took as long as all four: finding their results saves that once."""
    folder = tmp_path / "calls"
    folder.mkdir()
    steering = Steering(timer=lambda: 1008.0 if are_four_here(folder) else 1000.0)
    monkeypatch.setattr(enabled, "steering", steering)
    told = []

    def computed(self, value, seconds, shared, why_not=""):
        told.append((seconds, shared))
        self.abandon()

    monkeypatch.setattr(Invocation, "computed", computed)
    assert together(4, lambda at: beside_others(str(folder), at)) == [[0], [1], [2], [3]]
    assert [shared for _, shared in told] == pytest.approx([seconds / 4 for seconds, _ in told])
    assert len(told) == 4
