"""What libraries fill as it is asked for is no change that a call has made; anything else is."""

import re
import sys
import textwrap
import warnings
from collections import defaultdict

import polars as pl
import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.dialects.polars.keying import Keyed
from nectar.keys import remembered

LIBRARY = """
    import re
    from collections import Counter, defaultdict

    class Parser:
        def __init__(self):
            self.rules = {"a": "a+"}
            self.__sc = {}
            self.__compiled_cache__ = None
        def pattern(self, name):
            if name not in self.__sc:
                self.__sc[name] = re.compile(self.rules[name])
            return self.__sc[name]
        def count(self, text):
            return len(self.pattern("a").findall(text))
        def register(self, text):
            self.rules[text] = text
            return self.count(text)
        def all(self, text):
            if self.__compiled_cache__ is None:
                self.__compiled_cache__ = re.compile("|".join(self.rules.values()))
            return len(self.__compiled_cache__.findall(text))

    class Other:
        def __init__(self):
            self.__sc = {}
        def seen(self, text):
            self.__sc[text] = text
            return text
    parser, other = Parser(), Other()

    class Meta(type):
        def __init__(cls, name, bases, space):
            super().__init__(name, bases, space)
            cls.HOOKS = defaultdict(list)
            cls._found = defaultdict(list)
            cls._counts = defaultdict(int)
            cls.visible = defaultdict(list)
    class Schema(metaclass=Meta):
        def load(self, text):
            return [text, *self.HOOKS["before"]]
        def hook(self, text):
            self.HOOKS["before"].append(text)
            return text
        def count(self, text):
            self._counts[text]
            return text
        def show(self, text):
            self.visible[text]
            return text
        def find(self, text):
            self._found[text]
            return text
"""
HIDDEN = "gnitiawa_"[::-1]  # stands in no text of the program, as this module is one


@pytest.fixture
def library(tmp_path, monkeypatch):
    made = install(tmp_path, monkeypatch, "nt_fills", {"nt_fills.py": LIBRARY.replace("HOOKS", HIDDEN)})
    monkeypatch.setattr(remembered, "_FILLED", frozenset({("nt_fills", "Parser", "_Parser__sc")}))
    remembered._filled.cache_clear()
    yield made
    remembered._filled.cache_clear()
    forget("nt_fills")


