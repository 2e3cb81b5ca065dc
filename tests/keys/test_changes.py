"""Programs that change what a library keeps are found in their sources."""

import decimal
import functools
import gc
import importlib
import itertools
import sys
import textwrap
import types
import warnings
from unittest import mock

import pytest

import nectar
from nectar.keys.changes import assignment_to, change_of, patch_of

_numbers = itertools.count()


KEPT = {"a": mock.MagicMock()}


class Shelf:
    """What a library keeps in an object."""

    def __init__(self):
        self.a = [0]
        self.things = {"a": self.a}

    def thing(self, name):
        return self.things[name]

    def found(self, name):
        return getattr(self, name)

    def asked(self, name):
        return self.thing(name)

    @classmethod
    def shared(cls):
        return cls.instance

    def copied(self):
        return dict(self.things)


Shelf.instance = Shelf()


def hand_out(name="a"):
    return KEPT.get(name)


def hand_out_by_another(name="a"):
    return hand_out(name)


@functools.lru_cache
def remember(name="a"):
    return [name]


def make_anew(name="a"):
    return [name, len(KEPT)]


def size_of_kept():
    return len(KEPT)


class Options(dict):
    """Settings that lie in a dict."""

    def set(self, given):
        self.update(given)

    def get_all(self):
        return self


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Imports a module of the application with the given text, beside a library that takes everything."""
    monkeypatch.syspath_prepend(str(tmp_path))
    library = mock.MagicMock(name="nt_units")
    library.config, library.options, library.core = Options(), Options(), library
    library.hand_out, library.hand_on, library.remember = hand_out, hand_out_by_another, remember
    library.make_anew, library.size, library.Shelf, library.shelf = make_anew, size_of_kept, Shelf, Shelf()
    library.parse, library.make_registry, library.Registry = make_anew, make_registry, Registry
    for name in ("nt_units", "nt_units.core"):
        monkeypatch.setitem(sys.modules, name, library)
    made = []

    def load(text):
        name = f"nt_program_{next(_numbers)}"
        made.append(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    for name in made:
        sys.modules.pop(name, None)
    for module in [each for each in gc.get_objects() if type(each) is types.ModuleType]:
        if str(vars(module).get("__file__")).startswith(str(tmp_path)):
            del module.__file__  # otherwise the next test finds it: code of a program that is in no list


CHANGES = (
    "import nt_units\nnt_units.define('crate', 20)",
    "import nt_units as nu\nnu.TABLE['a'] = 1",
    "import nt_units\nnt_units.TABLE['a']['b'] = 1",
    "import nt_units\nnt_units.TABLE['a'] += 1",
    "import nt_units\ndel nt_units.TABLE['a']",
    "import nt_units\nnt_units.default = 3",
    "from nt_units.core import options\noptions.timeout = 3",
    "from nt_units.core import registry\nregistry.register('a', len)",
    "from nt_units import NAMES\nNAMES.add('a')",
    "from nt_units import NAMES as words\nwords.remove('a')",
    "import nt_units\ndef main():\n    nt_units.core.add_currency('ZZZ')",
    "def main():\n    import nt_units\n    nt_units.set_words(['over'])",
    "import nt_units\nnt_units.get_context().precision = 5",
    "import nt_units\nnt_units.Lexer.get_default_instance().add_keywords({})",
    "import nt_units\nold = nt_units.set_words([])",
    "import nt_units\n@nt_units.register('a')\ndef a():\n    pass",
    "from nt_units import register_unit\n@register_unit\nclass A:\n    pass",
    "import nt_units\nwith nt_units.bound_context(batch=1):\n    pass",
    "import nt_units\nclass A:\n    def set(self):\n        nt_units.useLocale('de')",
    "import nt_units\n(nt_units.a, b) = 1, 2",
    "import nt_units\nasync def main():\n    await nt_units.configure()",
    # through another name
    "import nt_units\ntable = nt_units.TABLE\ntable['a'] = 1",
    "import nt_units\ntable = nt_units.TABLE['a']\ntable.update(b=1)",
    "import nt_units\ntable: dict = nt_units.TABLE\nrows = table['a']\nrows.append(1)",
    "from nt_units import core\nfirst = other = core.TABLE\ndef main():\n    first['a'] = 1",
    "import nt_units\ndef main():\n    table = nt_units.TABLE\n    del table['a']",
    "import nt_units\nif (table := nt_units.TABLE['a']):\n    table.clear = 1",
    "import nt_units\nrows = nt_units.TABLE.get('a')\nrows.append(1)",
    "import nt_units\nnt_units.TABLE.setdefault('a', []).append(1)",
    "import nt_units\nvars(nt_units)['default'] = 1",
    # modules by their names
    "import nt_units\nimport sys\nunits = sys.modules['nt_units.core']\nunits.default = 1",
    "import importlib\nunits = importlib.import_module('nt_units')\nunits.TABLE['a'] = 1",
    "import importlib\nimportlib.import_module('nt_units').TABLE.update(a=1)",
    "import sys\nsys.modules['nt_units'].TABLE['a'] = 1",
    # by functions that change what they are given
    "import nt_units\nfrom unittest import mock\nwith mock.patch.dict(nt_units.TABLE, a=1):\n    pass",
    "import nt_units, operator\noperator.setitem(nt_units.TABLE, 'a', 1)",
    "from nt_units import TABLE\nfrom operator import setitem\nsetitem(TABLE, 'a', 1)",
    "import nt_units\nsetattr(nt_units, 'default', 3)",
    "import nt_units\ndef main():\n    dict.update(nt_units.TABLE, a=1)",
    # called to change something, by what is done with the result
    "import nt_units\nnt_units.checks('even')(len)",
    "import nt_units\nnt_units.provide('a', len)",
    "import nt_units\nnt_units.config.get_all().update(a=1)",
    # what a library hands out
    "import nt_units\nthing = nt_units.hand_out('a')\nthing.unit = 'm'",
    "import nt_units\nthing = nt_units.hand_on('a').parts[0]\nthing.unit = 'm'",
    "from nt_units import remember as get\nthing = get('a')\nthing.append(3)",
    "import nt_units\nthing = nt_units.shelf.thing('a')\ndef main():\n    thing[0] = 1",
    "import nt_units\nthing = nt_units.shelf.asked('a')\nthing[0] = 1",
    "import nt_units\nthing = nt_units.shelf.found('a')\nthing[0] = 1",
    "import nt_units\nshelf = nt_units.Shelf.shared()\nshelf.unit = 1",
    "import nt_units\nthing = nt_units.hand_out()\nobject.__setattr__(thing, 'unit', 'm')",
    "import nt_units\nsetattr(nt_units.hand_out(), 'unit', 'm')",
    "import nt_units\nfor thing in nt_units.THINGS:\n    thing.unit = 'm'",
    "from nt_units import THINGS\nfor name, thing in THINGS.items():\n    thing.unit = 'm'",
    "import nt_units\ndef table():\n    return nt_units.TABLE\ntable()['a'] = 1",
    "import nt_units\ndef table():\n    return nt_units.hand_out()\nfound = table()\nfound.unit = 'm'",
    (
        "import nt_units\nclass A:\n    def __init__(self):\n        self.table = nt_units.TABLE\n"
        "    def fill(self):\n        self.table['a'] = 1"
    ),
    # asked for in other ways
    "import nt_units\ngetattr(nt_units.core, 'TABLE')['a'] = 1",
    "import nt_units\ngetattr(nt_units, 'core').TABLE.update(a=1)",
    "import nt_units\ntable = getattr(nt_units, 'TABLE', None)\ntable['a'] = 1",
    "import inspect, nt_units\ninspect.getattr_static(nt_units, 'unit', [0])[0] = 1",
    "import nt_units\ntable = nt_units.TABLE if nt_units else {}\ntable['a'] = 1",
    "import nt_units\nmine = None\ntable = mine or nt_units.TABLE\ntable['a'] = 1",
    "import nt_units\nfor table in (nt_units.TABLE, nt_units.OTHER):\n    table['a'] = 1",
    "import nt_units\nfirst, second = nt_units.TABLE, nt_units.OTHER\nsecond['a'] = 1",
)


@pytest.mark.parametrize("text", CHANGES)
def test_what_is_changed_is_found_with_its_place(text, program):
    module = program(text)
    place = change_of("nt_units")
    assert place.startswith(f"{module.__name__}.py:")
    assert int(place.rpartition(":")[2]) > 1
    assert not change_of("nt_other")


@pytest.mark.parametrize(
    "text",
    [
        "import nt_units.defaults\nnt_units.defaults.NAMESPACE['a'] = 1",
        "from nt_units.defaults import NAMESPACE\nNAMESPACE['a'] = 1",
        "import nt_units.defaults as d\nd.NAMESPACE.update(a=1)",
    ],
)
def test_tables_in_a_module_that_is_called_like_settings_are_none(text, program, monkeypatch):
    """Keys hold the plain values of such a module, and what is called like settings in it."""
    module = types.ModuleType("nt_units.defaults")
    module.NAMESPACE = {}
    monkeypatch.setitem(sys.modules, "nt_units.defaults", module)
    monkeypatch.setattr(sys.modules["nt_units"], "defaults", module)
    loaded = program(text)
    assert change_of("nt_units") == f"{loaded.__name__}.py:2"


@pytest.mark.parametrize(
    "text",
    [
        "import nt_units\nx = nt_units.parse('3 m')\nx[0] = 'km'\nx.append(3)",
        "import nt_units\nprint(nt_units.convert(3))\nnt_units.show(3)\nnt_units.save('a', 3)\nnt_units.write('a')",
        "from nt_units import Table\nrows = Table()\nrows['a'] = 1\nrows.append(3)",
        "import nt_units\n@nt_units.define\nclass A:\n    pass",
        "import nt_units\ntable = dict(nt_units.TABLE)\ntable['a'] = 1",
        "import nt_units\ndef main():\n    table = nt_units.TABLE\ndef other(table):\n    table['a'] = 1",
        "import nt_units\nsize = nt_units.SIZE\nsize += 1",
        "import nt_units\nnt_units = {}\nsettings = {}\nsettings['nt_units'] = 1",
        "import nt_units\nwith nt_units.open('a') as file:\n    pass",
        "import nt_units\nfound = nt_units.use('a')",
        "import nt_units\nnt_units.config.set({'a': 1})\nnt_units.options['a'] = 1",  # which stand in keys
        "from nt_units import config\nconfig['a'] = 1",
        "text = 'import nt_units; nt_units.set_words(3)'",
        "nt_units = 3",
        "import importlib\nunits = importlib.import_module('nt_units')\nprint(units.TABLE['a'])",
        "import nt_units, operator\nown = {}\noperator.setitem(own, 'a', nt_units.TABLE)",
        "import nt_units\nsize = nt_units.TABLE.get('a')\nsize += 1",
        "import nt_units, importlib\nfor name in ('json',):\n    importlib.import_module(name).nt_mark = 1",  # plugins
        "import nt_units\nthing = nt_units.make_anew()\nthing.append(3)\nsize = nt_units.size()\nsize += 1",
        "import nt_units\nown = nt_units.shelf.copied()\nown['a'] = 1\nshelf = nt_units.Shelf()\nshelf.unit = 1",
        "import nt_units\nthing = nt_units.hand_out()\nprint(thing.unit)",
        "import nt_units\nfor thing in nt_units.THINGS:\n    print(thing)",
        "exec('unit = 3')",
        "import nt_units\nshow = nt_units.checks('even')\nfound = nt_units.checks('odd')(3)",
    ],
)
def test_using_a_library_changes_nothing(text, program):
    program(text)
    assert not change_of("nt_units")


def test_tables_count_of_libraries_whose_settings_are_known(program):
    program("import nt_units\nnt_units.use('a')\nnt_units.config['a'] = 1\nnt_units.core.options['a'] = 1")
    assert not patch_of("nt_units")
    program("import nt_units\nnt_units.core.POWERS[0] = 1")
    assert patch_of("nt_units")


def test_modules_that_come_later_count(program):
    assert not change_of("nt_units")
    program("import nt_units\nnt_units.set_words(3)")
    assert change_of("nt_units")


def test_of_sources_that_are_no_longer_what_ran_the_code_counts(program, tmp_path):
    module = program("import math")
    (tmp_path / f"{module.__name__}.py").write_text("import nt_units\nnt_units.set(3")
    assert not change_of("nt_units")
    module = program("import nt_units")
    (tmp_path / f"{module.__name__}.py").write_text("x = 1")
    assert change_of("nt_units") == f"maybe: {module.__name__}.py may have been written to since it was run"


def test_a_setter_whose_getter_tells_is_in_keys(program, monkeypatch):
    library = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("nt_units", None))
    library.set_words = library.set_table = library.set_parser = len
    library.get_words = lambda: "a"
    library.get_parser = object  # which is nothing that a key could hold
    monkeypatch.setitem(sys.modules, "nt_units", library)
    program("import nt_units\nnt_units.set_words('a')")
    assert not change_of("nt_units")
    for name in ("set_table", "set_parser"):
        module = program(f"import nt_units\nnt_units.{name}('a')")
        assert change_of("nt_units").startswith(module.__name__)
        del sys.modules[module.__name__]


LIBRARY = """
import contextlib

