"""The program that `nectar demo` shows, and changes to it, each with what is promised of its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PROGRAM: Final[Mapping[str, str]] = {
    "sales.py": '''\
from cleaning import clean

RATES = {"EUR": 1.0, "USD": 0.92}
TEST_SHOPS = {"demo", "sandbox", "training"}

def discount_of(percent):
    def discount(amount):
        return amount * (100 - percent) / 100
    return discount

discount = discount_of(5)

def turnover(orders):
    """Adds up the orders of all real shops, in euros."""
    total = 0.0
    for order in orders:
        if order["shop"] not in TEST_SHOPS:
            total += discount(clean(order) * RATES[order["currency"]])
    return total
''',
    "cleaning.py": """\
from units import to_pieces

def clean(order):
    return max(0, to_pieces(order["amount"], order["unit"])) * order["price"]
""",
    "units.py": """\
DOZEN = 12

def to_pieces(amount, unit):
    if unit == "dozen":
        return amount * DOZEN
    return amount
""",
}

REFORMATTED: Final = '''\
def turnover(
    orders,
):
    """Adds up the orders of all real shops, in euros."""

    total = 0.0  # euros
    for order in orders:
        if (order["shop"]) not in TEST_SHOPS:
            total += discount(
                clean(order) * RATES[order["currency"]],
            )
    return total
'''

Edit = tuple[str, str, str]  # file, text that is there once, text to put in its place


@dataclass(frozen=True, slots=True)
class Variant:
    """One change to the program.

    promised: "same", "different" or "refused". named: a word that the explanation has to contain.
    renamed: files that get another name.
    """

    title: str
    promised: str
    edits: tuple[Edit, ...] = ()
    named: str = ""
    file: str = "sales.py"
    function: str = "turnover"
    renamed: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _function_text(file: str, name: str) -> str:
    """The text of a function at the end of a file of the program."""
    text = PROGRAM[file]
    return text[text.index(f"def {name}(") :]


BASELINE: Final = Variant("the program as it is", "same")

VARIANTS: Final = (
    Variant("run again in another process and folder", "same"),
    Variant("another PYTHONHASHSEED", "same", environment={"PYTHONHASHSEED": "4711"}),
    Variant("reformatted, with comments", "same", (("sales.py", _function_text("sales.py", "turnover"), REFORMATTED),)),
    Variant(
        "a local variable renamed",
        "same",
        (
            ("sales.py", "    total = 0.0\n", "    summe = 0.0\n"),
            ("sales.py", "            total += ", "            summe += "),
            ("sales.py", "    return total\n", "    return summe\n"),
        ),
    ),
    Variant("docstring rewritten", "same", (("sales.py", "Adds up the orders of all real shops", "Total sales"),)),
    Variant(
        "annotations added", "same", (("sales.py", "def turnover(orders):", "def turnover(orders: list) -> float:"),)
    ),
    Variant(
        "an unrelated function added beside it", "same", (("sales.py", "RATES =", "def other():\n    pass\n\nRATES ="),)
    ),
    Variant("the file renamed", "same", file="turnovers.py", renamed={"sales.py": "turnovers.py"}),
    Variant(
        "a helper two modules away edited",
        "different",
        (("units.py", "amount * DOZEN", "amount + DOZEN"),),
        "to_pieces",
    ),
    Variant("a constant two modules away", "different", (("units.py", "DOZEN = 12", "DOZEN = 13"),), "13"),
    Variant("one value in a global dict", "different", (("sales.py", '"USD": 0.92', '"USD": 0.93'),), "0.93"),
    Variant("a value captured by a closure", "different", (("sales.py", "discount_of(5)", "discount_of(6)"),), "6"),
    Variant("a literal in the function itself", "different", (("sales.py", "total = 0.0", "total = 1.0"),), "1.0"),
    Variant(
        "a helper that reads the clock",
        "refused",
        (
            ("units.py", "DOZEN = 12", "import time\n\nDOZEN = 12"),
            ("units.py", "    return amount\n", "    return amount * time.time()\n"),
        ),
        "time.time",
    ),
    Variant(
        "a helper that reads a file",
        "refused",
        (("units.py", "    return amount\n", '    return amount * len(open("sizes.csv").read())\n'),),
        "open",
    ),
)


def source_of(variant: Variant) -> dict[str, str]:
    """The files of the program with the edits of a variant made, by name."""
    files = dict(PROGRAM)
    for name, old, new in variant.edits:
        if files[name].count(old) != 1:
            raise ValueError(f"the demo edit {variant.title!r} expects {old!r} once in {name}")
        files[name] = files[name].replace(old, new)
    return {variant.renamed.get(name, name): text for name, text in files.items()}
