"""Whoever asks for what is being computed waits for it: threads, tasks, processes; and nobody waits for the dead."""

import asyncio
import json
import os
import signal
import threading
import time

import pytest
from tests.dialects.python.programs import OUTCOMES, ended

import nectar

LIMIT = 20.0  # seconds after which a test says that something hangs


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


def counted(calls):
    """A function that says that it ran, and takes a while; whoever declares it pure vouches for it."""

    @nectar.pure
    def note():
        calls.append(threading.get_ident())
        time.sleep(0.1)

    return note


@pytest.mark.usefixtures("enabled")
class TestThreads:
    def test_eight_threads_compute_once(self):
        calls = []
        note = counted(calls)

        @nectar.memo
        def f(x):
            note()
            return [x]

        found = together(8, lambda at: f(1))
        assert found == [[1]] * 8
        assert len(calls) == 1
        assert len({id(each) for each in found}) == 8, "each has a list of its own"

    def test_different_keys_do_not_wait_for_each_other(self):
        barrier = threading.Barrier(4)
        meet = nectar.pure(lambda: barrier.wait(LIMIT))

        @nectar.memo
        def f(x):
            meet()
            return x

        assert together(4, f) == [0, 1, 2, 3]

    def test_an_error_is_not_kept_and_the_others_try_for_themselves(self):
        calls = []
        note = counted(calls)
        fails = nectar.pure(lambda: len(calls) == 1)

        @nectar.memo
        def f():
            note()
            if fails():
                raise ValueError("the first fails")
            return "good"

        found = together(6, lambda at: f())
        assert sum(isinstance(each, ValueError) for each in found) <= 1
        assert found.count("good") >= 5
        assert f() == "good"

    def test_a_result_that_cannot_be_kept_is_computed_by_each(self):
        @nectar.memo
        def f():
            return lambda: 1

        found = together(4, lambda at: f())
        assert [each() for each in found] == [1] * 4
        assert len({id(each) for each in found}) == 4

    def test_recursion_does_not_wait_for_itself(self):
        calls = []
        note = nectar.pure(lambda n: calls.append(n))

        @nectar.memo
        def fib(n):
            note(n)
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        assert together(4, lambda at: fib(30)) == [832040] * 4
        assert len(calls) == len(set(calls)) == 31

    def test_a_call_with_the_same_key_within_itself_ends(self):
        depth = []
        deeper = nectar.pure(lambda: (depth.append(1), len(depth) < 3)[1])

        @nectar.memo
        def f():
            return f() + 1 if deeper() else 0

        assert together(1, lambda at: f()) == [2]

    def test_functions_that_need_each_other_from_two_sides_end(self):
        started = threading.Barrier(2)
        meet = nectar.pure(lambda depth: started.wait(1) if depth == 0 else None)

        @nectar.memo
        def ping(n, depth=0):
            try_meeting(depth)
            return 1 if depth > 1 else pong(n, depth + 1)

        @nectar.memo
        def pong(n, depth=0):
            try_meeting(depth)
            return 1 if depth > 1 else ping(n, depth + 1)

        @nectar.pure
        def try_meeting(depth):
            try:
                meet(depth)
            except threading.BrokenBarrierError:
                pass

        assert together(2, lambda at: (ping if at else pong)(1)) == [1, 1]

    def test_work_handed_to_a_thread_within_a_call_does_not_wait_for_the_call(self):
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1)
        depth = []
        first = nectar.pure(lambda: (depth.append(1), len(depth) == 1)[1])

        @nectar.pure
        def elsewhere(call):
            return pool.submit(call).result(LIMIT / 2)

        @nectar.memo
        def f():
            return elsewhere(f) + 1 if first() else 0

        found = together(1, lambda at: f())
        assert found == [1], "a computation that waits for a thread which waits for it"

    def test_refreshing_beside_a_computation(self):
        calls = []
        note = counted(calls)

        @nectar.memo
        def f():
            note()
            return len(calls) > 0

        assert together(4, lambda at: f.call() if at % 2 else f()) == [True] * 4
        assert 2 <= len(calls) <= 3
        before = len(calls)
        assert f() is True
        assert len(calls) == before


