"""Keeping beside the work: results are there for the next process, however and wherever they were computed."""

import json
import os
import sys

import pytest
from tests.dialects.python.programs import OUTCOMES, ended

import nectar
from nectar import session

MODULE = """
import sys
import nectar

@nectar.memo
def f(x):
    print("computing", x, flush=True)
    return [x] * 1000
"""
SCRIPT = f"""
import json, os, sys
import nectar
from module import f
{OUTCOMES}
"""


def computed(text):
    return sorted(line.split()[1] for line in text.splitlines() if line.startswith("computing"))


def test_a_result_is_found_before_it_is_written(enabled):
    import threading

    gate = threading.Event()
    enabled.keeper.submit(lambda: gate.wait(10))

    @nectar.memo
    def f(x):
        return [x]

    try:
        first, second = f(1), f(1)
        assert nectar.last_run().parts[0].outcome == "reused"
        assert first == second == [1]
        assert first is not second
        assert f.check_call_in_cache(1)
    finally:
        gate.set()
    assert enabled.settle(10)
    assert f(1) == [1]


def test_a_process_that_ends_right_after_the_call(program):
    program.write(module=MODULE, script=SCRIPT + "print(json.dumps(outcomes(f, 1)[1]))\n")
    assert program.told("script") == "f computed"
    assert program.told("script") == "f reused"
    for number, end in enumerate(("sys.exit(0)", "raise SystemExit", "nectar.disable()", "nectar.enable()"), 2):
        program.write(script=SCRIPT + f"f({number})\n{end}\n")
        program.output("script")
    program.write(script=SCRIPT + "print(json.dumps([outcomes(f, n)[1] for n in (2, 3, 4, 5)]))\n")
    assert program.told("script") == ["f reused"] * 4


def test_an_uncaught_error_after_the_call(program):
    program.write(module=MODULE, script=SCRIPT + "f(1)\n1 / 0\n")
    process = program.started("script")
    assert "ZeroDivisionError" in process.communicate(timeout=60)[1]
    assert process.returncode == 1
    program.write(script=SCRIPT + "print(json.dumps(outcomes(f, 1)[1]))\n")
    assert program.told("script") == "f reused"


def test_children_of_multiprocessing(program):
    """Their results are kept although they end without atexit; afterwards nothing is computed."""
    program.write(
        module=MODULE,
        script=SCRIPT
        + """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    f(0)
    for at, method in enumerate(("fork", "spawn"), 1):
        child = multiprocessing.get_context(method).Process(target=f, args=(at,))
        child.start()
        child.join(30)
        assert child.exitcode == 0, (method, child.exitcode)
    for at, method in enumerate(("fork", "spawn"), 3):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            assert list(pool.map(f, [at * 10, at * 10])) == [[at * 10] * 1000] * 2
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(f, [50])
        pool.close()
        pool.join()
""",
    )
    calls = "0 1 2 30 40 50".split()
    assert computed(program.output("script")) == sorted(calls)
    program.write(script=SCRIPT + f"print(json.dumps([outcomes(f, int(n))[1] for n in {calls}]))\n")
    assert program.told("script") == ["f reused"] * 6


def test_a_fork_while_others_compute_write_and_look_up(program):
    """The child has none of the parent's threads: it must not wait for what they hold."""
    program.write(
        module=MODULE.replace('print("computing", x, flush=True)', "nap(x)")
        + """
import time

@nectar.pure
def nap(x):
    time.sleep(0.2 if x == "slow" else 0.002)
""",
        script=SCRIPT
        + """
import threading, time
threads = [threading.Thread(target=f, args=("slow",))]
threads += [threading.Thread(target=lambda at=at: [f((at, n)) for n in range(40)]) for at in range(2)]
for thread in threads: thread.start()
time.sleep(0.03)
codes = []
for number in range(12):
    child = os.fork()
    if child == 0:
        ok = f("slow") == ["slow"] * 1000 and f(number) == [number] * 1000 and f((0, 0)) == [(0, 0)] * 1000
        os._exit(0 if ok else 3)
    codes.append(child)
    time.sleep(0.005)
until = time.monotonic() + 20
codes = {child: None for child in codes}
while None in codes.values() and time.monotonic() < until:
    for child in [child for child, code in codes.items() if code is None]:
        done, status = os.waitpid(child, os.WNOHANG)
        if done: codes[child] = status
    time.sleep(0.01)
for child, code in codes.items():
    if code is None: os.kill(child, 9)
for thread in threads: thread.join(20)
print(json.dumps([list(codes.values()), [thread.is_alive() for thread in threads], f("slow") == ["slow"] * 1000]))
""",
    )
    codes, alive, right = program.told("script")
    assert codes == [0] * 12
    assert alive == [False] * 3
    assert right


def test_a_daemon_thread_that_computes_while_the_process_ends(program):
    program.write(
        module=MODULE,
        script=SCRIPT
        + """
import threading, time
def forever():
    n = 0
    while True:
        n += 1
        f(n % 50)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
""",
    )
    _, errors = ended(program.started("script"))
    assert "Traceback" not in errors, errors


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_fork_in_a_test_process(enabled):
    @nectar.memo
    def f(x):
        return x * 2

    assert f(1) == 2
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if f(1) == 2 and f(2) == 4 and session.current().settle(10) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert f(2) == 4
    assert nectar.last_run().parts[0].outcome == "reused", "the child has kept it"
    assert json.dumps(f(3)) == "6"


@pytest.mark.skipif(sys.platform == "win32", reason="needs timers with signals")
def test_calls_within_signal_handlers_and_finalizers(program):
    """They run in the middle of other calls, in the same thread: they must not wait for a lock it holds."""
    program.write(
        module=MODULE.replace('print("computing", x, flush=True)', "pass"),
        script=SCRIPT
        + """
import faulthandler, gc, signal
faulthandler.dump_traceback_later(10, exit=True)
wrong, busy = [], []

def beside(*_):
    if not busy:
        busy.append(1)
        if f(1) != [1] * 1000: wrong.append(1)
        busy.clear()

class Cycle:
    def __init__(self): self.me = self
    def __del__(self): beside()

[f(n) for n in range(100)]
signal.signal(signal.SIGALRM, beside)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
for n in range(4000):
    Cycle()
    if f(n % 100) != [n % 100] * 1000: wrong.append(n)
signal.setitimer(signal.ITIMER_REAL, 0)
gc.disable()
faulthandler.cancel_dump_traceback_later()
print(json.dumps(wrong))
""",
    )
    assert program.told("script") == []


FORKING = """
def loaded():
    return {name for name in sys.modules if name.startswith("nectar.")}

if os.fork() == 0:
    had = loaded()
    result = outcomes(f, 1)[1]
    print(json.dumps([result, sorted(loaded() - had)]), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_children_find_loaded_what_a_hit_needs(program):
    """The parent has memoised functions and has called none: a hundred workers would each load what it takes."""
    program.write(module=MODULE, script=SCRIPT + "print(json.dumps(outcomes(f, 1)[1]))\n")
    assert program.told("script") == "f computed"
    program.write(module=MODULE, script=SCRIPT + FORKING)
    assert program.told("script") == ["f reused", []]
