"""Traces show what went in; comparing two of them names the change."""

import json

import pytest

import nectar


def program(source, **names):
    space = dict(names)
    exec(compile(source, "/somewhere/etl.py", "exec"), space)
    return space["f"]


BASE = """
import json, math
RATES = {'EUR': 1.0, 'USD': [0.9, 2]}
class Cleaner:
    limit = 3
    def clean(self, n):
        return n % self.limit
CLEANER = Cleaner()
def clean(n, k=2):
    return n * 3 + k
def f(n):
    return clean(n) + RATES['EUR'] + math.floor(n) + CLEANER.clean(n)
"""

CHANGES = {
    "constant of a helper": (BASE.replace("n * 3", "n * 4"), "helper `clean` in etl.py:9: constant 3 became 4"),
    "operator": (BASE.replace("n * 3", "n - 3"), "helper `clean` in etl.py:9: what it does changed"),
    "default": (BASE.replace("k=2", "k=5"), "helper `clean` in etl.py:9: default of k was 2, is 5"),
    "value in a dict": (BASE.replace("1.0", "1.5"), "`f` in etl.py:11, global RATES: ['EUR'] was 1.0, is 1.5"),
    "deep in a dict": (BASE.replace("[0.9, 2]", "[0.9, 3]"), "global RATES, ['USD']: [1] was 2, is 3"),
    "class attribute": (BASE.replace("limit = 3", "limit = 4"), "limit was 3, is 4"),
    "method": (BASE.replace("n % self", "n // self"), "helper `Cleaner.clean` in etl.py:6: what it does changed"),
    "another library function": (BASE.replace("math.floor", "math.ceil"), "math.ceil"),
    "another type": (BASE.replace("'EUR': 1.0", "'EUR': 1"), "['EUR'] was 1.0, is 1"),
    "a helper more": (BASE.replace("return clean(n) +", "return abs(clean(n)) +"), "now uses global abs"),
}


@pytest.mark.parametrize(("source", "words"), CHANGES.values(), ids=CHANGES)
def test_why_names_the_change(source, words):
    assert words in str(nectar.why(program(BASE), program(source)))


def test_no_difference():
    explanation = nectar.why(program(BASE), program(BASE.replace("def f(n)", "def f(n)")))
    assert not explanation
    assert "same fingerprint" in str(explanation)


def test_a_trace_shows_what_went_in():
    text = str(nectar.trace(program(BASE)))
    assert "function clean (etl.py:9)" in text
    assert "constant: 3" in text
    assert "class Cleaner" in text
    assert "0.9" in text


def test_a_trace_is_json():
    trace = nectar.trace(program(BASE))
    content = json.loads(trace.to_json())
    assert content["fingerprint"] == str(nectar.fingerprint(program(BASE)))
    assert content["scheme"] == 1


def test_traces_can_be_compared_after_the_program_is_gone():
    old = nectar.trace(program(BASE))
    new = nectar.trace(program(BASE.replace("n * 3", "n * 4")))
    assert "constant 3 became 4" in str(nectar.why(old, new))


def test_parameters_of_the_function_itself():
    assert "parameter" in str(nectar.why(program("def f(n):\n    return n"), program("def f(m):\n    return m")))


def test_refused_functions_have_traces_too():
    assert "time" in str(nectar.trace(program("import time\ndef f():\n    return time.time()")))


SECRETS = """
import os
API_KEY = 'hunter2canary'
URL = 'postgresql://bob:hunter2canary@db/x'
CONFIG = {'password': 'hunter2canary', 'port': 4711, 'pin': {'secret': 4242}}
TOKENS = ('hunter2canary', 'x')
SECRETS = frozenset(['hunter2canary'])
class Settings:
    auth = ('bob', 'hunter2canary')
def connect(url, token='hunter2canary', auth=('bob', 'hunter2canary')):
    password = 'hunter2canary'
    user, pw = 'bob', 'hunter2canary'
    return url, token, password in ('hunter2canary', 'x'), TOKENS, SECRETS, Settings.auth, auth, pw
def f(n):
    return connect(URL + API_KEY), CONFIG, n
"""


def test_a_trace_holds_no_credential_and_no_digest_of_one():
    one, other = (nectar.trace(program(text)) for text in (SECRETS, SECRETS.replace("hunter2canary", "another")))
    for text in (str(one), one.to_json()):
        assert "hunter2canary" not in text
        assert "4242" not in text
        assert "4711" in text
    assert one.fingerprint != other.fingerprint
    leaves = [json.dumps(_leaves(json.loads(each.to_json())["root"])) for each in (one, other)]
    assert leaves[0] == leaves[1], "nothing tells the two passwords apart"
    assert "hunter2canary" not in str(nectar.why(one, other))


def _leaves(node):
    return [node["digest"], *map(_leaves, node["children"])] if "children" in node else node["digest"]
