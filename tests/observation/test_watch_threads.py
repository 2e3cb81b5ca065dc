"""Of whom something is seen: threads, tasks, imports and finalizers beside a computation."""

import asyncio
import os
import random
import sys
import threading
import warnings
import weakref

import pytest
from tests.observation.watched import read, seen, write

from nectar import threads
from nectar.observation import hook
from nectar.observation.effects import Allowed
from nectar.observation.watch import Watch

TELLS_OF_THREADS = sys.version_info >= (3, 12)


def test_threads_that_a_computation_starts_are_its_own(tmp_path):
    def start():
        thread = threading.Thread(target=write, args=(tmp_path / "a",))
        thread.start()
        thread.join()

    (found,) = seen(start)
    assert found.certain == TELLS_OF_THREADS


@pytest.mark.skipif(not TELLS_OF_THREADS, reason="this Python does not tell who starts threads")
def test_a_thread_that_goes_on_is_told():
    over = threading.Event()

    def start():
        threading.Thread(target=over.wait, name="endless").start()

    try:
        assert seen(start) == [("leaves a thread running: endless", False)]
    finally:
        over.set()


def test_what_other_threads_do_counts_against_everything_but_is_not_certain(tmp_path):
    ask, done = threading.Event(), threading.Event()

    def other():
        ask.wait(20)
        write(tmp_path / "a")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def computing():
        ask.set()
        assert done.wait(20)

    (found,) = seen(computing)
    thread.join()
    assert not found.certain


def test_computations_of_two_threads_are_told_apart(tmp_path):
    met = threading.Barrier(2, timeout=20)
    results = {}

    def computing(name, work):
        with Watch() as watch:
            met.wait()
            work()
            met.wait()
        results[name] = watch.observations()

    reader = threading.Thread(target=computing, args=("writes", lambda: write(tmp_path / "a")))
    reader.start()
    computing("does nothing", lambda: None)
    reader.join()
    assert results["does nothing"] == []
    assert len(results["writes"]) == 1


def test_tasks_of_one_loop_are_told_apart(tmp_path):
    async def computing(work):
        with Watch(cooperative=True) as watch:
            await asyncio.sleep(0.01)
            await asyncio.create_task(work())
            await asyncio.sleep(0.01)
        return watch.observations()

    async def writes():
        write(tmp_path / "a")

    async def nothing():
        pass

    async def beside():
        for _ in range(5):
            read(tmp_path / "b")
            await asyncio.sleep(0.004)

    async def both():
        return await asyncio.gather(computing(writes), computing(nothing), beside())

    (tmp_path / "b").write_text("")
    first, second, _ = asyncio.run(both())
    assert [each.certain for each in first if str(tmp_path / "a") in each.text] == [True]
    assert [each.certain for each in second] == [False] * len(second)
    assert not any(str(tmp_path / "a") in each.text for each in second)


def test_another_task_of_the_loop_may_work_for_the_computation(tmp_path):
    async def program():
        asked, done = asyncio.Event(), asyncio.Event()

        async def worker():
            await asked.wait()
            write(tmp_path / "a")
            done.set()

        working = asyncio.create_task(worker())
        await asyncio.sleep(0)
        with Watch(cooperative=True) as watch:
            asked.set()
            await done.wait()
        await working
        return watch.observations()

    (found,) = asyncio.run(program())
    assert str(tmp_path / "a") in found.text
    assert not found.certain


def test_what_an_inner_computation_does_the_outer_one_does_too(tmp_path):
    with Watch() as outer:
        with Watch(allowed=Allowed(files=frozenset({str(tmp_path / "a")}))) as inner:
            with pytest.raises(OSError):
                read(tmp_path / "a")
        assert not inner.observations()
    assert outer.observations()


def test_nothing_is_seen_when_nothing_is_watched(tmp_path):
    with Watch() as watch:
        pass
    write(tmp_path / "a")
    assert not watch.observations()
    assert not hook._under_way


