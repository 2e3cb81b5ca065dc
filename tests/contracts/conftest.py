"""The indexes under test."""

import pytest

from nectar.catalog.index.sqlite import SqliteIndex


class SqliteFactory:
    """Indexes over one file; each call opens it anew."""

    def __init__(self, folder):
        self._path = folder / "catalog.db"
        self._opened = []

    def __call__(self):
        self._opened.append(SqliteIndex(self._path))
        return self._opened[-1]

    def close(self):
        for index in self._opened:
            index.close()


INDEXES = {"sqlite": SqliteFactory}


@pytest.fixture(params=INDEXES)
def another(request, tmp_path):
    """Opens the same rows once more."""
    factory = INDEXES[request.param](tmp_path)
    yield factory
    factory.close()


@pytest.fixture
def index(another):
    return another()
