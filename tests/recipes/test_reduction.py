"""Of modules stays what captured code can get at; each line where it was, so that the code is the same."""

import textwrap

import pytest

from nectar.recipes.reduction import Given, Reached, reduced

CANARY = "hunter2canary"


def texts_of(names=(), imported=("etl",), reached=("etl",), **modules):
    given = {name.replace("__", "."): Given(textwrap.dedent(text), _package(name)) for name, text in modules.items()}
    return reduced(given, Reached(imported, reached, names))


def _package(name):
    return "pack" if name.startswith("pack") else ""


def kept(text, *names):
    """The lines that are left of a module, if code speaks of these names."""
    return texts_of(names, etl=text)["etl"].split("\n")


def test_what_is_not_reached_is_left_out_and_every_line_stays_where_it_was():
    text = f"""\
        import json  # {CANARY}
        PASSWORD = "{CANARY}"
        RATE = 2

        # the password is {CANARY}
        def connect():
            return PASSWORD

        def f(x):  # {CANARY}
            return scaled(x) * RATE

        def scaled(x):
            return x + 1

        class Unused:
            key = PASSWORD
    """
    lines = kept(text, "f")
    assert CANARY not in "".join(lines)
    assert {number: line for number, line in enumerate(lines, 1) if line.strip()} == {
        1: "import json", 3: "RATE = 2", 9: "def f(x):", 10: "    return scaled(x) * RATE", 12: "def scaled(x):",
        13: "    return x + 1",
    }  # fmt: skip
    assert len(lines) == len(textwrap.dedent(text).split("\n"))


@pytest.mark.parametrize(
    "line",
    ["register('x')", "CONFIG['a'] = 1", "x = register('x')", "@register\ndef g(): pass", "class C(Base): pass",
     "class C(metaclass=M): pass", "for i in range(3): pass", "try:\n    import fast\nexcept Exception:\n    fast = 1",
     "N += 1", "del N", "import numpy", "from lib import *", "class C:\n    x = run()", "def g(x=run()): pass",
     "if N:\n    M = 1", "__version__ = '1'", "def __getattr__(name): pass", "from __future__ import annotations",
     "with lock: pass", "setattr(a, 'b', 1)", "@lib.task(1)\ndef g(): pass"],
)  # fmt: skip
def test_what_is_run_when_a_module_is_imported_stays(line):
    text = f"{line}\ndef f(x):\n    return x\n"
    assert texts_of(["f"], etl=text)["etl"] == text


@pytest.mark.parametrize(
    "line",
    ["A = 1", "A: int = 1", "A, B = 1, [2]", "A = os.environ.get('X')", "def g(): run()", "A = {'a': lambda: run()}",
     "class C:\n    a = 1\n    def g(self): pass", "class C(Exception): pass", "@lru_cache(3)\ndef g(): pass",
     "@dataclass\nclass C:\n    a: int = 3", "if __name__ == '__main__':\n    main()", "'a text'", "pass",
     "if TYPE_CHECKING:\n    import other", "class C(NamedTuple):\n    a: int", "async def g(): pass"],
)  # fmt: skip
def test_what_only_binds_a_name_is_left_out(line):
    assert texts_of(["f"], etl=f"{line}\ndef f(x):\n    return x\n")["etl"].strip() == "def f(x):\n    return x"


@pytest.mark.parametrize(
    "use",
    ["A", "x.A", "getattr(x, 'A')", "lambda: A", "[A for _ in x]", "f'{A}'"],
)
def test_whatever_speaks_of_a_name_keeps_all_that_binds_it(use):
    text = f"A = 1\nA = 2\ndef f(x):\n    return {use}\n"
    assert texts_of(["f"], etl=text)["etl"] == text


