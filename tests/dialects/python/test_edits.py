"""What people do to their programs between runs: what must be computed again is, and nothing else.

Every run is a process of its own; the outcome of each call is what the last run says of it.
"""

import getpass
import os
import shutil

import pytest
from tests.dialects.python.programs import OUTCOMES, Program

DEEP = """
FACTOR = 2

def scale(x):
    return x * FACTOR

def unrelated(x):
    return x - 1
"""
MIDDLE = """
import deep

def middle(x):
    return deep.scale(x) + 1

def beside(x):
    return deep.unrelated(x)
"""
SCRIPT = f"""
import json
import middle
import nectar

@nectar.memo
def reaches(x):
    return middle.middle(x)

@nectar.memo
def does_not(x):
    return middle.beside(x)
{OUTCOMES}
if __name__ == "__main__":
    print(json.dumps([outcomes(reaches, 1), outcomes(does_not, 1)]))
"""
ALL_REUSED = [[3, "reaches reused"], [0, "does_not reused"]]


@pytest.fixture
def known(program):
    """A program that has run once."""
    program.write(deep=DEEP, middle=MIDDLE, script=SCRIPT)
    assert program.told("script") == [[3, "reaches computed"], [0, "does_not computed"]]
    return program


def test_nothing_is_computed_again_in_another_process(known):
    assert known.told("script") == ALL_REUSED


def test_a_helper_two_modules_away_changes_exactly_the_calls_that_reach_it(known):
    known.write(deep=DEEP.replace("x * FACTOR", "x * FACTOR * 10"))
    assert known.told("script") == [[21, "reaches computed"], [0, "does_not reused"]]
    known.write(deep=DEEP.replace("x - 1", "x - 2"))
    assert known.told("script") == [[3, "reaches reused"], [-1, "does_not computed"]]


def test_a_global_of_a_helper_counts(known):
    known.write(deep=DEEP.replace("FACTOR = 2", "FACTOR = 5"))
    assert known.told("script") == [[6, "reaches computed"], [0, "does_not reused"]]


def test_an_edit_undone_finds_the_old_result(known):
    known.write(deep=DEEP.replace("FACTOR = 2", "FACTOR = 5"))
    known.told("script")
    known.write(deep=DEEP)
    assert known.told("script") == ALL_REUSED


def test_comments_formatting_docstrings_and_annotations_do_not_count(known):
    known.write(
        deep='"""A module."""\n\n\n\nFACTOR: int = (\n    2\n)\n\ndef scale(x: int) -> int:\n    """Scales."""\n'
        "    # twice\n    return (x\n            * FACTOR)\n\n\ndef unrelated(x): return x - 1\n",
        middle="from __future__ import annotations\n" + MIDDLE.replace("+ 1", "+ 1  # one more"),
    )
    assert known.told("script") == ALL_REUSED


def test_renaming_locals_does_not_count(known):
    known.write(
        deep=DEEP.replace("def scale(x):\n    return x * FACTOR", "def scale(y):\n    z = y * FACTOR\n    return z")
    )
    assert known.told("script") == ALL_REUSED


def test_unrelated_edits_do_not_count(known):
    known.write(
        deep="import os\n" + DEEP + "\nOTHER = 7\n\ndef third(x):\n    return OTHER\n\nclass Fourth:\n    pass\n",
        middle=MIDDLE + "\ndef more():\n    return deep.third(1)\n",
        script=SCRIPT.replace("import json\n", "import json\nimport random\nSEED = random.random()\n"),
    )
    assert known.told("script") == ALL_REUSED


def test_moving_a_helper_to_another_module_does_not_count(known):
    known.write(
        deep="from elsewhere import scale\n\ndef unrelated(x):\n    return x - 1\n",
        elsewhere="FACTOR = 2\n\ndef scale(x):\n    return x * FACTOR\n",
    )
    assert known.told("script") == ALL_REUSED


def test_moving_and_renaming_the_memoised_function_does_not_count(known):
    known.write(
        place="import middle\nimport nectar\n\n\n@nectar.memo\ndef renamed(x):\n    return middle.middle(x)\n",
        script=f"import json\nfrom place import renamed\n{OUTCOMES}\nprint(json.dumps(outcomes(renamed, 1)))\n",
    )
    assert known.told("script") == [3, "renamed reused"]


