"""Functions of the application that C code looks up by names nobody knows beforehand."""

import codecs
import functools
import operator
import sys

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.errors import UncacheableError, UnencodableError

TABLE = {"shift": 1}


def shifted(text, errors="strict"):
    return bytes(ord(each) + TABLE["shift"] for each in text), len(text)


def search(name):
    return codecs.CodecInfo(shifted, None, name=name) if name == "of_these_tests" else None


def by_method(text, how):
    return text.encode(how)


def by_keyword(text, how):
    return text.encode("ascii", errors=how)


def by_type(text, how):
    return bytes(text, how)


def by_module(text, how):
    return codecs.encode(text, how)


@pytest.mark.parametrize("function", [by_method, by_keyword, by_type, by_module])
def test_codecs_under_names_that_are_given(function, monkeypatch):
    before = nectar.fingerprint(function)
    codecs.register(search)
    try:
        within = nectar.fingerprint(function)
        assert within != before
        monkeypatch.setitem(TABLE, "shift", 2)
        assert nectar.fingerprint(function) not in (before, within)
    finally:
        codecs.unregister(search)
    assert nectar.fingerprint(function) == before


def test_codecs_under_names_that_are_written_count_alone():
    def written(text):
        return text.encode("utf-8", "replace")

    before = nectar.fingerprint(written)
    codecs.register(search)
    try:
        assert nectar.fingerprint(written) == before
    finally:
        codecs.unregister(search)


def test_functions_for_xpath():
    etree = pytest.importorskip("lxml.etree")

    def taxed(text):
        return etree.fromstring(text).xpath("of:tax(number(//v))")

    before = nectar.fingerprint(taxed)
    space = etree.FunctionNamespace("urn:of-these-tests")
    space.prefix = "of"
    space["tax"] = lambda context, value: value * 2
    try:
        doubled = nectar.fingerprint(taxed)
        space["tax"] = lambda context, value: value * 3
        assert len({before, doubled, nectar.fingerprint(taxed)}) == 3
    finally:
        del space["tax"]
    assert nectar.fingerprint(taxed) == before


def test_style_sheets_may_read_files():
    etree = pytest.importorskip("lxml.etree")
    sheet = etree.XML("<a/>")
    with pytest.raises(UncacheableError, match="XSLT"):
        nectar.fingerprint(lambda text: etree.XSLT(sheet)(etree.XML(text)))
    nectar.fingerprint(lambda text: etree.XML(text).xpath("//v"))


@functools.lru_cache
def square(x):
    return x * x


class Rule:
    pass


subclasses, info = Rule.__subclasses__, square.cache_info

ASKERS = [
    lambda x: square.cache_info().hits,
    lambda cached: cached.cache_info(),
    lambda x: info(),
    lambda x, ask=info: ask(),
    lambda x: Rule.__subclasses__(),
    lambda x: subclasses(),
    lambda x, ask=subclasses: ask(),
    lambda x: getattr(x, "cache_info")(),  # noqa: B009 - by a name in a text
    lambda x: operator.attrgetter("cache_info")(x),
]


@pytest.mark.parametrize("asker", range(len(ASKERS)))
def test_what_was_cached_or_defined_so_far_is_not_asked(asker):
    with pytest.raises((UncacheableError, UnencodableError), match="cache_info|__subclasses__"):
        nectar.fingerprint(ASKERS[asker])


def test_how_a_cache_was_made_may_be_asked():
    nectar.fingerprint(lambda x: square.cache_parameters())


SCHEMAS = """
    _registry = {}
    def register(name, cls):
        _registry.setdefault(name, []).append(cls)
"""
NESTING = """
    from marshmallow import class_registry
    class Schema:
        def __init_subclass__(cls):
            class_registry.register(cls.__name__, cls)
        def load(self, given):
            (line,) = class_registry._registry["Line"]
            return line.convert(given)
"""


@pytest.fixture
def marshmallow(tmp_path, monkeypatch):
    if "marshmallow" in sys.modules:
        pytest.skip("the real one is loaded")
    files = {"marshmallow/__init__.py": NESTING, "marshmallow/class_registry.py": SCHEMAS}
    yield install(tmp_path, monkeypatch, "marshmallow", files)
    forget("marshmallow")


def test_schemas_that_others_nest_by_name_count(marshmallow):
    class Order(marshmallow.Schema):
        pass

    def load(given):
        return Order().load(given)

    def line(convert):
        return type("Line", (marshmallow.Schema,), {"convert": staticmethod(convert)})

    registry = operator.attrgetter("class_registry._registry")(marshmallow)
    found = [nectar.fingerprint(load)]
    for classes in ([line(lambda given: given)], [line(lambda given: int(given))], [line(int), line(str)]):
        registry["Line"] = classes
        found.append(nectar.fingerprint(load))
    registry["Line"] = [line(lambda given: given)]
    assert len(set(found)) == 4
    assert nectar.fingerprint(load) == found[1]
