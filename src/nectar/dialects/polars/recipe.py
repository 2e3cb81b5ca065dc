"""The recipe of a result: made in the background when the result is kept, from the plan as it was keyed.

In: a keyed plan, one of its nodes and the frame that came of it. Out: a recipe in the catalog. Law: whatever goes wrong
in here, the result is kept all the same, and counts as one that cannot be made again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from msgspec.structs import replace

from nectar.catalog.service import Catalog
from nectar.datasets.access import catalog_knowing
from nectar.dialects.polars.checksum import checksum_of
from nectar.dialects.polars.derived import reader_of
from nectar.dialects.polars.keying import Keyed, key_over, keyed
from nectar.dialects.polars.pickling import AT_ONCE, Pickles, functions_in, pickles_of, with_pickles
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.scans import is_fixed, with_files, without_secrets
from nectar.dialects.polars.words import may_hold_secret
from nectar.errors import UserError
from nectar.keys.values.polars_plans import Callback
from nectar.program.tree import Program
from nectar.recipes.environment import environment_here
from nectar.recipes.inputs import input_file
from nectar.recipes.recipe import (
    SECRET,
    Checksum,
    Code,
    Environment,
    Proof,
    Recipe,
    Recorded,
    Scan,
    Written,
    can_be_run,
    record,
)
from nectar.rewrite.consistency import run_dependent
from nectar.store.inputs.address import without_credentials
from nectar.store.inputs.identify import Inputs
from nectar.trust.secrets import logger

_log: Final = logger("nectar.polars")
DIALECT: Final = "polars"
_SOURCES: Final = ("Scan", "DataFrameScan")


@dataclass(frozen=True, slots=True)
class Made:
    """A result that was computed. folder: in which relative paths began. pickles: of its functions, as they were then;

    None if they are too large for anybody to wait for them, or cannot be made.
    """

    keyed: Keyed
    node: int
    frame: pl.DataFrame
    about: str
    seconds: float
    made_from: tuple[bytes, ...]
    folder: str
    pickles: Pickles | None


def recorded(catalog: Catalog, inputs: Inputs, made: Made) -> Recorded:
    """The recipe of a result is in the catalog, and the key leads to it."""
    if catalog.read_only:
        return Recorded()
    try:
        kept = record(catalog, recipe_of(inputs, made))
        return replace(kept, rebuildable=kept.rebuildable and _inputs_can_be_rebuilt(made))
    except (Exception, pl.exceptions.PanicException) as error:
        _log.info("no recipe of %s is kept: %s: %s", made.about, type(error).__name__, error)
        return Recorded()


def _inputs_can_be_rebuilt(made: Made) -> bool:
    """Whether the named results that it reads could be made again as well, as far as is known."""
    plan = made.keyed.plan
    readers = [reader_of(plan.steps[each]) for each in _below(plan, made.keyed.step_of[made.node])]
    return all(
        can_be_run(catalog_knowing(reader.key, reader.place), reader.key) for reader in readers if reader is not None
    )


def recipe_of(inputs: Inputs, made: Made) -> Written:
    """Everything that is needed to make a result again."""
    found, step = made.keyed, made.keyed.step_of[made.node]
    node = found.program.nodes[made.node]
    below = _below(found.plan, step)
    secret = {each: scan for each in below if (scan := _without_secrets(found.plan, each)) is not None}
    pickles = _pickles_now(made, below) if made.pickles is None else made.pickles
    data = with_pickles(found.plan, step, secret, pickles)
    scans = _scans(found, _aligned(found.plan, step, Plan(found.plan.written(step), found.plan.functions)))
    functions = functions_of(found.plan, below)
    code = _code_of(functions, pickles) if functions else Code()
    if any(may_hold_secret(found.plan.steps[each]) for each in below):
        code.refusals.append(f"an expression of it holds {SECRET}")
    undetermined, tainted = run_dependent(found.program)
    recipe = Recipe(
        DIALECT, node.key, node.program, made.about, made.seconds, this_environment(),
        Proof(node.program, node.key, _programs(found.program, made.node)),
        _fixed_proof(found, step, below, inputs),
        tuple(code.packages.values()), tuple(code.modules), scans, made.made_from,
        made.folder, not undetermined[made.node], not tainted[made.node], _checksum(made.frame),
        tuple(code.refusals), found.flags,
    )  # fmt: skip
    return Written(recipe, data, code.texts)


def _code_of(functions: Sequence[Callback], pickles: Pickles) -> Code:
    from nectar.recipes.code import code_of  # takes long to load, and most plans hold no function

    return code_of(functions, list(pickles.values()), frozenset({"polars"}))


def this_environment() -> Environment:
    """The environment of this process."""
    return environment_here("Polars", pl.__version__, os.path.dirname(pl.__file__))


# what is in a plan


def functions_of(plan: Plan, steps: Iterable[int]) -> list[Callback]:
    """The Python functions of steps, as they are fingerprinted."""
    made = [each for each in steps if plan.steps[each].kind not in _SOURCES and reader_of(plan.steps[each]) is None]
    return functions_in(plan, made)


def pickles_at_once(found: Keyed, node: int) -> Pickles | None:
    """The functions of a node, pickled while they are what its key says; None if that takes long or cannot be done."""
    try:
        return pickles_of(found.plan, _below(found.plan, found.step_of[node]), AT_ONCE)
    except Exception as error:  # pickling runs code of the objects
        _log.debug("functions of %s are not pickled now: %r", found.program.nodes[node].text, error)
        return None


def _pickles_now(made: Made, below: Sequence[int]) -> Pickles:
    """The functions, pickled later. Raises if they are not what they were, or cannot be pickled."""
    pickles = pickles_of(made.keyed.plan, below, math.inf)
    if not made.keyed.runs_the_same(made.node):
        raise UserError("a function in it, or what it refers to, has changed since it ran")
    return pickles


def with_fixed_files(plan: Plan, step: int, files: Mapping[int, Sequence[str]]) -> Plan | None:
    """The plan up to a step, with scans that read exactly these files; None if that may not be the same."""
    fixed: dict[int, pl.LazyFrame] = {}
    for number, paths in files.items():
        if not is_fixed(plan, number, paths):
            scan = with_files(plan, number, paths)
            if scan is None:
                return None
            fixed[number] = scan
    return Plan(plan.written(step, fixed), plan.functions)


def proof_of(found: Keyed, names: Mapping[int, Sequence[bytes]]) -> Proof:
    """The proof of a plan whose scans, by step, read files of these names."""
    root = found.program.nodes[-1]
    key = key_over(found, found.step_of[-1], names) if names else root.key
    return Proof(root.program, key, _programs(found.program, found.program.root))


def _below(plan: Plan, root: int) -> list[int]:
    """A step and all that it is made from."""
    seen = {root}
    pending = [root]
    while pending:
        for source in plan.steps[pending.pop()].inputs:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return sorted(seen)


def _programs(program: Program, node: int) -> tuple[bytes, ...]:
    return tuple(program.nodes[each].program for each in sorted(program.below(node)))


def _without_secrets(plan: Plan, number: int) -> pl.LazyFrame | None:
    return without_secrets(plan, number) if plan.steps[number].kind == "Scan" else None


def _aligned(plan: Plan, step: int, part: Plan) -> dict[int, int]:
    """For each step of a part of a plan, which step of the plan it is."""
    found = {part.root: step}
    pending = [part.root]
    while pending:
        number = pending.pop()
        for mine, theirs in zip(part.steps[number].inputs, plan.steps[found[number]].inputs, strict=True):
            if mine not in found:
                found[mine] = theirs
                pending.append(mine)
    return found


def _scans(found: Keyed, aligned: Mapping[int, int]) -> tuple[Scan, ...]:
    """What the scans of a part read, in the order of its steps."""
    known = {number: (source.files, identities) for number, source, identities in found.sources if source.files}
    return tuple(
        # As the plan of the recipe names them, which has no credentials either.
        Scan(
            mine,
            tuple(without_credentials(path)[0] for path in known[theirs][0]),
            tuple(map(input_file, known[theirs][1])),
        )
        for mine, theirs in sorted(aligned.items())
        if theirs in known
    )


def _fixed_proof(found: Keyed, step: int, below: Sequence[int], inputs: Inputs) -> Proof | None:
    """The proof of the plan that names each file; None if the plan does so by itself, or cannot be made to."""
    sources = {number: source.files for number, source, _ in found.sources if number in below and source.files}
    if all(is_fixed(found.plan, number, files) for number, files in sources.items()):
        return None
    plan = with_fixed_files(found.plan, step, sources)
    if plan is None:
        return None
    fixed = keyed(plan, inputs, found.flags)
    aligned = _aligned(found.plan, step, plan)
    if any(plan.schema(mine) != found.plan.schema(theirs) for mine, theirs in aligned.items() if theirs in sources):
        return None
    names = {number: [each.names[0] for each in identities] for number, _, identities in found.sources}
    return proof_of(fixed, {mine: names[theirs] for mine, theirs in aligned.items() if theirs in sources})


def _checksum(frame: pl.DataFrame) -> Checksum | None:
    try:
        return checksum_of(frame)
    except (Exception, pl.exceptions.PanicException) as error:  # a type that Polars cannot hash
        _log.info("a result has no checksum: %s", error)
        return None
