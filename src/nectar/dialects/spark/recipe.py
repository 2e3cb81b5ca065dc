"""The recipe of a Spark result: made when the result is kept, from the plan as the program sent it.

In: a query, one of its nodes and what came of it. Out: a recipe in the catalog. Law: no credential is in it; and
whatever goes wrong in here, the result is kept all the same, and counts as one that cannot be made again.
"""

from __future__ import annotations

import glob
import os
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet
from pyspark.util import is_remote_only

from nectar.catalog.handover import Handover
from nectar.dialects.spark.checksum import checksum_of, rows_only
from nectar.dialects.spark.flat import flattened
from nectar.dialects.spark.functions import Pickled
from nectar.dialects.spark.keyed import about
from nectar.dialects.spark.messages import messages_in, named
from nectar.dialects.spark.prescription import DIALECT, Prescription, encoded
from nectar.dialects.spark.relations import Step, steps_of
from nectar.dialects.spark.results import is_whole, without_schema
from nectar.dialects.spark.scope import Registered, Scope, View
from nectar.dialects.spark.servers import Engine
from nectar.dialects.spark.validity import may_be_secret
from nectar.errors import UserError
from nectar.model.entry import Entry
from nectar.quantities import show_size
from nectar.recipes.environment import environment_here, version_here
from nectar.recipes.inputs import input_file
from nectar.recipes.recipe import Checksum, Code, Environment, Package, Proof, Recipe, Recorded, Scan, Written, record
from nectar.rewrite.consistency import run_dependent
from nectar.trust.secrets import is_secret_name, logger, looks_secret

if TYPE_CHECKING:
    from nectar.dialects.spark.query import Query

_log: Final = logger("nectar.spark")
_MOST: Final = 4 << 20  # bytes of a plan that are kept; what is larger holds rows of the program's own
_ROUNDS: Final = 10  # names may have had several meanings while views were made that use them
_NEEDED: Final = ("pyspark", "numpy", "pandas", "pyarrow")  # by every program of Spark
_LOOKED_AFTER: Final = frozenset({"pyspark", "pyspark-client", "pysail", "pyarrow", "numpy", "pandas"})
_BY_VALUE: Final = "cloudpickle"
_ENGINES: Final = {"sail": "Sail", "spark": "Spark"}


def recorded(
    query: Query, number: int, value: pa.Table | Handover, seconds: float, made_from: Sequence[Entry]
) -> Recorded:
    """The recipe of the result of a node is in the catalog, and the key leads to it."""
    if query.catalog.read_only:
        return Recorded()
    try:
        return record(query.catalog, _recipe_of(query, number, value, seconds, made_from))
    except Exception as error:
        _log.info("no recipe of %s is kept: %s: %s", query.part.name, type(error).__name__, error)
        return Recorded()


def environment_of(engine: Engine) -> Environment:
    """The environment of this process, and of the engine."""
    kind, version = engine.description[:2]
    return environment_here(_ENGINES[kind], version, "")


def _recipe_of(
    query: Query, number: int, value: pa.Table | Handover, seconds: float, made_from: Sequence[Entry]
) -> Written:
    found = query.keyed
    node = found.program.nodes[number]
    code = _code_of(list({each.command: each for each in found.functions_below(number)}.values()))
    prescription, refusals = _prescribed(query, number, is_part=isinstance(value, Handover))
    undetermined, tainted = run_dependent(found.program)
    recipe = Recipe(
        DIALECT, node.key, node.program, about(found, number), seconds, environment_of(query.engine),
        Proof(node.program, node.key, tuple(found.program.nodes[each].program
                                            for each in sorted(found.program.below(number)))),
        None, (*code.packages.values(), *_packages(query.engine)), tuple(code.modules),
        (Scan(0, (), tuple(map(input_file, found.files_below(number)))),), tuple(entry.key for entry in made_from),
        query.folder, not undetermined[number], not tainted[number], checksum_of_result(value),
        (*code.refusals, *refusals),
    )  # fmt: skip
    return Written(recipe, encoded(prescription), code.texts)


def checksum_of_result(value: pa.Table | Handover) -> Checksum | None:
    """What a result holds; of what an engine wrote by itself, and nobody has read, how many rows."""
    if isinstance(value, Handover):
        files = glob.glob(f"{glob.escape(value.path)}/*.parquet")
        return rows_only(sum(pyarrow.parquet.read_metadata(file).num_rows for file in files))
    try:
        return checksum_of(without_schema(value) if is_whole(value) else value)
    except Exception as error:  # of a type that nobody can hash
        _log.info("a result has no checksum: %s", error)
        return None


