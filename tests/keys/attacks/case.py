"""The two kinds of case this folder keeps."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

Program = str | dict[str, str]


class Pair(NamedTuple):
    """Two programs that do different things, as the witness shows, and so must not share a fingerprint."""

    id: str
    a: Program
    b: Program
    witness: str
    mode: str = "import"


class Warm(NamedTuple):
    """A program that is fingerprinted, changed by the code in `after`, and fingerprinted again: both must differ."""

    id: str
    a: Program
    after: str
    witness: str
    mode: str = "import"


def pair(name: str, a: str, b: str, witness: str, mode: str = "import") -> Pair:
    """Two whole programs."""
    return Pair(name, dedent(a), dedent(b), witness, mode)


def turn(name: str, program: str, one: str, other: str, witness: str, mode: str = "import") -> Pair:
    """One program, twice: where it says @@, each has its own text."""
    program = dedent(program)
    return Pair(name, program.replace("@@", one), program.replace("@@", other), witness, mode)


def files(name: str, program: dict[str, str], one: str, other: str, witness: str, mode: str = "import") -> Pair:
    """The same for programs of several files."""
    texts = {path: dedent(text) for path, text in program.items()}
    a = {path: text.replace("@@", one) for path, text in texts.items()}
    b = {path: text.replace("@@", other) for path, text in texts.items()}
    return Pair(name, a, b, witness, mode)


def warm(name: str, program: str | dict[str, str], after: str, witness: str, mode: str = "import") -> Warm:
    """A program and a change."""
    text = dedent(program) if isinstance(program, str) else {path: dedent(part) for path, part in program.items()}
    return Warm(name, text, dedent(after), witness, mode)
