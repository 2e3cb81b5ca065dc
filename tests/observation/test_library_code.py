"""What library code reads behind a program: clocks, random numbers, the environment, contexts."""

import base64
import hashlib
import http.cookies
import importlib
import os
import sys
import textwrap
import warnings

import pytest

import nectar
from nectar.observation import monitoring, reach

# A library that no table knows. Each function is called without arguments or with one that is given.
LIBRARY = """
    import contextvars, functools, inspect, logging, os, random, secrets, threading, time, uuid
    import nt_clocks
    import http.cookies
    from datetime import date, datetime
    from . import inner

    _context = contextvars.ContextVar("context", default=1)
    _local = threading.local()
    _log = logging.getLogger("nt_almanac")

    class Day:
        def __init__(self, given):
            self.given = given
        def age(self):
            return self._today().toordinal() - self.given
        @property
        def years(self):
            return self.age() // 365
        def plus(self, days):
            return Day(self.given + days)
        @classmethod
        def _today(cls):
            return date.today()

    class Stamps:
        def __init__(self, clock=None):
            self.clock = clock or self._default
        @staticmethod
        def _default():
            return time.time_ns()
        def next(self):
            return self.clock()

    _stamps = Stamps()
    def clock_that_an_object_holds(given): return _stamps.next()

    def parse(given, default=None):
        if given == "now":
            return datetime.now()
        return Day(int(given))

    def clock(given): return time.time()
    def clock_of_another_module(given): return inner.stamp(given)
    def clock_in_lambda(given): return (lambda: time.time_ns())()
    def entropy(given): return os.urandom(4)
    def identifier(given): return uuid.uuid4().hex
    def token(given): return secrets.token_hex(2)
    def unseeded(given, seed=None): return random.Random(seed).random()
    def variable(given): return os.environ.get("NT_ALMANAC", "none")
    def variable_by_subscript(given): return os.environ["PATH"]
    def variable_by_getenv(given): return os.getenv("NT_ALMANAC")
    def working_folder(given): return os.getcwd()
    def context(given): return _context.get()
    def thread_local(given): return getattr(_local, "value", None)
    def cached(given): return _cached(given)
    def decorated(given): return _wrapped(given)

    @functools.lru_cache
    def _cached(given): return time.time()

    def _decorator(function):
        @functools.wraps(function)
        def wrapper(*args): return function(*args)
        return wrapper

    @_decorator
    def _wrapped(given): return time.time()

    class Caller:
        def __init__(self, function): self.function = function
        def __call__(self, given): return self.function(given)
    instance = Caller(clock)

    # ways to a source that a name alone does not show
    def imported_inside(given):
        import datetime as dt
        return dt.date.today().isoformat()
    def imported_from_inside(given):
        from time import gmtime, time as stamp
        return stamp()
    def imported_nearby(given):
        from . import inner as nearby
        return nearby.stamp(given)
    def imported_by_a_cell(given):
        import time as clock
        return [each for each in map(lambda _: clock.time(), "a")]
    def assigned_before(given):
        ask = time.time
        return ask()
    def chosen(given): return secrets.choice([given, "other"] * 50)
    def context_as_a_whole(given): return len(contextvars.copy_context())

    class Draws(random.Random):
        pass
    class Base:
        def __init__(self): self.draws = Draws()
    class Derived(Base):
        def __init__(self):
            super().__init__()
            self.name = "derived"
        def draw(self): return self.draws.random()
    def of_a_base(given): return Derived().draw()

    class Maker:
        def make(self): return self._made()
        def _made(self): return Derived()
    maker = None
    def made_later(given):
        global maker
        maker = maker or Maker()
        return str(maker.make().draw())
    bound = Day(1).age
    def of_an_instance(given): return bound()
    def of_another_library(given): return nt_clocks.stamp()

    class cython_function_or_method:  # as functions are that some compiler has made
        def __init__(self, name, result, signature):
            self.__name__, self.result, self.__signature__ = name, result, inspect.signature(signature)
        def __call__(self, *args, **kwargs): return self.result
    add_noise = cython_function_or_method("add_noise", 3, lambda size: 0)
    random_graph = cython_function_or_method("gnpRandomGraph", 3, lambda size, seed=None: 0)
    now = cython_function_or_method("now", 3, lambda size=None: 0)
    sample = cython_function_or_method("sample", 3, lambda points: 0)
    nowhere = cython_function_or_method("nowhere_randomness", 3, lambda points: 0)
    def native_noise(given): return add_noise(given)
    def native_clock(given): return now()
    def native_sample(given): return sample(given)
    def native_words(given): return nowhere(given)
    def native_seeded(given, seed=1): return random_graph(given, seed)
    def random_layout(given, seed=None): return random_graph(given, seed)

    def by_sorted(given): return sorted([given, given], key=lambda _: inner.stamp(given))
    def by_map_of_another(given): return list(map(inner.stamp, [given]))
    def by_reduce(given): return functools.reduce(lambda a, b: (a, inner.stamp(b)), [given, given])
    curried = Caller(functools.partial(clock))

    def only_in_a_log(given):
        _log.warning("%s", given)
        return given
    def interval(given):
        begun = time.perf_counter()
        return given if time.perf_counter() >= begun else None
    def branch_not_taken(given):
        return given if given != "never" else (time.time(), os.environ.get("A"), os.urandom(1), _context.get())
    def calls_back(given, function): return function(given)

    _modes = {"date": lambda given: date.today().isoformat(), "text": str}
    _steps = (str, clock_of_another_module)
    def by_a_table(given): return _modes["date"](given)
    def by_a_list(given): return [step(given) for step in _steps]
    salt = cython_function_or_method("gensalt", 3, lambda rounds=12: 0)
    keys = cython_function_or_method("generate_keypair", 3, lambda size=12: 0)
    def native_salt(given): return salt()
    def native_keys(given): return keys()
    class Visits(nt_clocks.Clocked):
        pass
    def class_of_another_library(given): return Visits().at
"""