def test_imported_functions_are_followed_however_they_are_imported(program):
    program.write(
        helper="def help_(x):\n    return x + 1\n",
        package_like="from helper import *\nfrom helper import help_ as other\n",
        script=f"""
import json
import helper as h
import package_like
from helper import help_
from helper import help_ as renamed
import nectar

@nectar.memo
def by_name(x): return help_(x)
@nectar.memo
def by_other_name(x): return [renamed(x)]
@nectar.memo
def by_module(x): return (h.help_(x), 0)[:1]
@nectar.memo
def by_star(x): return str(package_like.help_(x))
@nectar.memo
def inside(x):
    from helper import help_ as late
    return {{"late": late(x)}}
@nectar.memo
def none_of_them(x): return x
{OUTCOMES}
calls = by_name, by_other_name, by_module, by_star, inside, none_of_them
print(json.dumps([outcomes(call, 1)[1] for call in calls]))
""",
    )
    names = ["by_name", "by_other_name", "by_module", "by_star", "inside"]
    assert program.told("script") == [f"{name} computed" for name in [*names, "none_of_them"]]
    assert program.told("script") == [f"{name} reused" for name in [*names, "none_of_them"]]
    program.write(helper="def help_(x):\n    return x + 2\n")
    assert program.told("script") == [*(f"{name} computed" for name in names), "none_of_them reused"]


def test_closures_count(program):
    text = f"""
import json
import nectar

def made(n, helper):
    @nectar.memo
    def inner(x):
        return helper(x) + n
    return inner

def plus(x): return x + 1
{OUTCOMES}
print(json.dumps([outcomes(made(1, plus), 1), outcomes(made(2, plus), 1), outcomes(made(1, abs), 1)]))
"""
    program.write(script=text)
    assert program.told("script") == [[3, "inner computed"], [4, "inner computed"], [2, "inner computed"]]
    assert program.told("script") == [[3, "inner reused"], [4, "inner reused"], [2, "inner reused"]]
    program.write(script=text.replace("x + 1", "x + 10"))
    assert program.told("script") == [[12, "inner computed"], [13, "inner computed"], [2, "inner reused"]]


def test_nested_memoised_functions(program):
    text = f"""
import json
import nectar

def helper(x): return x + 1

@nectar.memo
def inner(x):
    return helper(x)

@nectar.memo
def outer(x):
    return inner(x) * 10

@nectar.memo
def other(x):
    return inner(x) * 100
{OUTCOMES}
print(json.dumps([outcomes(outer, 1), outcomes(other, 1)]))
"""
    program.write(script=text)
    assert program.told("script") == [
        [20, "outer computed", "inner computed"],
        [200, "other computed", "inner reused"],
    ], "the inner result is reused by the second outer function"
    assert program.told("script") == [[20, "outer reused"], [200, "other reused"]]
    program.write(script=text.replace("x + 1", "x + 2"))
    assert program.told("script") == [
        [30, "outer computed", "inner computed"],
        [300, "other computed", "inner reused"],
    ]
    program.write(script=text.replace("inner(x) * 10\n", "inner(x) * 11\n"))
    assert program.told("script") == [[22, "outer computed", "inner reused"], [200, "other reused"]]


def test_no_version_has_to_be_bumped_by_hand_and_one_may_be(program):
    text = f"""
import json
import nectar

@nectar.memo(version=1)
def f(x):
    return x
{OUTCOMES}
print(json.dumps(outcomes(f, 1)))
"""
    program.write(script=text)
    assert program.told("script") == [1, "f computed"]
    assert program.told("script") == [1, "f reused"]
    program.write(script=text.replace("return x", "return -x"))
    assert program.told("script") == [-1, "f computed"], "without a new version"
    program.write(script=text.replace("version=1", "version='1'"))
    assert program.told("script") == [1, "f computed"], "a new version, without new code"
    program.write(script=text)
    assert program.told("script") == [1, "f reused"]