default = 1
TABLE = {}
_words = []

def week_starts_at(day):
    global default
    default = day

def mark(name, value):
    TABLE[name] = value

def learn(word):
    _words.append(word)

@contextlib.contextmanager
def rounding(digits):
    global default
    before, default = default, digits
    yield
    default = before

class Rounding:
    def __init__(self, digits):
        self.digits = digits

    def __enter__(self):
        TABLE["digits"] = self.digits

    def __exit__(self, *error):
        pass

class Checker:
    checks = {}

    @classmethod
    def checked(cls, name):
        return cls._checked(name)

    @classmethod
    def _checked(cls, name):
        def put(function):
            cls.checks[name] = function
            return function
        return put

class Words:
    def __init__(self):
        self.words = []

    def know(self, word):
        self._know(word)

    def _know(self, word):
        self.words.append(word)

    def knows(self, word):
        return word in self.words

    def set_name(self, name):
        return self

    add = use = set_name

class Alone(Words):
    one = None

    def __new__(cls):
        cls.one = cls.one or super().__new__(cls)
        return cls.one

class Registered:
    known = {}

    def __init_subclass__(cls):
        TABLE[cls.__name__] = cls

class _Meta(type):
    known = {}

    def __new__(meta, name, bases, space):
        made = super().__new__(meta, name, bases, space)
        meta.known[name] = made
        return made

