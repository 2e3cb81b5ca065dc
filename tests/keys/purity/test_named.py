"""Variables that a text names: what they mean is part of the fingerprint, or the function is refused."""

import types
from urllib import parse

import pytest

import nectar
from nectar.errors import UncacheableError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def made(body, **names):
    """The functions that a module with these names and this text defines."""
    module = types.ModuleType("made")
    vars(module).update(pd=pd, pl=pl, **names)
    exec(body, vars(module))
    return module


def fingerprint(body, **names):
    return str(nectar.fingerprint(made(body, **names).f))


GLOBALS = {
    "query": "def f(d): return d.query('a > @K')",
    "query by keyword": "def f(d): return d.query(expr='a > @K', engine='python')",
    "query after others": "def f(d): return d.groupby('a').mean().query('b > @K')",
    "query of a frame made here": "def f(d): return pd.DataFrame({'a': [1]}).query('a > @K')",
    "eval": "def f(d): return d.eval('b = a + @K')",
    "text in a variable": "def f(d):\n    text = 'a > @K'\n    return d.query(text)",
    "text of the module": "TEXT = 'a > @ K'\ndef f(d): return d.query(TEXT)",
    "text with values": "def f(d, n): return d.query(f'a > {n} and b < @K')",
    "pieces of text": "def f(d, n):\n    rest = '@K'\n    return d.query(f'a > {rest}')",
    "in a lambda": "def f(d): return d.pipe(lambda e: e.query('a > @K'))",
    "in a helper": "def g(d): return d.query('a > @K')\ndef f(d): return g(d)",
}


@pytest.mark.parametrize("body", GLOBALS.values(), ids=GLOBALS)
def test_a_global_counts(body):
    assert fingerprint(body, K=1) == fingerprint(body, K=1)
    assert fingerprint(body, K=1) != fingerprint(body, K=2)


def test_a_global_that_changes_is_noticed():
    module = made("def f(d): return d.query('a > @K')", K=1)
    before = nectar.fingerprint(module.f)
    module.K = 2
    assert nectar.fingerprint(module.f) != before


LOCALS = [
    ("def f(d):\n    low, high = 1, 2\n    return d.query('a > @low')", "low, high", "high, low"),
    ("def f(d):\n    low = 1\n    return d.query('a > @low')", "1", "2"),
    ("def f(d, low, high): return d.query('a > @low')", "low, high", "high, low"),
    ("def f(d):\n    low = d.a.mean()\n    return d.query('a > @low')", "mean", "min"),
]


@pytest.mark.parametrize(("body", "old", "new"), LOCALS)
def test_variables_of_the_function_count(body, old, new):
    assert fingerprint(body) == fingerprint(body)
    assert fingerprint(body) != fingerprint(body.replace(old, new, 1))


def test_other_methods_of_these_names_are_fine():
    fingerprint("def f(url): return parse_qs(urlsplit(url).query)", parse_qs=parse.parse_qs, urlsplit=parse.urlsplit)
    fingerprint("def f(model): return model.eval()")


def test_columns_are_no_variables():
    body = "def f(d): return d.query('a > 1 and K < 3')"
    assert fingerprint(body, K=1) == fingerprint(body, K=2)


REFUSED = {
    "text of the caller": "def f(d, text): return d.query(text)",
    "text put together": "def f(d, text): return d.query('a > ' + text)",
    "eval of text of the caller": "def f(d, text): return d.eval(text)",
    "pd.eval": "def f(d): return pd.eval('K + 1')",
    "text among keywords": "E = {'expr': 'a > @K'}\ndef f(d): return d.query(**E)",
    "text of keywords of a helper": "def g(d, **given): return d.query(**given)\ndef f(d): return g(d, expr='a > @K')",
    "text among arguments": "E = ['a > @K']\ndef f(d): return d.query(*E)",
    "of a frame of the module": "D = pd.DataFrame({'a': [1]})\nE = ['a > @K']\ndef f(x): return D.query(*E)",
    "partial": "import functools\ndef f(d): return functools.partial(d.query, 'a > @K')()",
    "methodcaller": "import operator\nget = operator.methodcaller\ndef f(d): return get('query', 'a > @K')(d)",
    "getattr": "def f(d): return getattr(d, 'query')('a > @K')",
    "map": "def f(d): return list(map(d.query, ['a > @K']))",
    "method as a value": "def f(d): return d.pipe(pd.DataFrame.query, 'a > @K')",
    "pl.sql": "def f(d): return pl.sql('select * from D').collect()",
    "SQLContext": "def f(d): return pl.SQLContext(register_globals=True).execute('select * from D')",
    "register_globals": "def f(d): return pl.SQLContext().register_globals().execute('select * from D')",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_told_is_refused(body):
    with pytest.raises(UncacheableError, match="name"):
        fingerprint(body, K=1)


def test_contexts_of_frames_that_are_given_are_fine():
    fingerprint("def f(d): return pl.SQLContext(d=d).execute('select * from d')")


FORMULAS = {
    "patsy": "def f(d): return patsy.dmatrix('I(x * K) - 1', d)",
    "formulaic": "def f(d): return formulaic.model_matrix('I(x * K) - 1', d)",
    "statsmodels": "def f(d): return smf.ols('y ~ scaled(x)', d)",
}


@pytest.mark.parametrize("library", FORMULAS)
def test_formulas(library):
    home = pytest.importorskip({"statsmodels": "statsmodels.formula.api"}.get(library, library))
    names = {"smf": home} if library == "statsmodels" else {library: home}
    texts = [f"def scaled(x): return x * {n}\nK = {n}\n{FORMULAS[library]}" for n in (1, 2)]
    assert fingerprint(texts[0], **names) == fingerprint(texts[0], **names)
    assert fingerprint(texts[0], **names) != fingerprint(texts[1], **names)
    with pytest.raises(UncacheableError, match="not known beforehand"):
        fingerprint(FORMULAS[library].replace("def f(d)", "def f(d, t)").replace("'I(x * K) - 1'", "t").replace("'y ~ scaled(x)'", "t"), **names)  # fmt: skip # noqa: E501
