"""Clocks that only feed messages are no hidden input; wherever else a reading may go, they are."""

import asyncio
import datetime
import email.utils
import functools
import gzip
import logging
import operator
import sys
import time
from email.utils import formatdate
from time import monotonic, perf_counter

import pytest

import nectar
from nectar.errors import UncacheableError
from nectar.keys.outcome import outcome_of

log = logging.getLogger("tests.clocks")
STATE = []


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        begun = time.perf_counter()
        result = function(*args, **kwargs)
        log.info("%s took %.3f s", function.__name__, time.perf_counter() - begun)
        return result

    return wrapper


def timed_always(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        begun = perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            print(f"{function.__qualname__}: {1e3 * (perf_counter() - begun):.1f} ms", file=sys.stderr)

    return wrapper


@timed
def decorated(n):
    return n + 1


@timed_always
def decorated_always(n):
    return n + 1


def message(n):
    begun = time.time()
    total = sum(range(n))
    log.debug("summed in %s s", round(time.time() - begun, 3))
    return total


def printed(n):
    begun = monotonic()
    total = n * 2
    print("took", monotonic() - begun)
    print("took {:.2f} s".format(monotonic() - begun))
    print("took %d ms" % ((monotonic() - begun) * 1000))
    print("took %s of %s" % (monotonic() - begun, n))
    print("took " + str(int(monotonic() - begun)) + " s")
    return total


def own_logger(n):
    mine = logging.getLogger(__name__)
    begun = time.time_ns()
    mine.info(f"{time.time_ns() - begun} ns")
    logging.info("%d", -time.time_ns())
    return n


def in_a_loop(n):
    last = perf_counter()
    total = 0
    for number in range(n):
        total += number
        now = perf_counter()
        log.debug("%d after %.2f", number, now - last)
        last = now
    return total


def thrown_away(n):
    begun = time.time()  # noqa: F841 - nobody asks for it, which is the point
    time.time()
    return n


@pytest.mark.parametrize(
    "function", [decorated, decorated_always, message, printed, own_logger, in_a_loop, thrown_away]
)
def test_what_only_feeds_messages_is_fine(function):
    assert outcome_of(function).refusals == ()


def returned(n):
    begun = time.time()
    return n, time.time() - begun


def returned_as_text(n):
    return f"{n} at {time.time():.0f}"


def branches(n):
    begun = time.time()
    if time.time() - begun > 1:
        n += 1
    return n


def waits(n):
    end = time.time() + n
    while time.time() < end:
        n += 1
    return n


def keeps(n):
    STATE.append(time.time())
    return n


def keeps_in_an_argument(n):
    n.at = time.time()
    return 1


def hands_on(n):
    return max(n, time.time())


def compares_with_an_argument(n):
    log.info("%s", n - time.time())
    return n


def formats_an_argument_by_it(n):
    log.info(f"{n:{time.time()}}")
    return n


def seeds(n):
    import random

    return random.Random(time.time()).random()


def hands_the_clock_on(n):
    return sorted([n], key=lambda _: time.time())


def is_handed_on(n, clock=time.time):
    return clock()


def captured_by_an_inner_function(n):
    begun = time.time()

    def since():
        return time.time() - begun

    return since()


def shows_its_locals(n):
    begun = time.time()
    return locals()


def mixed_with_an_argument(n, flag):
    begun = time.time() if flag else n
    log.info("%s", begun - 1.0)
    return n


def through_a_list(n):
    return [time.time()]


def through_a_dict(n):
    log.info("%(t)s", {"t": time.time()})
    found = {"t": time.time()}
    return found


def prints_to_an_argument(n):
    print(time.time(), file=n)
    return 1


class Notes(logging.Logger):
    kept = []

    def info(self, *args):
        self.kept.append(args)


notes = Notes("notes")


def logs_to_a_logger_of_its_own(n):
    notes.info("%s", time.time())
    return n


def as_a_default_of_an_inner_function(n):
    def inner(at=time.time()):
        return at

    return inner()


def yields(n):
    yield time.time()


def has_the_time_in_what_it_packs(n):
    return gzip.compress(b"x")


def local_time_of_a_mail(n):
    return email.utils.localtime()


def moment_of_a_record(n):
    return logging.LogRecord("a", n, "p", 1, "m", (), None).created


@pytest.mark.parametrize(
    "function",
    [
        returned, returned_as_text, branches, waits, keeps, keeps_in_an_argument, hands_on, compares_with_an_argument,
        formats_an_argument_by_it, seeds, hands_the_clock_on, is_handed_on, captured_by_an_inner_function,
        shows_its_locals, mixed_with_an_argument, through_a_list, through_a_dict, prints_to_an_argument,
        logs_to_a_logger_of_its_own, as_a_default_of_an_inner_function, yields,
        has_the_time_in_what_it_packs, local_time_of_a_mail, moment_of_a_record,
    ],
)  # fmt: skip
def test_what_goes_elsewhere_is_a_hidden_input(function):
    assert {"clock", "dynamic code", "introspection"} & {refusal.kind for refusal in outcome_of(function).refusals}


def test_a_timed_function_is_remembered(tmp_path):
    with nectar.reuse(home=tmp_path, reserve=0) as report:
        remembered = nectar.memo(decorated)
        assert (remembered(1), remembered(1)) == (2, 2)
    assert [part.outcome for part in report.parts] == ["computed", "reused"]


async def asks_its_loop(x):
    return x, asyncio.get_running_loop().time()


async def asks_a_loop_it_has_named(x):
    loop = asyncio.get_event_loop()
    return x, loop.time()


async def uses_an_executor(x):
    return await asyncio.get_running_loop().run_in_executor(None, abs, x)


@pytest.mark.parametrize("function", [asks_its_loop, asks_a_loop_it_has_named])
def test_the_clock_of_an_event_loop_is_a_clock(function):
    with pytest.raises(nectar.UncacheableError, match="clock"):
        nectar.fingerprint(function)


def test_other_uses_of_an_event_loop_are_fine():
    assert nectar.fingerprint(uses_an_executor)


ASKED_FOR = {
    "methodcaller": operator.methodcaller("utcnow"),
    "attrgetter": operator.attrgetter("now"),
    "partial of one": functools.partial(operator.methodcaller("now"), datetime.datetime),
}


@pytest.mark.parametrize("asked", ASKED_FOR.values(), ids=ASKED_FOR)
def test_a_clock_that_is_asked_for_by_a_name_in_an_object_is_an_input(asked):
    with pytest.raises(UncacheableError, match="clock"):
        nectar.fingerprint(lambda x: str(asked(datetime.datetime)))


@pytest.mark.parametrize("shown", [
    lambda x: email.utils.formatdate(0, localtime=True),
    lambda x: formatdate(0, True),
])  # fmt: skip
def test_local_time_counts_where_it_is_asked_for_by_name(monkeypatch, shown):
    found = set()
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        found.add(str(nectar.fingerprint(shown)))
    monkeypatch.undo()
    time.tzset()
    assert len(found) == 2