class Listed(metaclass=_Meta):
    pass

class Counted:
    def __init_subclass__(cls):
        cls.size = len(cls.__name__)

class _Plain(type):
    def __new__(meta, name, bases, space):
        return super().__new__(meta, name, bases, space)

    def __init__(cls, name, bases, space):
        cls.size = 1

class Measured(metaclass=_Plain):
    pass

shared = Words()

def look(word):
    return shared.knows(word)

def sort_in_place(rows):
    rows.sort()

def load():
    import nt_with_effects
    nt_with_effects.work()
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library with functions whose names do not say that they change what it keeps."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "nt_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield importlib.import_module("nt_library")
    del sys.modules["nt_library"]


@pytest.mark.parametrize(
    "text",
    [
        "import nt_library\nnt_library.week_starts_at(3)",
        "from nt_library import mark as m\nm('a', 1)",
        "import nt_library as nl\ndef main():\n    nl.learn('a')",
        "import nt_library\nwith nt_library.rounding(3):\n    pass",
        "from nt_library import Rounding\nwith Rounding(3):\n    pass",
        "import nt_library\n@nt_library.Checker.checked('a')\ndef check(x):\n    return x",
        "import nt_library\nnt_library.shared.know('a')",
        "from nt_library import shared\nshared.know('a')",
        "from nt_library import Alone\nAlone().set_name('a')",
        "import nt_library\nnt_library.TABLE.popitem() if nt_library.TABLE else None\nnt_library.TABLE.clear()",
        "from nt_library import Registered\nclass Own(Registered):\n    pass",
        "import nt_library\ndef main():\n    class Own(nt_library.Listed):\n        pass",
        "import nt_library\nOwn = type('Own', (nt_library.Listed,), {})",
        "import types\nimport nt_library\ndef main():\n    types.new_class('Own', (nt_library.Registered,))",
        "import dataclasses as d\nimport nt_library\nOwn = d.make_dataclass('Own', [], bases=(nt_library.Listed,))",
        "from unittest import mock\nwith mock.patch('nt_library.default', 3):\n    pass",
        "from unittest.mock import patch\npatch.dict('nt_library.TABLE', {'a': 1})",
    ],
)
def test_what_a_call_changes_is_told_by_its_code(text, program, library):
    module = program(text)
    assert change_of("nt_library").startswith(f"{module.__name__}.py:")


