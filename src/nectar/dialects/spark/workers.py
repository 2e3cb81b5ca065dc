"""Python functions on a server elsewhere: they run in its environment, and import what they use from there.

In: functions as they were pickled. Out: a digest of the environment they run in, and why their results are not
reused. Law: what a function does there is what its fingerprint says here. That holds for what is pickled with it; for
packages, whose versions are asked for and are part of the key; it does not hold for modules of the application, which
the server reads from files of its own, or has read long ago.
"""

from __future__ import annotations

import dis
import pickletools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.connect.proto import relations_pb2
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import StringType
from pyspark.util import PythonEvalType

from nectar.dialects.spark.connections import Connection
from nectar.dialects.spark.functions import Pickled
from nectar.keys.expansion import joined
from nectar.keys.origin import origin_of_module
from nectar.keys.scheme import digest_of

_IMPORTER: Final = object()  # what the client puts into a pickle, before its name, for a module that was captured
_IMPORTERS: Final = frozenset({"import_module", "__import__"})
_ASIDE: Final = frozenset({"MEMOIZE", "FRAME", "PROTO"})  # push nothing
_OLD: Final = frozenset(
    {"GLOBAL", "INST", "PUT", "BINPUT", "LONG_BINPUT", "GET", "EXT1", "EXT2", "EXT4"}
)  # not written


def environment_of(connection: Connection) -> str:
    """The versions of Python and of all packages that functions run with at the server, as it tells."""
    return str(connection.rows(_question()).column(0)[0].as_py())


def digest_of_environment(told: str) -> bytes:
    """What a key has of an environment."""
    return digest_of(joined("workers", told))


def why_unlike(functions: Iterable[Pickled]) -> str:
    """Why functions may do something else at the server than here; empty if they do not."""
    for each in functions:
        foreign = sorted(filter(_is_of_the_application, _imported(each.command)))
        foreign = foreign or sorted(filter(_is_of_the_application, _imported_within(each.function)))
        if foreign:
            return (
                f"the server imports {foreign[0] or 'modules'} from files of its own, which may hold something else: "
                "functions of the program's main file, and those within functions, are sent along"
            )
    return ""


def _is_of_the_application(name: str) -> bool:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    module = sys.modules.get(name)
    return module is None or origin_of_module(module).kind == "application"


def _imported_within(function: object) -> set[str]:
    """The modules that a function, and the application's functions it calls, import when they run."""
    from nectar.keys.outcome import outcome_of

    found: set[str] = set()
    pending = [
        examined.function.__code__
        for examined in list(outcome_of(function).walk.examined.values())
        if isinstance(examined.function, types.FunctionType)
    ]
    while pending:
        code = pending.pop()
        pending.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        found.update(str(each.argval) for each in dis.get_instructions(code) if each.opname == "IMPORT_NAME")
        if not _IMPORTERS.isdisjoint(code.co_names):
            found.add("")
    return found


def _imported(pickled: bytes) -> set[str]:
    """The modules that unpickling imports. An empty name stands for one that is not known."""
    found: set[str] = set()
    memo: list[object] = []
    pushed: list[object] = [None, None]
    for operation, argument, _ in pickletools.genops(pickled):
        name = operation.name
        if name == "MEMOIZE":
            memo.append(pushed[-1])
        if name in _ASIDE:
            continue
        value: object = None
        if "UNICODE" in name:
            value = argument
        elif name in ("BINGET", "LONG_BINGET"):
            value = memo[int(str(argument))]
        elif name == "STACK_GLOBAL":
            module, attribute = pushed[-2:]
            found.add(module if isinstance(module, str) else "")
            value = _IMPORTER if attribute == "subimport" else None
        elif name in _OLD:
            return {""}
        if pushed[-1] is _IMPORTER:
            found.add(value if isinstance(value, str) else "")
        pushed.append(value)
    return found


def _question() -> Any:
    """A query whose only value is what a function finds out about the place where it runs."""
    relation = relations_pb2.Relation(project=relations_pb2.Project())
    relation.project.input.range.start = 0
    relation.project.input.range.end = 1
    relation.project.input.range.step = 1
    call = relation.project.expressions.add().common_inline_user_defined_function
    call.function_name, call.deterministic = "environment", True
    call.arguments.add().unresolved_attribute.unparsed_identifier = "id"
    call.python_udf.eval_type = PythonEvalType.SQL_BATCHED_UDF
    call.python_udf.python_ver = f"{sys.version_info.major}.{sys.version_info.minor}"
    call.python_udf.output_type.CopyFrom(pyspark_types_to_proto_types(StringType()))
    call.python_udf.command = CloudPickleSerializer().dumps((_telling(), StringType()))
    return relation


def _telling() -> Callable[[object], str]:
    """A function within a function is pickled as it is: the server need not have Nectar."""

    def tell(_: object) -> str:
        import importlib.metadata
        import platform

        packages = {f"{each.metadata['Name']} {each.version}" for each in importlib.metadata.distributions()}
        return "\n".join((platform.python_version(), platform.machine(), *sorted(packages)))

    return tell
