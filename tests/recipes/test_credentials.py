"""A recipe that would hold a credential is not written; in its place stands the reason."""

import functools
import importlib
import pickle
import sys
import textwrap

import cloudpickle
import pytest
from tests.catalog.making import key, opened

from nectar.recipes.code import code_of
from nectar.recipes.environment import environment_here
from nectar.recipes.recipe import Module, Proof, Recipe, Written, digest_of_text, put, recipes_of, record

CANARY = "hunter2canary"
SAID = "may be a credential, and recipes hold none: read it from the environment inside the function"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Imports a module of an application from its text."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def load(text):
        name = f"credentials_{len(names)}_of_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        names.append(name)
        return importlib.import_module(name)

    yield load
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "text",
    [
        f"PASSWORD = '{CANARY}'\ndef f(x): return PASSWORD\n",
        f"def f(x, token='{CANARY}'): return x\n",
        f"def f(x):\n    api_key = '{CANARY}'\n    return x\n",
        f"def f(x): return connect(password='{CANARY}')\ndef connect(password): return 1\n",
        f"URL = 'postgresql://bob:{CANARY}@db/x'\ndef f(x): return URL\n",
        f"class C:\n    secret = '{CANARY}'\ndef f(x): return C\n",
        f"CONFIG = {{'db': {{'password': '{CANARY}'}}}}\ndef f(x): return CONFIG\n",
        f"def connect(**given): return given\nDB = connect(password='{CANARY}')\ndef f(x): return x\n",
    ],
)
def test_a_module_with_a_credential_that_is_reached_or_run_is_refused(module, text):
    found = module(text)
    code = code_of([found.f], [pickle.dumps(found.f)])
    assert [each for each in code.refusals if f"the module {found.__name__} holds what {SAID}" in each]


def test_credentials_beside_what_is_reached_are_left_out(module):
    found = module(
        f"""
        import os
        PASSWORD = '{CANARY}'  # and again: {CANARY}
        def f(x): return x + LIMIT + len(os.environ["DB_PASSWORD"])
        LIMIT = 3
        def connect(password=PASSWORD): return 'postgresql://bob:{CANARY}@db/x'
        if __name__ == '__main__':
            print(f(1), connect('{CANARY}'))
        """
    )
    code = code_of([found.f], [pickle.dumps(found.f)])
    assert code.refusals == []
    assert CANARY not in code.texts[found.__name__]
    assert "LIMIT = 3" in code.texts[found.__name__]


def by_closure(module):
    password = CANARY
    return lambda x: (x, password)


def by_default(module):
    return lambda x, token=CANARY: (x, token)


def by_constant(module):
    def f(x):
        secret = "hunter2canary"
        return x, secret

    return f


def by_part(module):
    return functools.partial(lambda x, api_key: (x, api_key), api_key=CANARY)


def by_attribute(module):
    class Client:
        def __init__(self):
            self.password = CANARY

        def f(self, x):
            return x, self.password

    return Client().f


def by_table(module):
    settings = {"url": "x", "password": CANARY}
    return lambda x: settings["url"]


def by_address(module):
    url = f"https://bob:{CANARY}@host/x"
    return lambda x: url


def by_global(module):
    space = {"__name__": "__main__", "TOKEN": CANARY}
    exec("def f(x): return TOKEN", space)
    return space["f"]


@pytest.mark.parametrize(
    "make", [by_closure, by_default, by_constant, by_part, by_attribute, by_table, by_address, by_global]
)
def test_a_value_that_a_function_captures_is_refused(module, make):
    function = make(module)
    pickled = cloudpickle.dumps(function)
    assert CANARY.encode() in pickled
    code = code_of([function], [pickled])
    assert [each for each in code.refusals if f"a function, or a value that it captured, holds what {SAID}" in each]


def test_a_function_without_credentials_is_not_refused(module):
    limit = 3

    def f(x):
        return x + limit

    said = code_of([f], [cloudpickle.dumps(f)]).refusals
    assert [each for each in said if SAID in each] == []


def written(plan=b"plan", text="X = 1\n", about="", refusals=()):
    here = environment_here("Polars", "1", "")
    module = Module("etl", False, "etl.py", digest_of_text(text))
    proof = Proof(key(1), key(2), ())
    return Written(
        Recipe("polars", key(2), key(1), about, 1.0, here, proof, modules=(module,), refusals=refusals), plan,
        {"etl": text},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "what"),
    [
        (written(plan=f"\x80\x05 https://x/y?sig={CANARY} \x00".encode()), "its plan holds"),
        (written(text=f"PASSWORD = '{CANARY}'\n"), "the module etl holds"),
        (written(about=f"read postgresql://bob:{CANARY}@db", plan=b"AKIAIOSFODNN7EXAMPLE"), "its plan holds"),
        (written(text=f"X = '{CANARY}'\n", refusals=("it is compiled",)), "it is compiled"),
    ],
)
def test_what_is_written_has_neither_plan_nor_texts(tmp_path, recipe, what):
    catalog = opened(tmp_path / "home")
    assert not record(catalog, recipe).rebuildable
    (found,) = recipes_of(catalog, key(2))
    assert (found.plan, found.texts) == (b"", {})
    assert [each for each in found.recipe.refusals if each.startswith(what)]
    assert CANARY not in str(found)
    assert record(catalog, recipe).identity == put(catalog, recipe), "it is there once"
    catalog.close()


def test_others_are_written_as_they_are(tmp_path):
    catalog = opened(tmp_path / "home")
    assert record(catalog, written()).rebuildable
    (found,) = recipes_of(catalog, key(2))
    assert (found.plan, found.texts) == (b"plan", {"etl": "X = 1\n"})
    catalog.close()