@pytest.mark.parametrize(
    "text",
    [
        "import nt_library\nday = 3\nnt_library.look('a')",
        "import nt_library\nrows = [2, 1]\nnt_library.sort_in_place(rows)",
        "import nt_library\nown = nt_library.Words()\nown.know('a')",
        "import nt_library\nnt_library.shared.knows('a')",
        "import nt_library\nown = nt_library.Words().set_name('a')",
        "from nt_library import Words\nWords().add('a').use('b')\nWords().words = []",
        "from nt_library import Counted\nclass Own(Counted):\n    pass",
        "from nt_library import Measured\nclass Own(Measured):\n    pass",
        "text = 'nt_library.default'\nprint(text)\n'nt_library.default'.replace('.', '/')",
        "import nt_library\n@nt_library.look\ndef look():\n    pass",
        "import nt_library\nif False:\n    nt_library.load()",
        "import nt_library\nnt_library.no_such_thing.at_all if False else None",
    ],
)
def test_calls_that_change_nothing_that_stays(text, program, library, tmp_path):
    (tmp_path / "nt_with_effects.py").write_text("")
    program(text)
    assert not change_of("nt_library")
    assert "nt_with_effects" not in sys.modules  # code that is looked at imports nothing


def test_functions_that_use_such_a_library_are_computed_each_time(program, tmp_path):
    toolz = pytest.importorskip("toolz")

    @nectar.memo
    def first(values):
        return toolz.first(values)

    def kept():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first([1, 2])
        nectar.session.current().settle()
        return first.check_call_in_cache([1, 2])

    with mock.patch("nectar.session._chosen", None):
        nectar.enable(home=tmp_path / "home", reserve=0)
        try:
            assert kept()
            program("import toolz\ndef later():\n    toolz.curry.register('a', len)")
            assert not kept()
        finally:
            nectar.disable()


