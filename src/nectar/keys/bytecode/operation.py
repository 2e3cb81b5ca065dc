"""The vocabulary of symbolic execution: kinds of values, and operations on them.

Values are numbers; two lists beside each other give the kind and the data of each. Data by kind: PARAM position,
CONST index into co_consts, GLOBAL and FREE name, CELL index of the variable, CELLS numbers of cells, RESULT the
operation that gives it, CAUGHT (handler, position on its stack), none for the others.
"""

from __future__ import annotations

import sys
from typing import Final

from msgspec import Struct

PARAM, CONST, GLOBAL, FREE, CELL, CELLS, RESULT, MERGE, UNBOUND, NULL, CAUGHT = range(11)
# Newer versions have new instructions, and give another meaning to some that kept their names.
KNOWN_PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
PYTHON: Final = sys.version_info[:2]
SINCE_312: Final = PYTHON >= (3, 12)
SINCE_313: Final = PYTHON >= (3, 13)


class UnknownInstruction(Exception):
    """The bytecode means something that there is no rule for; the message says what, to be read after a colon."""


# Values of this package are plain slotted classes: the fields of a NamedTuple take several times as long to read, and
# frozen ones as long to make, and there is nothing a fingerprint does more often.


class Operation(Struct, eq=False):
    """One effect: what is done, with a static argument, to which values; results are numbered from `result`."""

    name: str
    arg: object
    operands: tuple[int, ...]
    result: int
    results: int
    offset: int
    droppable: bool = False
