import pytest
from tests.store.making import fresh_url

from nectar.store.store import Store


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    """The contract of a store holds on a file system and behind a URL."""
    return Store(tmp_path / "store" if request.param == "local" else fresh_url())


@pytest.fixture
def local(tmp_path):
    return Store(tmp_path / "store")