def test_patches_by_name_count_for_libraries_whose_settings_are_known(program):
    program("from unittest import mock\nmock.patch('decimal.getcontext')")
    assert patch_of("decimal")
    assert not patch_of("json")


def test_patches_are_found_however_their_letters_are_written(program):
    program("from unittest import mock\nmock.\uff50atch('decimal.getcontext')")
    assert patch_of("decimal")
    with pytest.raises(nectar.UncacheableError, match="decimal"):
        nectar.fingerprint(lambda x: decimal.Decimal(x))


STANDARD = (
    ("import json\njson._default_encoder = json.JSONEncoder(indent=2)", "json"),
    ("import json\njson._default_encoder.indent = 2", "json"),
    ("import calendar as months\nmonths.month_name = ['a']", "calendar"),
    ("import textwrap\ndef main():\n    textwrap._whitespace = ' '", "textwrap"),
    ("import email.charset\nemail.charset.CHARSETS['x'] = (1, 2, None)", "email"),
)


@pytest.mark.parametrize(("text", "module"), STANDARD)
def test_assignments_to_data_of_the_standard_library_are_found(text, module, program, monkeypatch):
    import calendar
    import email.charset
    import json

    monkeypatch.setattr(json, "_default_encoder", json.JSONEncoder())
    monkeypatch.setattr(calendar, "month_name", calendar.month_name)
    monkeypatch.setattr(textwrap, "_whitespace", textwrap._whitespace)
    monkeypatch.setattr(email.charset, "CHARSETS", dict(email.charset.CHARSETS))
    loaded = program(text)
    assert assignment_to(module).startswith(f"{loaded.__name__}.py:")


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import json\nx = json.dumps([])\nassert json.loads == json.loads", "json"),
        ("import math\npi = math.pi\nmath.nt_pi = 3", "math"),  # nobody but the program reads it
        ("import json\nold = json.JSONEncoder.default\njson.JSONEncoder.default = old", "json"),  # code is in keys
    ],
)
def test_what_keys_hold_anyway_is_no_assignment_to_the_standard_library(text, module, program):
    program(text)
    assert assignment_to(module) == ""


