"""A session with a store of its own for each test."""

import pytest

import nectar
from nectar import session


@pytest.fixture
def enabled(tmp_path, monkeypatch):
    """Nectar is on, with an empty store."""
    home = tmp_path / "home"
    monkeypatch.setenv("NECTAR_HOME", str(home))
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    nectar.enable(home=home, reserve=0)
    yield session.current()
    nectar.disable()