def test_the_hook_never_stops_the_program(tmp_path, monkeypatch):
    def broken(args):
        raise ValueError("broken")

    monkeypatch.setitem(hook._HANDLERS, "open", broken)
    (found,) = seen(write, tmp_path / "a")
    assert not found.certain
    assert (tmp_path / "a").exists()


def test_a_failed_computation_leaves_nothing_under_way():
    with pytest.raises(ZeroDivisionError):
        with Watch():
            1 / 0
    assert not hook._under_way


def other_thread(work):
    """Runs work in a thread that nobody knows the starter of, as one that was there before."""
    ask, done = threading.Event(), threading.Event()

    def run():
        ask.wait(20)
        work()
        done.set()
        over.wait(20)

    over = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()

    def computing():
        ask.set()
        assert done.wait(20)

    found = seen(computing)
    over.set()
    thread.join()
    return found


def test_what_another_thread_draws_is_not_certain():
    (found,) = other_thread(random.random)
    assert "random generator" in found.text
    assert not found.certain


def test_settings_that_a_module_changes_at_the_end_of_its_import_are_not_told(tmp_path, monkeypatch):
    """A thread was in the middle of an import when the computation began; no module has come since."""
    (tmp_path / "slow_of_test_watch.py").write_text(
        "import builtins, warnings\nbuiltins.begun.set()\nbuiltins.go.wait(20)\n"
        "warnings.filterwarnings('ignore', message='of test_watch')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    begun, go = threading.Event(), threading.Event()
    monkeypatch.setattr("builtins.begun", begun, raising=False)
    monkeypatch.setattr("builtins.go", go, raising=False)

    def import_it():
        import slow_of_test_watch  # noqa: F401

    def computing():
        go.set()
        thread.join()

    with warnings.catch_warnings():
        thread = threading.Thread(target=import_it)
        thread.start()
        assert begun.wait(20)
        assert not seen(computing)


@pytest.fixture
def half_imported(tmp_path, monkeypatch):
    """A library whose settings are compared, in the middle of its import by another thread."""
    package = tmp_path / "xarray"
    (package / "core").mkdir(parents=True)
    (package / "core" / "__init__.py").write_text("")
    (package / "core" / "options.py").write_text("OPTIONS = {}\n")
    (package / "__init__.py").write_text(
        "import builtins\nfrom xarray.core.options import OPTIONS\nbuiltins.begun.set()\nbuiltins.go.wait(20)\n"
        "OPTIONS['width'] = 80\n"
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "xarray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    begun, go = threading.Event(), threading.Event()
    monkeypatch.setattr("builtins.begun", begun, raising=False)
    monkeypatch.setattr("builtins.go", go, raising=False)

    def imported(by_nectar):
        def work():
            if by_nectar:
                with threads.loading():
                    __import__("xarray")
            else:
                __import__("xarray")

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(20)
        return thread, go

    yield imported
    go.set()
    for name in ("xarray", "xarray.core", "xarray.core.options"):
        sys.modules.pop(name, None)


def test_what_a_library_sets_that_nectar_loads_meanwhile_is_not_told(half_imported):
    """It is waited for."""
    thread, go = half_imported(by_nectar=True)
    threading.Timer(0.1, go.set).start()
    assert not seen(thread.join)
    (found,) = seen(lambda: sys.modules["xarray.core.options"].OPTIONS.update(width=90))
    assert "options of xarray" in found.text


def test_what_a_library_sets_that_the_program_loads_meanwhile_is_in_doubt(half_imported):
    thread, go = half_imported(by_nectar=False)

    def computing():
        go.set()
        thread.join()

    (found,) = seen(computing)
    assert "options of xarray" in found.text
    assert not found.certain


def test_what_is_done_for_an_object_that_was_let_go_is_not_certain(tmp_path):
    class Owner:
        pass

    owners = [Owner()]
    write(tmp_path / "a")
    weakref.finalize(owners[0], os.remove, tmp_path / "a")
    (found,) = seen(owners.clear)
    assert found.text.startswith("removes ")
    assert not found.certain