def test_a_function_that_uses_changed_data_of_the_standard_library_is_refused(program, monkeypatch):
    import json

    monkeypatch.setattr(json, "_default_encoder", json.JSONEncoder())
    used = "def f(x):\n    return json.dumps(x)\ndef g(x):\n    return x + 1"
    loaded = program(f"import json\njson._default_encoder.nt_note = 1\n{used}")
    with pytest.raises(nectar.UncacheableError, match=r"changes what json keeps .*\.py:2"):
        nectar.fingerprint(loaded.f)
    assert nectar.fingerprint(loaded.g)


def test_a_table_that_a_function_of_the_application_changes(program):
    """The library's table is handed to a function that changes what it is given, also if that lies in a module."""
    program("import nt_units\ndef install(table):\n    table['a'] = 1\ninstall(nt_units.TABLE)")
    assert change_of("nt_units").endswith(":4")


def test_a_table_that_a_function_of_the_application_reads(program):
    program("import nt_units\ndef show(table):\n    return len(table)\nshow(nt_units.TABLE)\nprint(nt_units.TABLE)")
    assert change_of("nt_units") == ""


class Registry:
    """What a library gives to register things with, where the things lie in a table of the module."""

    def register(self, name):
        def take(function):
            put(name, function)
            return function

        return take

    def show(self, name):
        return lambda function: function


def put(name, function):
    KEPT[name] = function


def make_registry():
    return Registry()


@pytest.mark.parametrize(("method", "changes"), [("register", True), ("show", False)])
@pytest.mark.parametrize("made", ["make_registry()", "Registry()"])
def test_decorators_of_objects_that_a_library_makes(method, changes, made, program):
    program(f"import nt_units\nkinds = nt_units.{made}\n@kinds.{method}('a')\ndef a():\n    pass")
    assert bool(change_of("nt_units")) is changes


INNER = {
    "assigns": "def t(d): d['a'] = 1",
    "calls": "def t(d): d.update(a=1)",
    "adds": "def t(d): d |= {'a': 1}",
    "deletes": "def t(d): del d['a']",
    "of an attribute": "def t(d): d.held['a'] = 1",
    "by another name": "def t(d):\n        e = d\n        e['a'] = 1",
    "hands on": "def t(d): setattr(d, 'a', 1)",
    "a lambda": "t = lambda d: d.update(a=1)",
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_a_function_within_a_function_changes_what_it_is_given(program, inner):
    program(f"import nt_units\ndef change():\n    {inner}\n    t(nt_units.TABLE)")
    assert change_of("nt_units")


@pytest.mark.parametrize("inner", ["def t(d): return d['a']", "t = lambda d: d['a'] + 1", "def t(d): print(len(d))"])
def test_a_function_within_a_function_that_reads_changes_nothing(program, inner):
    program(f"import nt_units\ndef look():\n    {inner}\n    return t(nt_units.TABLE)")
    assert not change_of("nt_units")


@pytest.mark.parametrize("sign", ["=", "+=", "|=", "//=", "**=", "<<=", ">>=", "@="])
def test_settings_of_the_standard_library_are_changed_in_place(program, sign):
    program(f"import json\ndef change():\n    json._default_encoder.key_separator {sign} '='")
    assert assignment_to("json")


@pytest.mark.parametrize("sign", ["==", "!=", "<=", ">="])
def test_comparing_changes_nothing(program, sign):
    program(f"import json\ndef same(): return json._default_encoder.key_separator {sign} '='")
    assert not assignment_to("json")


def test_a_function_that_becomes_a_method_of_one_object_is_a_change(program):
    program("import json\ndef change():\n    json._default_encoder.default = len")
    assert assignment_to("json")
