"""The environment as a value, wherever it lies: what it holds may be read there."""

import collections
import os

import pytest

import nectar
from nectar.errors import UncacheableError

SETTINGS = {"environment": os.environ}
CHAIN = collections.ChainMap({"a": 1}, os.environ)
LISTED = [os.environ]


class Config:
    def __init__(self):
        self.variables = os.environ


CONFIG = Config()


def default(n, env=os.environ):
    return env.get("NT_X")


def keyword_default(n, *, env=os.environ):
    return env["NT_X"]


def helper(env=os.environ):
    return env["NT_X"]


def own_and_default(n, env=os.environ):
    return os.environ["NT_X"], env.get("NT_Y")


READERS = {
    "default": default,
    "default of a keyword": keyword_default,
    "default beside a variable": own_and_default,
    "default of a helper": lambda n: helper(),
    "in a dict": lambda n: SETTINGS["environment"].get("NT_X"),
    "in a list": lambda n: [each["NT_X"] for each in LISTED],
    "in a ChainMap": lambda n: CHAIN["NT_X"],
    "in an attribute": lambda n: CONFIG.variables["NT_X"],
}


@pytest.mark.parametrize("function", READERS.values(), ids=READERS)
def test_the_environment_as_a_value_is_refused(function):
    with pytest.raises(UncacheableError, match=r"os\.environ"):
        nectar.fingerprint(function)


def test_single_variables_count_by_their_value(monkeypatch):
    def region(n):
        return os.environ["NT_X"], os.environ.get("NT_Y", "x")

    found = set()
    for value in ("1", "2"):
        monkeypatch.setenv("NT_X", value)
        found.add(nectar.fingerprint(region))
    assert len(found) == 2