def kept_at_once(function, *arguments):
    memo = nectar.memo(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo(*arguments)
    nectar.session.current().settle()
    return "not kept" not in nectar.last_run().parts[0].keeping


def program(source, **names):
    """A function of the application whose text is no text of this module."""
    space = {"__name__": "program", **names}
    exec(textwrap.dedent(source), space)
    return space["program"]


def test_what_follows_from_the_rest_may_be_filled(library, enabled):
    assert kept_at_once(program("def program(text): return parser.count(text)", parser=library.parser), "aab")
    assert kept_at_once(program("def program(text): return parser.all(text)", parser=library.parser), "aab")


def test_what_is_registered_is_a_change(library, enabled):
    changes = program("def program(text): return ask(text)", ask=library.Parser().register)
    assert not kept_at_once(changes, "b")


def test_so_is_what_another_class_keeps_under_such_a_name(library, enabled):
    assert not kept_at_once(program("def program(text): return ask(text)", ask=library.other.seen), "b")


def test_the_key_holds_what_was_filled_before(library, enabled):
    parser = library.Parser()
    memo = nectar.memo(program("def program(text): return parser.count(text)", parser=parser))
    assert memo("aab") == 1
    parser._Parser__sc["a"] = re.compile(".")  # stale, for whatever reason
    assert memo("aab") == 3


def schema_of(library):
    return program("class program(base): pass", base=library.Schema)


METHOD = "def program(text): return Order().{}(text)"


def test_reading_a_dict_that_makes_what_is_missing_is_no_change(library, enabled):
    assert kept_at_once(program(METHOD.format("load"), Order=schema_of(library)), "a")


@pytest.mark.parametrize("method", ["hook", "count", "show"])
def test_but_filling_it_is(method, library, enabled):
    assert not kept_at_once(program(METHOD.format(method), Order=schema_of(library)), "a")


def test_and_reading_it_where_the_program_may_look_at_it(library, enabled):
    schema = schema_of(library)
    assert not kept_at_once(program(METHOD.format("find"), Order=schema), "a")
    assert "a" in schema._found


def test_a_class_of_the_program_with_a_dict_of_its_own(library, enabled):
    class Order:
        def load(self, text):
            return [text, *getattr(self, HIDDEN)["before"]]

    setattr(Order, HIDDEN, defaultdict(list))
    assert not kept_at_once(program("def program(text): return order(text)", order=Order().load), "a")


def kept_in_query(function):
    """Whether the first query with a function is kept."""
    frame = pl.LazyFrame({"a": ["aab"]}).select(pl.col("a").map_elements(function, return_dtype=pl.Int64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.collect()
    nectar.session.current().settle()
    return "not kept" not in nectar.last_run().parts[0].keeping


def test_the_same_holds_for_functions_of_queries(library, enabled):
    for method in ("count", "all"):
        assert kept_in_query(program(f"def program(text): return parser.{method}(text)", parser=library.Parser()))
    assert not kept_in_query(program("def program(text): return ask(text)", ask=library.Parser().register))
    assert not kept_in_query(program("def program(text): return len(ask(text))", ask=library.other.seen))


def test_a_query_whose_function_changed_before_it_ran_is_not_kept(library, enabled, monkeypatch):
    """What libraries remembered before the key was made stands in it; what is changed afterwards stands nowhere."""
    parser = library.Parser()
    begin = Keyed.begin

    def late(self):
        parser._Parser__sc["a"] = re.compile(".")
        begin(self)

    monkeypatch.setattr(Keyed, "begin", late)
    assert not kept_in_query(program("def program(text): return parser.count(text)", parser=parser))


def test_grammars_of_pyparsing(enabled):
    pp = pytest.importorskip("pyparsing")
    number = pp.Word(pp.nums).set_parse_action(lambda given: int(given[0]))
    triple = number + pp.Suppress(",") + number + pp.Suppress(",") + number
    assert kept_at_once(program("def program(text): return sum(triple.parse_string(text))", triple=triple), "1,2,3")
    action = number.copy().set_parse_action(lambda given: int(given[0]) + 1)
    changing = "def program(text): return change(len) and text"
    assert not kept_at_once(program(changing, change=action.set_parse_action), "1")


def test_nested_sequences_of_pyparsing_are_no_others_than_those_that_are_made_one():
    pp = pytest.importorskip("pyparsing")

    def rest(grammar):
        return remembered.rest_of(type(grammar), vars(grammar))["exprs"]

    a, b, c = pp.Word("a"), pp.Word("b"), pp.Word("c")
    for grammar in (a + b + c, a + (b + c), (a | b | c), a + (b + c)("name"), a + (b | c), (a + b) + (b + c)):
        before = rest(grammar)
        grammar.streamline()
        assert rest(grammar) == before == grammar.exprs


def test_lexers_of_lark(enabled):
    lark = pytest.importorskip("lark")
    parser = lark.Lark('start: A ("+" A)*\nA: "a"+', parser="lalr")
    assert kept_at_once(program("def program(text): return len(parser.parse(text).children)", parser=parser), "aa+a")


def test_curried_functions_of_toolz(enabled):
    curried = pytest.importorskip("toolz.curried")
    assert kept_at_once(program("def program(text): return list(map(str.upper)(text))", map=curried.map), "ab")


def test_the_attributes_that_are_listed_are_there():
    mistune = pytest.importorskip("mistune")
    mistune.html("*a*")
    for module, kind, name in remembered._FILLED:
        if module.partition(".")[0] == "mistune":
            cls = getattr(sys.modules[module], kind)
            held = [each for each in (mistune.html.block, mistune.html.inline) if isinstance(each, cls)]
            assert [each for each in held if name in vars(each)] == held != []
