"""A session with a store of its own for each test; nothing of it outlives the test."""

import pytest
from tests.dialects.python.programs import Program

import nectar
from nectar import session


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


@pytest.fixture
def program(tmp_path, home):
    return Program(tmp_path / "program", home)