def test_names_that_functions_are_given_to_keep_them():
    text = "REGISTRY = {}\ndef register(f): REGISTRY[1] = f\n@register\ndef g(x): pass\ndef f(x): return REGISTRY\n"
    assert kept(text, "f")[2:4] == ["@register", "def g(x): pass"]
    assert kept(text, "nothing") == ["", "", "", "", "", ""]


def test_subclasses_stay_with_a_class_that_is_spoken_of():
    text = "class A: pass\nclass B(A): pass\nclass C: pass\ndef f(x): return A\n"
    assert kept(text, "f")[:3] == ["class A: pass", "class B(A): pass", ""]


@pytest.mark.parametrize(
    "use", ["globals()[x]", "vars(x)", "eval(x)", "x.__dict__", "import_module(x)", "A.__subclasses__()"]
)
def test_code_that_can_get_at_anything_keeps_everything(use):
    text = f"A = 1  # a comment\ndef f(x):\n    return {use}\n"
    assert texts_of(["f"], etl=text)["etl"] == text


def test_functions_are_found_by_their_lines_as_well():
    text = "A = [lambda x: x]\nB = 1\n"
    code = compile(text, "", "exec").co_consts[0]
    found = reduced({"etl": Given(text, "", [code])}, Reached(["etl"], ["etl"]))
    assert found == {"etl": "A = [lambda x: x]\n\n"}


# several modules


def test_modules_that_only_unneeded_code_imports_are_left_out():
    found = texts_of(
        ["f"],
        etl="from vault import PASSWORD, limit\nimport unused\ndef f(x): return limit(x)\n"
        "def g(): return unused.h(PASSWORD)\n",
        vault=f"PASSWORD = '{CANARY}'\ndef limit(x): return x\n",
        unused="def h(x): return x\n",
    )
    assert found == {
        "etl": "from vault import limit\n\ndef f(x): return limit(x)\n\n",
        "vault": "\ndef limit(x): return x\n",
    }


def test_an_import_of_which_nothing_speaks_is_for_what_the_module_does():
    found = texts_of(["f"], etl="import plugins\ndef f(x): return x\n", plugins="print('here')\nA = 1\n")
    assert found == {"etl": "import plugins\ndef f(x): return x\n", "plugins": "print('here')\n\n"}


def test_packages_hand_on_what_is_asked_for():
    found = texts_of(
        ["f"],
        imported=["main"],
        reached=["main"],
        main="from pack import clean\ndef f(x): return clean(x)\n",
        pack="from .core import clean, secret\n",
        pack__core=f"def clean(x): return x\ndef secret(): return '{CANARY}'\n",
    )
    assert found["pack"] == "from .core import clean, secret\n" or "secret" not in found["pack"]
    assert CANARY not in "".join(found.values())


def test_modules_whose_functions_are_reached_by_other_ways_are_imported_as_before():
    found = texts_of(
        ["f", "g"],
        reached=["etl", "handlers"],
        etl="from registry import TABLE\nfrom handlers import g as unneeded_here\ndef f(x): return TABLE\n"
        "def h(): return unneeded_here\n",
        registry="TABLE = {}\ndef note(f): TABLE[1] = f\n",
        handlers="from registry import note\n@note\ndef g(x): return x\nKEY = 1\n",
    )
    assert found["etl"].startswith("from registry import TABLE\nfrom handlers import g as unneeded_here\n")
    assert found["handlers"] == "from registry import note\n@note\ndef g(x): return x\n\n"


def test_everything_stays_of_what_is_taken_with_a_star():
    found = texts_of(["f"], etl="from other import *\ndef f(x): return x\n", other="A = 1\ndef g(): pass\n")
    assert found["other"] == "A = 1\ndef g(): pass\n"


def test_statements_on_one_line_stay_together():
    assert kept("A = 1; B = 2\nC = 3\ndef f(x): return A\n", "f")[:2] == ["A = 1; B = 2", ""]


def test_text_that_is_no_code_stays_as_it_is():
    assert texts_of(["f"], etl="%magic\n") == {"etl": "%magic\n"}