def test_methods_and_the_classes_they_belong_to(program):
    text = f"""
import json
import nectar

class Base:
    rate = 2
    def rated(self, x): return x * self.rate

class Model(Base):
    def __init__(self, bias): self.bias = bias

    @nectar.memo
    def predict(self, x): return self.rated(x) + self.bias

    @classmethod
    @nectar.memo
    def made(cls, x): return cls.rate + x

    @staticmethod
    @nectar.memo
    def free(x): return x + 1
{OUTCOMES}
model = Model(1)
told = [outcomes(model.predict, 1), outcomes(Model.made, 1), outcomes(Model.free, 1), outcomes(Model(1).predict, x=1)]
model.bias = 5
print(json.dumps([*told, outcomes(model.predict, 1)]))
"""
    program.write(script=text)
    assert program.told("script") == [
        [3, "predict computed"], [3, "made computed"], [2, "free computed"],
        [3, "predict reused"], [7, "predict computed"],
    ]  # fmt: skip
    assert program.told("script") == [
        [3, "predict reused"], [3, "made reused"], [2, "free reused"],
        [3, "predict reused"], [7, "predict reused"],
    ]  # fmt: skip
    program.write(script=text.replace("rate = 2", "rate = 3"))
    assert program.told("script") == [
        [4, "predict computed"], [4, "made computed"], [2, "free reused"],
        [4, "predict reused"], [8, "predict computed"],
    ]  # fmt: skip
    program.write(script=text.replace("x * self.rate", "x * self.rate * 2"))
    again = program.told("script")
    assert again[0] == [5, "predict computed"]
    assert again[2] == [2, "free reused"]


def test_a_class_of_an_argument_is_part_of_the_call(program):
    kinds = "LEVEL = 1\n\nclass Kind:\n    def get(self):\n        return LEVEL\n"
    program.write(
        kinds=kinds,
        script=f"""
import json
import kinds
import nectar

@nectar.memo
def f(x):
    return x.get()
{OUTCOMES}
first = outcomes(f, kinds.Kind())
kinds.LEVEL += 10
print(json.dumps([first, outcomes(f, kinds.Kind())]))
""",
    )
    assert program.told("script") == [[1, "f computed"], [11, "f computed"]]
    assert program.told("script") == [[1, "f reused"], [11, "f reused"]]
    program.write(kinds=kinds.replace("return LEVEL", "return -LEVEL"))
    assert program.told("script") == [[-1, "f computed"], [-11, "f computed"]]
    program.write(kinds=kinds.replace("LEVEL = 1", "LEVEL = 2"))
    assert program.told("script") == [[2, "f computed"], [12, "f computed"]]


def test_the_same_keys_on_another_machine(program, tmp_path):
    """Another home, user, folder, seed of hashes and name of the script; only the store is shared."""
    program.write(
        deep=DEEP,
        middle=MIDDLE,
        script=SCRIPT.replace(
            'if __name__ == "__main__":',
            """
class Setting:
    def __init__(self): self.names = {"a", "b", "c", "d"}

@nectar.memo
def of_many(setting, table, kind=Setting):
    return [len(setting.names), sorted(table), isinstance(setting, kind)]

if __name__ == "__main__":""",
        ).replace(
            "outcomes(does_not, 1)]))",
            "outcomes(does_not, 1), outcomes(of_many, Setting(), {'x': {1.5}, 'y': (None, 'e')})]))",
        ),
    )
    first = program.told("script", PYTHONHASHSEED="1")
    assert [row[-1].split()[1] for row in first] == ["computed"] * 3
    elsewhere = Program(tmp_path / "some" / "where else", program.home)
    for name in ("deep", "middle"):
        shutil.copy(program.folder / f"{name}.py", elsewhere.folder)
    shutil.copy(program.folder / "script.py", elsewhere.folder / "another_name.py")
    user = {"HOME": str(tmp_path / "nobody"), "USER": "nobody", "LOGNAME": "nobody", "TZ": "Asia/Tokyo"}
    assert getpass.getuser() != "nobody" or "USER" not in os.environ
    for seed in ("2", "77"):
        told = elsewhere.told("another_name", PYTHONHASHSEED=seed, **user)
        assert told == [[*row[:-1], row[-1].replace("computed", "reused")] for row in first]
    optimised = elsewhere.told("another_name", PYTHONOPTIMIZE="2", PYTHONHASHSEED="3")
    assert [row[-1].split()[1] for row in optimised] == ["reused"] * 3


def test_a_function_typed_into_a_notebook_is_known_to_a_script(program):
    program.write(
        script=f"""
import json
import nectar

SOURCE = '''
def helper(x):
    return x + 1

@nectar.memo
def f(x):
    return helper(x)
'''
scope = {{"nectar": nectar, "__name__": "__main__"}}
exec(compile(SOURCE, "<ipython-input-1>", "exec"), scope)

def helper(x):
    return x + 1

@nectar.memo
def f(x):
    return helper(x)
{OUTCOMES}
print(json.dumps([outcomes(scope["f"], 1), outcomes(f, 1)]))
"""
    )
    assert program.told("script") == [[2, "f computed"], [2, "f reused"]]
