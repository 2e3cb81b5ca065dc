"""A session with a store of its own for each test; nothing of it outlives the test."""

import pytest
from tests.dialects.python.programs import Program


@pytest.fixture
def program(tmp_path, home):
    return Program(tmp_path / "program", home)
