"""Programs that change what a library keeps are found in their sources."""

import importlib
import itertools
import sys
import textwrap
import warnings
from unittest import mock

import pytest

import nectar
from nectar.keys.changes import change_of

_numbers = itertools.count()


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Imports a module of the application with the given text, beside a library that takes everything."""
    monkeypatch.syspath_prepend(str(tmp_path))
    library = mock.MagicMock(name="nt_units")
    for name in ("nt_units", "nt_units.core"):
        monkeypatch.setitem(sys.modules, name, library)
    made = []

    def load(text):
        name = f"nt_program_{next(_numbers)}"
        made.append(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    for name in made:
        sys.modules.pop(name, None)


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
        "import nt_units\nx = nt_units.parse('3 m')\nx.unit = 'km'\nx.add(3)",
        "import nt_units\nprint(nt_units.convert(3))\nnt_units.show(3)\nnt_units.save('a', 3)\nnt_units.write('a')",
        "from nt_units import Table\nrows = Table()\nrows['a'] = 1\nrows.append(3)",
        "import nt_units\n@nt_units.define\nclass A:\n    pass",
        "import nt_units\nnt_units = {}\nsettings = {}\nsettings['nt_units'] = 1",
        "import nt_units\nwith nt_units.open('a') as file:\n    pass",
        "import nt_units\nfound = nt_units.use('a')",
        "import nt_units\nnt_units.config.set({'a': 1})\nnt_units.options['a'] = 1",  # which stand in keys
        "from nt_units import config\nconfig['a'] = 1",
        "text = 'import nt_units; nt_units.set_words(3)'",
        "nt_units = 3",
    ],
)
def test_using_a_library_changes_nothing(text, program):
    program(text)
    assert not change_of("nt_units")


def test_modules_that_come_later_count(program):
    assert not change_of("nt_units")
    program("import nt_units\nnt_units.set_words(3)")
    assert change_of("nt_units")


def test_sources_that_cannot_be_read_are_passed_over(program, tmp_path):
    module = program("import nt_units")
    (tmp_path / f"{module.__name__}.py").write_text("import nt_units\nnt_units.set(3")
    assert not change_of("nt_units")


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