# code and packages


def _code_of(functions: Sequence[Pickled]) -> Code:
    if not functions:
        return Code()
    from nectar.recipes.code import code_of  # takes long to load, and most plans hold no function

    found = code_of([each.function for each in functions], [each.command for each in functions], _LOOKED_AFTER)
    if _BY_VALUE in found.packages:  # the client has its own copy of it
        package = found.packages[_BY_VALUE]
        found.packages[_BY_VALUE] = Package(package.name, "", "pyspark.cloudpickle", package.used_by)
    return found


def _packages(engine: Engine) -> list[Package]:
    """What has to be installed, in the versions that count."""
    packages = []
    for module in (*_NEEDED, "pysail") if engine.is_embedded else _NEEDED:
        name = "pyspark-client" if module == "pyspark" and is_remote_only() else module
        version = version_here(Package(name, "", module, ""))
        if version is not None:
            packages.append(Package(name, version, module, "a Spark program"))
    return packages


# what is sent


def _prescribed(query: Query, number: int, *, is_part: bool) -> tuple[Prescription, list[str]]:
    """How the plan of a node is sent again; or why it cannot be, and nothing of it that may be secret."""
    declared = query.keyed.declared_below(number)
    if declared:
        return Prescription(), [f"it reads {each}, which is as it was for a while only" for each in declared]
    relation, steps = query.given, steps_of(query.given)
    if number != query.keyed.program.root:
        relation = steps[query.keyed.node_of.index(number)].message
        steps = steps_of(relation)
    refusals = _beside(relation)
    commands: list[Any] = []
    try:
        _teach(_scope_of(query.scope, steps), {}, commands)
    except UserError as error:
        refusals.append(str(error))
    variables = dict(each.partition("=")[::2] for each in query.engine.description[2:])
    variables["TZ"] = os.environ.get("TZ", "")
    secret = [name for name, value in (*query.settings.items(), *variables.items()) if _may_be_secret(name, value)]
    refusals += [f"the setting {name} may hold a credential, and recipes hold none" for name in secret]
    if refusals:
        return Prescription(), refusals
    plan, told = flattened(relation), tuple(map(flattened, commands))
    size = sum(map(len, (*plan, *(piece for each in told for piece in each))))
    if size > _MOST:
        return Prescription(), [f"its plan holds {show_size(size)} of data, which is too much to be kept in a recipe"]
    return Prescription(
        plan, told, dict(query.settings), variables, platform.python_version(), query.keyed.frame, is_part
    ), []  # fmt: skip


def _may_be_secret(name: str, value: str) -> bool:
    return may_be_secret(name, value) or (bool(value) and is_secret_name(name)) or looks_secret(value)


def _beside(relation: Any) -> list[str]:
    """What a plan needs that is not in it."""
    if any(named(each, "CachedLocalRelation", "ChunkedCachedLocalRelation") for each in messages_in(relation)):
        return ["its rows were handed to the server before the plan, and are not kept"]
    return []


def _scope_of(scope: Scope, steps: Sequence[Step]) -> Scope:
    """As much of what names mean as a plan needs."""
    return scope.only((name for step in steps for name in step.names), (call for step in steps for call in step.calls))


def _teach(scope: Scope, taught: dict[tuple[str, ...], View | Registered], commands: list[Any]) -> None:
    """Commands after which names mean what they mean in a scope. taught: what they mean before, and then.

    A view is made while names mean what they meant when it was made. Raises UserError if somebody has to do more.
    """
    for _ in range(_ROUNDS):
        missing = [(name, meant) for name, meant in _meanings(scope).items() if taught.get(name) is not meant]
        if not missing:
            return
        for name, meant in missing:
            if isinstance(meant, View):
                _teach(meant.scope, taught, commands)
            if meant.command is None:
                raise UserError(f"how {'.'.join(name[1:])} was made is not kept")
            commands.append(meant.command)
            taught[name] = meant
    raise UserError("its views were made while names meant too many things")


def _meanings(scope: Scope) -> Mapping[tuple[str, ...], View | Registered]:
    found: dict[tuple[str, ...], View | Registered] = {}
    found.update({("function", name): function for name, function in scope.functions.items()})
    found.update({("view", *name): view for name, view in scope.views.items()})
    return found
