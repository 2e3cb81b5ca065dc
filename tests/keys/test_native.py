"""What a program tells objects of native code may hold for the whole library, and counts as a change of it."""

import importlib
import itertools
import sys
import textwrap

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.keys.changes import change_of

_numbers = itertools.count()
LIBRARY = """
    import ctypes

    _holidays = set()
    class _Handle(ctypes.Structure):  # keeps its state in native code, and tells nobody
        _fields_ = [("number", ctypes.c_int)]

    class Calendar(object):
        thisown = property(lambda self: True, lambda self, value: None)
        fallbackName = property(lambda self: "", lambda self, value: None)
        def addHoliday(self, day):
            return _call(self, day)
        def close(self):
            return _call(self, None)
        def advance(self, days):
            return _call(self, days)
    class Table:
        def __init__(self):
            self.rows = []
        def add_row(self, row):
            self.rows.append(row)
    def _call(*given):
        return given
    def calendar():
        return Calendar()
    def table():
        return Table()
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Imports a module of the application with the given text, beside a library of proxies."""
    install(tmp_path, monkeypatch, "nt_proxies", {"nt_proxies.py": LIBRARY})
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def load(text):
        name = f"nt_native_{next(_numbers)}"
        made.append(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    forget("nt_proxies")
    for name in made:
        del sys.modules[name].__file__  # otherwise the next test finds it: code of a program that is in no list
        del sys.modules[name]


CHANGES = {
    "a captured object": "CAL = lib.Calendar()\nCAL.addHoliday(1)",
    "another name": "CAL = lib.Calendar()\nday = CAL\nday.advance(1)",
    "a word that says nothing": "CAL = lib.Calendar()\nCAL.advance(1)",
    "at once": "lib.Calendar().addHoliday(1)",
    "by a function": "CAL = lib.calendar()\nCAL.addHoliday(1)",
    "for each": "for each in [lib.Calendar()]:\n    each.addHoliday(1)",
    "in a list": "CAL = lib.Calendar()\n[CAL.advance(day) for day in range(3)]",
    "if": "CAL = lib.Calendar()\nCAL and CAL.advance(1)",
    "an attribute": "def rename(calendar):\n    calendar.fallbackName = 'a'",
    "of self": "class A:\n    def a(self):\n        self.cal = lib.Calendar()\n        self.cal.advance(1)",
}


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_what_may_hold_for_the_whole_library_is_a_change(text, program):
    program(f"import nt_proxies as lib\n{text}")
    assert change_of("nt_proxies")


FINE = {
    "asked": "CAL = lib.Calendar()\nday = CAL.advance(1)",
    "closed": "CAL = lib.Calendar()\nCAL.close()",
    "a class of Python": "TABLE = lib.Table()\nTABLE.add_row(1)\nTABLE.rows = []",
    "something else": "rows = []\nrows.append(lib.Calendar())\nclass A:\n    pass\na = A()\na.name = 1",
    "of self": "class A:\n    def __init__(self):\n        self.fallbackName = 1",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_other_calls_are_none(text, program):
    program(f"import nt_proxies as lib\n{text}")
    assert change_of("nt_proxies") == ""


def test_functions_that_use_the_library_are_refused(program):
    found = program("import nt_proxies as lib\nlib.Calendar().addHoliday(1)\ndef f(x):\n    return lib.calendar()")
    with pytest.raises(nectar.UncacheableError, match="the program changes what nt_proxies keeps"):
        nectar.fingerprint(found.f)


USUAL = {
    "numpy": "rng = numpy.random.default_rng(1); rng.shuffle([1]); a = numpy.zeros(2); a.sort(); a.shape = (1, 2)",
    "pandas": "df = pandas.DataFrame({'a': [1]}); df.insert(0, 'b', 1); df.columns = ['b', 'a']; df.index.name = 'n'",
    "polars": "df = polars.DataFrame({'a': [1]}); df.insert_column(0, polars.Series([1])); df.columns = ['x', 'c']",
    "pyarrow": "t = pyarrow.table({'a': [1]}); t.validate(); pyarrow.BufferOutputStream().write(b'a')",
    "lxml": """
from lxml import etree
root = etree.Element('a')
root.set('a', 'b')
root.append(etree.Element('b'))
root.text = 'a'
""",
    "PIL": """
from PIL import Image, ImageDraw
image = Image.new('L', (2, 2))
image.putpixel((0, 0), 1)
ImageDraw.Draw(image).line([0, 0, 1, 1])
""",
    "pydantic": """
class A(pydantic.BaseModel):
    a: int
A.model_rebuild()
a = A(a=1)
a.a = 2
""",
    "h5py": "f = h5py.File.in_memory(); f.create_group('a'); f.attrs['b'] = 1; f.flush()",
    "sklearn": """
from sklearn.linear_model import LinearRegression
model = LinearRegression()
model.fit([[1.0], [2.0]], [1.0, 2.0])
model.alpha = 1
""",
    "scipy": "import scipy.spatial; tree = scipy.spatial.cKDTree([[1.0, 2.0]]); tree.query([1.0, 2.0])",
    "regex": "P = regex.compile('a'); print(P.match('a'))",
    "msgpack": "packer = msgpack.Packer(); print(packer.pack(1))",
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_programs_change_no_library(name, program):
    pytest.importorskip(name)
    before = change_of(name)  # other tests of this process are programs, too
    program(f"import {name}\n{USUAL[name]}")
    assert change_of(name) == before


QUANTLIB = (
    "S = ql.Settings.instance()\nS.evaluationDate = ql.Date(1, 1, 2024)",
    "S = ql.Settings.instance()\ndef main():\n    S.includeReferenceDateEvents = True",
    "CAL = ql.TARGET()\nCAL.addHoliday(ql.Date(3, 1, 2024))",
    "IDX = ql.Euribor6M()\nIDX.addFixing(ql.Date(3, 1, 2024), 0.03, True)",
    "from QuantLib import *\nSettings.instance().evaluationDate = Date(1, 1, 2024)",
)


@pytest.mark.parametrize("text", QUANTLIB)
def test_settings_of_quantlib(text, program):
    ql = pytest.importorskip("QuantLib")
    try:
        program(f"import QuantLib as ql\n{text}")
        assert change_of("QuantLib")
    finally:
        ql.Settings.instance().resetEvaluationDate()
        ql.Settings.instance().includeReferenceDateEvents = False
        ql.TARGET().resetAddedAndRemovedHolidays()
        ql.IndexManager.instance().clearHistories()


def test_a_program_that_only_computes_with_quantlib(program):
    pytest.importorskip("QuantLib")
    program("import QuantLib as ql\nDAY = ql.TARGET().advance(ql.Date(3, 1, 2024), 5, ql.Days)\nprint(DAY)")
    assert change_of("QuantLib") == ""
