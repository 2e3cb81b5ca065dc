"""Functions that call themselves through `memo` get as deep as without it, and fail as they do without it."""

import asyncio
import sys

import pytest

import nectar

DEEP = 900 if sys.version_info[:2] != (3, 12) else 400  # some 3.12 give C code a smaller stack of its own


@pytest.fixture(autouse=True)
def same_limit_afterwards():
    limit = sys.getrecursionlimit()
    yield
    assert sys.getrecursionlimit() == limit


def at_depth_of_a_program(function):
    """Calls a function from a new thread, where the stack is as short as that of a program."""
    import threading

    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@nectar.memo
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


@nectar.memo
def depth_of_one_that_is_refused(n):
    global last
    last = n
    return 0 if n == 0 else 1 + depth_of_one_that_is_refused(n - 1)


class Tree:
    @nectar.memo
    def depth(self, n):
        return 0 if n == 0 else 1 + self.depth(n - 1)


@nectar.memo
def even(n):
    return True if n == 0 else odd(n - 1)


@nectar.memo
def odd(n):
    return False if n == 0 else even(n - 1)


@pytest.mark.filterwarnings("ignore::nectar.NectarWarning")
@pytest.mark.parametrize("function", [depth, depth_of_one_that_is_refused, Tree().depth])
def test_deep_recursion_runs_as_plain(home, function):
    with nectar.reuse(home=home, reserve=0):
        assert at_depth_of_a_program(lambda: function(DEEP)) == DEEP


def test_recursion_beyond_what_is_counted_runs_as_plain(home, monkeypatch):
    monkeypatch.setattr("nectar.recursion._MOST", 50)
    with nectar.reuse(home=home, reserve=0) as run:
        assert at_depth_of_a_program(lambda: depth(200)) == 200
    assert len(run.parts) <= 50


def test_two_functions_that_call_each_other(home):
    with nectar.reuse(home=home, reserve=0):
        assert at_depth_of_a_program(lambda: even(DEEP)) is True


def test_every_level_is_kept_and_found_again(home):
    with nectar.reuse(home=home, reserve=0) as report:
        at_depth_of_a_program(lambda: depth(DEEP))
    with nectar.reuse(home=home, reserve=0) as report:
        assert [depth(n) for n in (0, DEEP // 2, DEEP)] == [0, DEEP // 2, DEEP]
    assert [part.outcome for part in report.parts] == ["reused"] * 3


def test_a_level_has_the_same_key_however_deep_it_is_called(home):
    with nectar.reuse(home=home, reserve=0) as report:
        at_depth_of_a_program(lambda: depth(100))
        depth(50)
    assert report.parts[-1].outcome == "reused"


@nectar.memo
def for_ever(n):
    return for_ever(n + 1)


@nectar.memo
def deepest_found(n):
    try:
        return deepest_found(n + 1)
    except RecursionError:
        return n


def test_recursion_without_end_is_the_same_error(home):
    with nectar.reuse(home=home, reserve=0), pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        at_depth_of_a_program(lambda: for_ever(0))


def test_a_recursion_error_that_is_caught(home):
    with nectar.reuse(home=home, reserve=0):
        found = at_depth_of_a_program(lambda: deepest_found(0))
        assert DEEP < found <= sys.getrecursionlimit()
        assert depth(5) == 5


def plain_down(n, then):
    return then() if n == 0 else plain_down(n - 1, then)


@pytest.mark.filterwarnings("error::nectar.NectarWarning")
def test_a_call_from_the_edge_of_the_stack_is_computed_as_plain(home, caplog):
    with nectar.reuse(home=home, reserve=0):
        for left in range(30, 180, 3):
            plain = sys.getrecursionlimit() - left
            assert at_depth_of_a_program(lambda plain=plain, left=left: plain_down(plain, lambda: depth(left % 2))) < 2
        assert depth(7) == 7
    assert not caplog.records


@nectar.memo
async def depth_of_coroutines(n):
    return 0 if n == 0 else 1 + await depth_of_coroutines(n - 1)


def test_coroutines(home):
    with nectar.reuse(home=home, reserve=0):
        assert at_depth_of_a_program(lambda: asyncio.run(depth_of_coroutines(150))) == 150


async def many_at_once(count):
    return sum(await asyncio.gather(*(slow(n) for n in range(count))))


@nectar.memo
async def slow(n):
    await asyncio.sleep(0)
    return n


def test_many_coroutines_beside_each_other_are_no_recursion(home):
    with nectar.reuse(home=home, reserve=0):
        assert asyncio.run(many_at_once(200)) == sum(range(200))


def test_the_traceback_shows_the_function_and_one_frame_of_nectar(home):
    import traceback

    @nectar.memo
    def fails(n):
        raise LookupError("none", n)

    with nectar.reuse(home=home, reserve=0), pytest.raises(LookupError) as caught:
        fails(3)
    assert caught.value.args == ("none", 3)
    names = [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert names[-2:] == ["__call__", "fails"]
    assert len(names) == 3
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_error_passes(home, kind):
    @nectar.memo
    def stops(n):
        raise kind(n)

    with nectar.reuse(home=home, reserve=0) as report:
        for _ in range(2):
            with pytest.raises(kind) as caught:
                stops(4)
            assert caught.value.args == (4,)
    assert [part.outcome for part in report.parts] == ["interrupted", "interrupted"]