@pytest.mark.usefixtures("enabled")
class TestTasks:
    def test_tasks_compute_once(self):
        calls = []
        note = nectar.pure(lambda: calls.append(1))

        @nectar.memo
        async def f(x):
            note()
            await asyncio.sleep(0.05)
            return {"x": x}

        async def main():
            return await asyncio.wait_for(asyncio.gather(*(f(1) for _ in range(8))), LIMIT)

        found = asyncio.run(main())
        assert found == [{"x": 1}] * 8
        assert len(calls) == 1
        assert len({id(each) for each in found}) == 8
        assert asyncio.run(f(1)) == {"x": 1}
        assert len(calls) == 1

    def test_a_cancelled_leader_does_not_leave_the_others_waiting(self):
        calls = []
        note = nectar.pure(lambda: calls.append(1))

        @nectar.memo
        async def f():
            note()
            await asyncio.sleep(0.1)
            return 1

        async def main():
            leader = asyncio.create_task(f())
            await asyncio.sleep(0.03)
            others = [asyncio.create_task(f()) for _ in range(3)]
            await asyncio.sleep(0)
            leader.cancel()
            return await asyncio.wait_for(asyncio.gather(*others), LIMIT), leader.cancelled()

        found, cancelled = asyncio.run(main())
        assert found == [1, 1, 1]
        assert cancelled
        assert len(calls) >= 2

    def test_a_cancelled_waiter_does_not_cancel_the_leader(self):
        @nectar.memo
        async def f():
            await asyncio.sleep(0.1)
            return 1

        async def main():
            leader = asyncio.create_task(f())
            await asyncio.sleep(0.03)
            waiter = asyncio.create_task(f())
            await asyncio.sleep(0.01)
            waiter.cancel()
            return await asyncio.wait_for(leader, LIMIT)

        assert asyncio.run(main()) == 1

    def test_a_loop_goes_on_while_a_task_waits(self):
        """A thread computes; a task of a loop that waits for it does not stop the loop."""
        gate = threading.Event()
        wait = nectar.pure(lambda: gate.wait(LIMIT))

        @nectar.memo
        async def f():
            await asyncio.to_thread(wait)
            return 1

        async def main():
            tasks = [asyncio.create_task(f()) for _ in range(3)]
            await asyncio.sleep(0.05)
            gate.set()
            return await asyncio.wait_for(asyncio.gather(*tasks), LIMIT)

        assert asyncio.run(main()) == [1, 1, 1]

    def test_errors_of_tasks_are_not_kept(self):
        calls = []
        note = nectar.pure(lambda: (calls.append(1), len(calls) == 1)[1])

        @nectar.memo
        async def f():
            if note():
                raise KeyError("first")
            return 1

        with pytest.raises(KeyError):
            asyncio.run(f())
        assert asyncio.run(f()) == 1
        assert asyncio.run(f()) == 1
        assert len(calls) == 2

    def test_a_coroutine_that_nobody_awaits_blocks_nobody(self):
        @nectar.memo
        async def f():
            return 1

        dropped = f()
        dropped.close()
        assert asyncio.run(asyncio.wait_for(f(), LIMIT)) == 1


PROCESSES = f"""
import json, os, sys, time
import nectar

@nectar.pure
def slowly():
    print("computing", flush=True)
    time.sleep(float(os.environ.get("SLOW", "0.3")))

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
    processes = [program.started("script", "a") for _ in range(4)]
    outputs = [read(process) for process in processes]
    assert sum(lines.count("computing") for lines in outputs) == 1
    assert sorted(json.loads(lines[-1])[1] for lines in outputs) == ["f computed"] + ["f reused"] * 3
    assert {json.loads(lines[-1])[0] for lines in outputs} == {"aa"}


def started_computing(program, *args, **environment):
    process = program.started("script", *args, **environment)
    assert process.stdout.readline() == "computing\n"
    return process


def test_when_the_leader_is_killed_a_waiter_takes_over(program):
    program.write(script=PROCESSES)
    leader = started_computing(program, "a", SLOW="60")
    waiters = [program.started("script", "a", SLOW="0.05") for _ in range(2)]
    time.sleep(0.3)
    assert all(waiter.poll() is None for waiter in waiters), "they wait"
    os.kill(leader.pid, signal.SIGKILL)
    leader.communicate()
    outputs = [read(waiter) for waiter in waiters]
    assert [json.loads(lines[-1])[0] for lines in outputs] == ["aa", "aa"]
    assert 1 <= sum(lines.count("computing") for lines in outputs) <= 2
    assert json.loads(read(program.started("script", "a"))[-1]) == ["aa", "f reused"]


def test_when_the_leader_raises_waiters_compute_themselves(program):
    program.write(script=PROCESSES)
    leader = started_computing(program, "error", SLOW="0.3")
    waiter = program.started("script", "error", SLOW="0.05")
    assert json.loads(read(leader)[-1]) == "error"
    assert read(waiter) == ["computing", '"error"']
    assert read(program.started("script", "error", SLOW="0")) == ["computing", '"error"'], "errors are not kept"


def test_a_leader_that_ends_without_a_word_leaves_nothing_behind(program):
    """os._exit in mid-computation: no handler runs, the next process computes at once."""
    program.write(script=PROCESSES.replace('print("computing", flush=True)', 'os.environ.get("DIE") and os._exit(0)'))
    assert read(program.started("script", "a", DIE="1")) == []
    assert json.loads(read(program.started("script", "a", SLOW="0"))[-1]) == ["aa", "f computed"]
