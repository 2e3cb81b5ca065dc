"""What shows to whoever watches a call: files and databases that a function uses for nobody but itself.

In: what the tables say of library objects, and where values of a function come from. Out: which refusals fall away
while a call is watched (a function that makes temporary files may open files: that it opens no others is seen), and
which are none at all (a database in memory). Law: what no event tells of, such as asking whether a file exists, is
fine only for what certainly comes of something temporary.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable
from typing import Final

from nectar.keys.bytecode.operation import MERGE, Operation
from nectar.keys.purity.facts import CONSTANT, Facts
from nectar.model.refusal import FILE, TEMPORARY

_TEMPORARY: Final = frozenset(
    f"tempfile.{name}"
    for name in (
        "NamedTemporaryFile",
        "TemporaryDirectory",
        "TemporaryFile",
        "SpooledTemporaryFile",
        "mkstemp",
        "mkdtemp",
    )
)
_OF_OS: Final = "fdopen close remove unlink rmdir mkdir makedirs rename replace listdir"
_OF_PATHS: Final = (
    "read_text read_bytes write_text write_bytes open unlink mkdir rmdir iterdir glob rglob rename replace"
)
_OF_LIBRARIES: Final = (
    "shutil.rmtree shutil.copyfile pandas.read_csv pandas.DataFrame.to_csv pandas.read_json pandas.DataFrame.to_json "
    "numpy.save numpy.load numpy.savetxt numpy.loadtxt"
)
_SEEN: Final = frozenset(
    {"open", "io.open", *_OF_LIBRARIES.split()}
    | {f"os.{name}" for name in _OF_OS.split()}
    | {f"pathlib.Path.{name}" for name in _OF_PATHS.split()}
)
_METHODS: Final = frozenset(_OF_PATHS.split()) - {"rename", "replace"}
# Nothing tells of these.
_ASKED: Final = frozenset(
    {f"posixpath.{name}" for name in ("exists", "isfile", "isdir", "getsize")}
    | {f"pathlib.Path.{name}" for name in ("exists", "is_file", "is_dir")}
)
_IN_MEMORY: Final = {
    "sqlite3.connect": frozenset({":memory:", ""}),
    "sqlalchemy.create_engine": frozenset({"sqlite://", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:"}),
}
_PASSING: Final = (contextlib.closing, os.path.join, str, pathlib.Path, iter, list)
_LEADS_ON: Final = frozenset(
    {"LOAD_ATTR", "BEFORE_WITH", "GET_ITER", "FOR_ITER", "BINARY_SUBSCR", "UNPACK_SEQUENCE", "BINARY_OP"}
)


def seen_as(reason: str) -> str:
    """What whoever watches sees of using a library object, by the reason against it."""
    name = _named(reason)
    return TEMPORARY if name in _TEMPORARY else FILE if name in _SEEN else ""


def seen_of_method(name: str) -> str:
    """What whoever watches sees of calling a method of a path."""
    return FILE if name in _METHODS else ""


def is_of_own(facts: Facts, call: Operation, reason: str) -> bool:
    """Whether a call only asks for something temporary, or opens a database in memory."""
    name = _named(reason)
    if name in _IN_MEMORY:
        return _opens_memory(facts, call, name)
    asked = call.operands[1] if len(call.operands) > 1 else None
    if asked is None:  # a method
        made = facts.maker(call.operands[0])
        asked = made.operands[0] if made is not None and made.name == "LOAD_ATTR" else None
    return name in _ASKED and asked is not None and comes_of_temporary(facts, asked)


def comes_of_temporary(facts: Facts, value: int) -> bool:
    """Whether a value is, or was made of, what a function of tempfile gave."""
    return _comes_of(facts, value, lambda call: _module_called(facts, call) == "tempfile", frozenset())


def comes_of_memory(facts: Facts, value: int) -> bool:
    """Whether a value is, or was asked of, a database in memory."""
    return _comes_of(facts, value, lambda call: _opens_memory(facts, call, "sqlite3.connect"), frozenset())


def _named(reason: str) -> str:
    return reason.partition(",")[0]


def _module_called(facts: Facts, call: Operation) -> str:
    return str(getattr(facts.of(call.operands[0]).root, "__module__", ""))


def _opens_memory(facts: Facts, call: Operation, name: str) -> bool:
    module = _module_called(facts, call).lstrip("_").partition(".")[0]
    if call.name != "CALL" or len(call.operands) < 2 or module != name.partition(".")[0]:
        return False
    given = facts.of(call.operands[1])
    return given.kind == CONSTANT and given.root in _IN_MEMORY[name]


def _comes_of(facts: Facts, value: int, is_source: Callable[[Operation], bool], inside: frozenset[int]) -> bool:
    if facts.template.kinds[value] == MERGE:
        brought = [each for each in facts.brought_to(value) if each not in inside and each != value]
        return bool(brought) and all(_comes_of(facts, each, is_source, inside | {value}) for each in brought)
    made = facts.maker(value)
    if made is None or value in facts.part.known:
        return False
    if made.name == "LOAD_SLOT":
        stored = [each for each in facts.stored_in_slot(made.arg) if each not in inside]
        return bool(stored) and all(_comes_of(facts, each, is_source, inside | {value}) for each in stored)
    if made.name == "CALL":
        if is_source(made):
            return True
        callee = facts.maker(made.operands[0])
        if any(facts.of(made.operands[0]).root is each for each in _PASSING) and len(made.operands) > 1:
            return _comes_of(facts, made.operands[1], is_source, inside)
        is_method = callee is not None and callee.name == "LOAD_ATTR" and made.operands[0] not in facts.part.known
        return is_method and _comes_of(facts, callee.operands[0], is_source, inside)  # type: ignore[union-attr]
    return made.name in _LEADS_ON and _comes_of(facts, made.operands[0], is_source, inside)