CLOCKS = """
import time

def stamp():
    return time.time()

class Clocked:
    def __init__(self):
        self.at = time.time()
    def age(self):
        return time.time() - self.at
"""


@pytest.fixture
def almanac(tmp_path, monkeypatch):
    """The library, installed."""
    site = tmp_path / "lib" / "site-packages"
    texts = {
        "nt_almanac/__init__.py": textwrap.dedent(LIBRARY),
        "nt_almanac/inner.py": "import time\n\ndef stamp(given):\n    return time.time()\n",
        "nt_clocks.py": CLOCKS,
    }
    lines = []
    for name, text in texts.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}")
    info = site / "nt_almanac-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: nt-almanac\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    monkeypatch.setitem(globals(), "nt_almanac", importlib.import_module("nt_almanac"))
    yield sys.modules["nt_almanac"]
    for name in [name for name in sys.modules if name.startswith(("nt_almanac", "nt_clocks"))]:
        del sys.modules[name]


def of_library(name):
    """A function of the application that calls one of the library."""
    space = {"__name__": "program", "nt_almanac": nt_almanac}  # noqa: F821 - the fixture puts it there
    exec(f"def program(given):\n    return nt_almanac.{name}(given)", space)
    return space["program"]


def is_kept(function, value="2024"):
    memo = nectar.memo(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo(value)
        memo(value)  # what the first call loads is there for the second
    nectar.session.current().settle()
    return memo.check_call_in_cache(value)


READERS = (
    "clock", "clock_of_another_module", "clock_in_lambda",
    "clock_that_an_object_holds", "entropy", "identifier", "token", "unseeded", "variable",
    "variable_by_subscript", "variable_by_getenv", "working_folder", "context", "thread_local", "cached", "decorated",
    "instance", "imported_inside", "imported_from_inside", "imported_nearby", "imported_by_a_cell", "assigned_before",
    "chosen", "context_as_a_whole", "of_a_base", "made_later", "of_an_instance", "of_another_library",
    "native_noise", "native_clock", "by_sorted", "by_map_of_another", "by_reduce", "curried",
    "by_a_table", "by_a_list", "native_salt", "native_keys", "class_of_another_library",
)  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_what_library_code_reads_is_seen(name, almanac, enabled):
    assert not is_kept(of_library(name))


@pytest.mark.parametrize(
    "name",
    ["only_in_a_log", "interval", "branch_not_taken", "parse", "native_sample", "native_words", "native_seeded"],
)
def test_what_it_could_read_and_does_not_is_no_reason(name, almanac, enabled):
    assert is_kept(of_library(name))


def test_functions_that_are_not_python_are_judged_by_their_names(almanac, enabled):
    def noisy(given):
        return nt_almanac.add_noise(given)  # noqa: F821

    def unseeded(given):
        return nt_almanac.random_graph(given)  # noqa: F821

    def seeded(given):
        return nt_almanac.random_graph(given, seed=4)  # noqa: F821

    def seeded_by_position(given):
        return nt_almanac.random_graph(given, 4)  # noqa: F821

    def by_another(given):
        return nt_almanac.random_layout(given)  # noqa: F821

    def by_another_seeded(given):
        return nt_almanac.random_layout(given, seed=len(given))  # noqa: F821

    def other_words(given):
        return nt_almanac.nowhere(given), nt_almanac.sample(given)  # noqa: F821

    assert not is_kept(noisy)
    assert not is_kept(unseeded)
    assert not is_kept(by_another)
    assert is_kept(seeded)
    assert is_kept(seeded_by_position)
    assert is_kept(by_another_seeded)
    assert is_kept(other_words)


def test_methods_and_properties_of_what_a_library_gave(almanac, enabled):
    def age(given):
        return nt_almanac.parse(given).age()  # noqa: F821

    def years(given):
        return nt_almanac.parse(given).years  # noqa: F821

    def later(given):
        return nt_almanac.parse(given).plus(1).given  # noqa: F821

    assert not is_kept(age)
    assert not is_kept(years)
    assert is_kept(later)


def test_methods_of_what_a_function_is_handed(almanac, enabled):
    def age(day):
        return day.age()

    def later(day):
        return day.plus(1).given

    assert not is_kept(age, almanac.Day(3))
    assert is_kept(later, almanac.Day(3))


def test_a_class_of_the_program_has_the_methods_of_its_library(almanac, enabled):
    class Visit(sys.modules["nt_clocks"].Clocked):
        def __init__(self, given):
            self.at = float(given)

        def year(self):
            return self.at

    def age(given):
        return Visit(given).age()

    def year(given):
        return Visit(given).year()

    assert not is_kept(age)
    assert is_kept(year)


def test_it_depends_on_the_path_that_is_taken(almanac, enabled):
    def parsed(given):
        return str(nt_almanac.parse(given))[:0]  # noqa: F821

    assert is_kept(parsed, "2024")
    assert not is_kept(parsed, "now")


def test_the_reason_names_the_library_code(almanac, enabled):
    memo = nectar.memo(of_library("clock_of_another_module"))
    with pytest.warns(nectar.NectarWarning, match=r"reads the clock in stamp \(nt_almanac/inner.py\)"):
        memo("2024")


def test_the_standard_library_counts_too(enabled):
    def expiring(given):
        cookie = http.cookies.SimpleCookie()
        cookie["a"] = given
        cookie["a"]["expires"] = 3600
        return cookie.output()

    def plain(given):
        cookie = http.cookies.SimpleCookie()
        cookie["a"] = given
        return cookie.output()

    assert not is_kept(expiring)
    assert is_kept(plain)


def test_what_somebody_vouches_for_is_not_looked_at(almanac, enabled):
    def trusted(given):
        return nt_almanac.clock(given) > 0  # noqa: F821

    trusted = nectar.pure(trusted)

    def program(given):
        return trusted(given)

    assert is_kept(program), nectar.last_run().details()


def test_a_computation_within_another_leaves_it_watched(almanac, enabled):
    @nectar.memo
    def inner(given):
        return nt_almanac.branch_not_taken(given)  # noqa: F821

    def before(given):
        return nt_almanac.calls_back(given, lambda each: (inner(each), nt_almanac.clock(each))[0])  # noqa: F821

    def clean(given):
        return nt_almanac.branch_not_taken(inner(given))  # noqa: F821

    assert not is_kept(before)
    assert is_kept(clean)


def test_what_a_computation_within_another_read_counts_for_both(almanac, enabled):
    @nectar.memo
    def inner(given):
        return nt_almanac.clock(given)  # noqa: F821

    def outer(given):
        return nt_almanac.branch_not_taken(inner(given))  # noqa: F821

    assert not is_kept(outer)


def test_a_profiler_of_the_program_goes_on(almanac, enabled):
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    try:
        kept = is_kept(of_library("branch_not_taken"))
    finally:
        profile.disable()
    assert kept == monitoring.IS_THERE
    assert any("branch_not_taken" in str(entry.code) for entry in profile.getstats())
    assert sys.getprofile() is None


def test_nothing_is_followed_once_a_computation_is_over(almanac, enabled):
    is_kept(of_library("clock"))
    assert sys.getprofile() is None


def test_programs_without_such_library_code_are_not_followed(almanac):
    def plain(given):
        return [os.path.join("a", given), textwrap.dedent(given), given.upper(), sorted(given)]

    assert not reach.sources_reached([plain], [str])
    assert not reach.sources_reached([of_library("interval")], [])
    assert {each.what for each in reach.sources_reached([of_library("clock")], [])} == {"reads the clock"}


@pytest.mark.parametrize("name", ["clock", "entropy", "variable", "thread_local", "by_sorted"])
def test_functions_of_queries(name, almanac, enabled, tmp_path):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"a": ["2024", "2025"]}).write_parquet(tmp_path / "a.parquet")
    program = of_library(name)

    def reads(given):
        return str(program(given))

    def plain(given):
        return str(nt_almanac.interval(given))  # noqa: F821

    def not_taken(given):
        return str(nt_almanac.branch_not_taken(given))  # noqa: F821

    def outcomes(function):
        query = pl.scan_parquet(tmp_path / "a.parquet").with_columns(
            b=pl.col("a").map_elements(function, return_dtype=pl.String)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                query.collect()
                nectar.session.current().settle()
        return [part.outcome for part in nectar.last_run().parts]

    assert outcomes(reads) != ["reused"]
    assert outcomes(plain) == ["reused"]
    assert outcomes(not_taken) == ["reused"]


def test_functions_of_queries_within_functions_are_not_taken_for_followed(almanac, enabled, tmp_path):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"a": ["2024", "2025"]}).write_parquet(tmp_path / "a.parquet")
    program = of_library("clock")

    def inner(frame):
        read = pl.col("a").map_elements(lambda given: str(program(given)), return_dtype=pl.String)
        return frame.lazy().select(read, b=read).collect().select("a")

    def outer(given):
        return str(inner(pl.DataFrame({"a": [given]})))

    query = pl.scan_parquet(tmp_path / "a.parquet").map_batches(inner, schema={"a": pl.String})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            query.collect()
            nectar.session.current().settle()
    assert [part.outcome for part in nectar.last_run().parts] != ["reused"]
    assert not is_kept(outer)
