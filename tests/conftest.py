"""For all tests: how hard hypothesis tries, that nothing of the caller's environment reaches a test, an empty store."""

import os
import sys
from collections.abc import Iterator

import hypothesis
import pytest

import nectar
from nectar import session
from nectar.keys import executed, texts

# Time limits per example say more about the machine than about the code, so there are none.
hypothesis.settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("deep", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("NECTAR_TEST_PROFILE", "quick"))
# What a test runs is noticed from the beginning, so that nothing of it has to be found in the memory of a later one.
executed.listen()
texts._unlisted()
# No test hangs on how fast the machine is today.
FROM_HERE = {"NECTAR_OVERHEAD": "unlimited", "NECTAR_PATIENCE": "60s"}
os.environ.update(FROM_HERE)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NECTAR_") and name not in FROM_HERE]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _numpy_as_it_was() -> Iterator[None]:
    """How numpy treats errors and prints is the same for each test: it counts in keys."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        yield
        return
    with numpy.errstate(), numpy.printoptions():
        yield


@pytest.fixture(autouse=True)
def _no_texts_left() -> Iterator[None]:
    """What a test has run is no part of the program that the next one is."""
    before = set(sys.modules)
    yield
    noted = (executed.files, executed.statements, executed.forgotten, executed.before)
    if any(noted):
        executed._count += 1
    for each in noted:
        each.clear()
    for name in set(sys.modules) - before:  # a module of the program whose text nobody can read may change anything
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and not os.path.exists(file):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _no_hooks_left() -> Iterator[None]:
    """A test that leaves Nectar between programs and Polars fails itself, and not the next one that minds."""
    yield
    if session._enabled or session._blocks:  # a fixture of the module may hold a block open
        return
    engine = sys.modules.get("nectar.dialects.polars.engine")
    left = list(engine._replaced) if engine is not None else []
    if left:
        session._uninstall()
    assert not left, "queries still go through Nectar after this test"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def enabled(home, monkeypatch):
    """Nectar is on, with an empty store."""
    monkeypatch.setenv("NECTAR_HOME", str(home))  # for threads that outlive a test that fails
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    nectar.enable(home=home, reserve=0)
    yield session.current()
    nectar.disable()
