"""On, off, for a block, and again: which session is in force, and what it leaves behind."""

import sys
import threading
import types

import pytest

import nectar
from nectar import session
from nectar.clock import ManualClock
from nectar.errors import CatalogFailure, CatalogUnavailableError, SettingError
from nectar.waiting.breaker import EXHAUSTED


@nectar.memo
def double(x):
    return 2 * x


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """A process in which nothing has been said yet."""
    monkeypatch.setenv("NECTAR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NECTAR_RESERVE", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    monkeypatch.setattr(session, "_enabled", False)
    monkeypatch.setattr(session, "_last", nectar.RunReport())
    yield
    nectar.disable()


def outcomes():
    return [part.outcome for part in nectar.last_run().parts]


def test_without_a_word_it_is_on(tmp_path):
    assert not (tmp_path / "home").exists()
    assert str(nectar.last_run()) == "nectar: nothing has run yet"
    assert [double(1), double(1)] == [2, 2]
    assert outcomes() == ["reused"]
    assert (tmp_path / "home").is_dir()
    assert session.current() is session.current()


@pytest.mark.parametrize("value", ["1", "yes", "true", "on"])
def test_off_by_the_environment(tmp_path, monkeypatch, value):
    monkeypatch.setenv("NECTAR_OFF", value)
    assert session.current() is None
    assert [double(1), double(1)] == [2, 2]
    assert double.call(1) == 2
    assert double.check_call_in_cache(1) is False
    assert double.call_and_shelve(1).get() == 2
    assert double.clear() == 0
    assert "off" in double.explain(1)
    assert outcomes() == []
    assert not (tmp_path / "home").exists()


def test_off_may_be_said_to_be_no(monkeypatch):
    monkeypatch.setenv("NECTAR_OFF", "0")
    assert session.current() is not None


def test_disable_and_enable(tmp_path):
    double(1)
    nectar.disable()
    assert session.current() is None
    assert double(1) == 2
    nectar.enable(home=tmp_path / "other", reserve=0)
    double(1)
    assert outcomes() == ["computed"]
    nectar.enable()
    double(1)
    assert outcomes() == ["reused"], "what the first session computed was written"
    nectar.disable()
    nectar.disable()
    nectar.enable(off=True)
    assert session.current() is None


def test_a_block_has_its_own_settings_and_report(tmp_path):
    double(1)
    with nectar.reuse(home=tmp_path / "other", reserve=0) as report:
        assert session.current().settings.home == tmp_path / "other"
        assert [double(1), double(1), double(2)] == [2, 2, 4]
        assert [part.outcome for part in report.parts] == ["computed", "reused", "computed"]
    assert nectar.last_run() is report
    assert all(part.kept for part in report.parts), "written when the block ends"
    double(1)
    assert outcomes() == ["reused"]
    assert session.current().settings.home == tmp_path / "home"


def test_blocks_within_blocks(tmp_path):
    with nectar.reuse(home=tmp_path / "a", reserve=0) as outer:
        double(1)
        with nectar.reuse(off=True):
            assert session.current() is None
            assert double(1) == 2
        with nectar.reuse(home=tmp_path / "b", reserve=0) as inner:
            double(1)
        double(1)
    assert [part.outcome for part in outer.parts] == ["computed", "reused"]
    assert [part.outcome for part in inner.parts] == ["computed"]


def test_a_block_works_where_nectar_is_disabled(tmp_path):
    nectar.disable()
    with nectar.reuse() as report:
        double(1)
    assert [part.outcome for part in report.parts] == ["computed"]
    assert session.current() is None


def test_a_block_that_ends_with_an_error_leaves_nothing_behind(tmp_path):
    before = session.current()
    with pytest.raises(ZeroDivisionError), nectar.reuse(home=tmp_path / "a", reserve=0):
        double(1) / 0
    assert session.current() is before
    with nectar.reuse(home=tmp_path / "a", reserve=0) as report:
        double(1)
    assert [part.outcome for part in report.parts] == ["reused"]


@pytest.mark.parametrize("content", ["budgett = 3", 'linger = "100000d"', "\x00rubbish"])
def test_a_file_that_came_with_a_repository_ends_no_program_that_gives_settings(tmp_path, monkeypatch, caplog, content):
    (tmp_path / "nectar.toml").write_text(content)
    monkeypatch.chdir(tmp_path)
    before = session._chosen, session._enabled, session._disabled
    monkeypatch.setattr(session, "_chosen", None)
    try:
        nectar.enable(overhead="unlimited")
        with nectar.reuse(home=tmp_path / "home"):
            pass
        nectar.disable()
    finally:
        session._chosen, session._enabled, session._disabled = before
    assert "until you fix this, nothing is reused or kept" in caplog.text


def test_wrong_settings_are_the_mistake_of_whoever_gives_them(monkeypatch, caplog):
    for wrong in ({"budget": "a lot"}, {"colour": "red"}, {"identity": "name"}):
        with pytest.raises(SettingError):
            nectar.enable(**wrong)
        with pytest.raises(SettingError), nectar.reuse(**wrong):
            pass
    assert session.current() is not None, "the old session goes on"
    monkeypatch.setenv("NECTAR_BUDGET", "a lot")
    monkeypatch.setattr(session, "_chosen", None)
    assert [double(1), double(1)] == [2, 2]
    assert len([record for record in caplog.records if "budget" in record.message]) == 1


def test_a_run_is_the_outermost_call():
    @nectar.memo
    def outer(x):
        return double(x) + double(x + 1)

    outer(1)
    assert [part.name.rpartition(".")[2] for part in nectar.last_run().parts] == ["outer", "double", "double"]
    double(1)
    assert outcomes() == ["reused"]


def test_reports_of_threads_are_their_own():
    @nectar.memo
    def outer(x):
        return x

    thread = threading.Thread(target=lambda: double(5))
    thread.start()
    thread.join()
    assert outcomes() == ["computed"]
    outer(1)
    assert [part.name.rpartition(".")[2] for part in nectar.last_run().parts] == ["outer"]


def test_totals_of_a_session():
    double(1)
    double(1)
    double(2)
    totals = session.current().totals
    assert (totals.looked_at, totals.cached) == (3, 1)


def test_dialects_hook_in_and_out(monkeypatch):
    told = []
    engine = types.ModuleType("an_engine")
    engine.install, engine.uninstall = lambda: told.append("in"), lambda: told.append("out")
    monkeypatch.setitem(sys.modules, "an_engine", engine)
    monkeypatch.setattr(session, "_DIALECTS", {"json": "an_engine", "a library nobody has": "nothing"})
    nectar.enable()
    nectar.disable()
    with nectar.reuse():
        assert told[-1] == "in"
    assert told == ["in", "out", "in", "out"]


def test_settle_waits_for_what_is_being_written(tmp_path):
    gate = threading.Event()
    double(1)
    session.current().keeper.submit(lambda: gate.wait(10))
    assert not session.current().settle(0.01)
    gate.set()
    assert session.current().settle(10)


def test_calls_while_the_session_is_replaced(tmp_path):
    """Threads go on calling while others enable and disable: each call is answered rightly."""
    stop, wrong = threading.Event(), []

    def call():
        n = 0
        while not stop.is_set():
            n += 1
            try:
                if double(n % 20) != 2 * (n % 20):
                    wrong.append(n)
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(6):
        nectar.enable(home=tmp_path / str(number % 2), reserve=0)
        if number % 3 == 2:
            nectar.disable()
    stop.set()
    for thread in threads:
        thread.join(20)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_a_block_leaves_no_hook_behind_though_a_function_was_memoised_before(monkeypatch):
    """A memoised function makes the default session; that is not a word for queries."""
    hooks = []
    monkeypatch.setattr(session, "_install", lambda *_: hooks.append("in"))
    monkeypatch.setattr(session, "_uninstall", lambda *_: hooks.append("out"))
    double(1)
    with nectar.reuse():
        pass
    assert hooks == ["in", "out"]
    nectar.enable()
    with nectar.reuse():
        pass
    assert hooks == ["in", "out", "in", "in"], "what is enabled stays"


def test_removing_a_hook_makes_no_session():
    session._hook("nectar.dialects.polars.installing", "uninstall")
    assert session._chosen is None


def test_hooks_that_two_threads_put_in_at_once_come_out(monkeypatch):
    engine = pytest.importorskip("nectar.dialects.polars.engine")
    plain = dict(engine.engine_config._ENGINE_BY_NAME)
    others = [engine.install]

    class Engines(dict):
        def items(self):
            while others:
                others.pop()()
            return super().items()

    monkeypatch.setattr(engine.engine_config, "_ENGINE_BY_NAME", Engines(plain))
    engine.install()
    engine.uninstall()
    assert plain == engine.engine_config._ENGINE_BY_NAME


# a catalog that does not answer when it is opened


class Opening:
    """Opens catalogs. locked: how often it is locked before it is not. Each is counted when it is closed."""

    def __init__(self, locked=0, gate=None):
        self.locked, self.gate, self.began = locked, gate, threading.Event()
        self.asked, self.closed = 0, 0

    def __call__(self, *_, **__):
        self.asked += 1
        self.began.set()
        if self.gate is not None:
            self.gate.wait(LONG)
        if self.asked <= self.locked:
            raise CatalogUnavailableError("another process kept it locked for too long")
        return self

    def close(self):
        self.closed += 1


LONG = 60.0


@pytest.fixture
def opening(monkeypatch):
    """Has sessions open catalogs with this; what is probed beside the program is probed at once."""

    def use(**given):
        found = Opening(**given)
        monkeypatch.setattr("nectar.catalog.embedded.open_catalog", found)
        return found

    def probe(work, late):
        try:
            late(work(), None)
        except CatalogUnavailableError as error:
            late(None, error)
        return True

    monkeypatch.setattr("nectar.waiting.health.ask_later", probe)
    return use


def begun(tmp_path, clock=None):
    return session.Session(session._settings({"home": tmp_path / "home", "patience": LONG}), clock or ManualClock())


@pytest.mark.parametrize("locked", [1, 2, 3, 10])
def test_a_catalog_that_is_locked_at_first_is_opened_when_somebody_asks_again(tmp_path, opening, locked, caplog):
    catalog, clock = opening(locked=locked), ManualClock()
    current = begun(tmp_path, clock)
    assert [current.catalog for _ in range(100)] == [None] * 100
    assert catalog.asked == 1
    for asked in range(1, locked + 1):
        assert current.catalog is None
        assert catalog.asked == asked
        clock.move(EXHAUSTED + 1)
        assert (current.catalog is catalog) == (asked == locked)
    assert catalog.asked == locked + 1
    assert current.health.is_well
    assert len(caplog.records) == 1
    current.close()
    assert catalog.closed == 1


def test_a_catalog_that_somebody_opens_beside_the_program_is_there_for_the_program(tmp_path, opening):
    catalog = opening(locked=1)
    current = begun(tmp_path)
    assert current.catalog is None
    current.keeper.submit(lambda: current.inputs)
    assert current.settle(LONG)
    assert current.catalog is catalog
    assert current.health.reading.state == "closed"
    current.close()


def test_threads_that_open_a_catalog_at_once_have_one(tmp_path, opening):
    gate = threading.Event()
    catalog = opening(gate=gate)
    current = begun(tmp_path)
    threads = [threading.Thread(target=current._open) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert catalog.began.wait(LONG)
    gate.set()
    for thread in threads:
        thread.join(LONG)
    assert catalog.asked == 1
    current.close()
    assert catalog.closed == 1


def test_a_catalog_that_is_opened_when_nobody_wants_it_any_more_is_closed(tmp_path, opening):
    gate = threading.Event()
    catalog = opening(gate=gate)
    current = begun(tmp_path)
    thread = threading.Thread(target=current._open)
    thread.start()
    assert catalog.began.wait(LONG)
    current.close()
    assert current.catalog is None
    gate.set()
    thread.join(LONG)
    assert catalog.closed == 1
    assert current.catalog is None
    assert catalog.asked == 1


def test_what_needs_a_catalog_says_that_there_is_none(tmp_path, opening, monkeypatch):
    opening(locked=10)
    current = begun(tmp_path)
    for need in (lambda: current.inputs, lambda: current.reservations):
        with pytest.raises(CatalogUnavailableError):
            need()

    def refuse(*_, **__):
        raise CatalogFailure("it is no catalog")

    monkeypatch.setattr("nectar.catalog.embedded.open_catalog", refuse)
    broken = begun(tmp_path)
    for need in (lambda: broken.inputs, lambda: broken.reservations):
        with pytest.raises(CatalogFailure) as failure:
            need()
        assert not isinstance(failure.value, CatalogUnavailableError), "trying again makes no sense"
    for each in (current, broken):
        each.close()
