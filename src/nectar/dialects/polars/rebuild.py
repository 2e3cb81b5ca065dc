"""Running a recipe, in a process that was started for it.

In: a key. Out: its result in the catalog, and an answer for whoever asked. Law: the fingerprints of program and inputs
are computed anew here, and nothing is computed unless they are the ones on record; so code and inputs are what they
were, wherever this runs.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import polars as pl

from nectar.catalog.holding import holding
from nectar.catalog.service import NotKept
from nectar.datasets.access import catalog_knowing
from nectar.dialects.polars.checksum import checksum_of
from nectar.dialects.polars.computing import computed
from nectar.dialects.polars.derived import reader_of
from nectar.dialects.polars.engine import PolarsEngine
from nectar.dialects.polars.flags import optimizations_of
from nectar.dialects.polars.keying import Keyed, keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.query import Query, changed, looked_up
from nectar.dialects.polars.recipe import functions_of, proof_of, this_environment, with_fixed_files
from nectar.dialects.rebuilding import Order, because, run_first
from nectar.errors import RebuildError
from nectar.keys.values import polars_plans
from nectar.program.tree import Node
from nectar.recipes.difference import difference
from nectar.recipes.rebuild import Answer, rebuilt
from nectar.recipes.recipe import Proof, Recipe
from nectar.settings import Settings


def run(settings: Settings, key: bytes, allow: bool) -> Answer:
    """The result of a key is in the catalog again; or the answer says why not. allow: in another environment, too."""
    return run_first(settings, key, allow, lambda order: _Run(order).answer())


@dataclass(frozen=True, slots=True)
class _Run:
    """One recipe, to be run here."""

    order: Order

    @property
    def recipe(self) -> Recipe:
        return self.order.recipe

    def answer(self) -> Answer:
        """The result is kept, and this is what there is to say about it."""
        changes = self.order.checked(this_environment())
        if self.recipe.folder:
            with suppress(OSError):  # then relative paths lead nowhere, and their files are told to be missing
                os.chdir(self.recipe.folder)
        if self.recipe.environment.engine_folder:
            polars_plans.elsewhere.add(os.path.join(self.recipe.environment.engine_folder, ""))
        query = looked_up(self.order.session, self.order.catalog, self._proven(bool(changes)))
        try:
            with ExitStack() as until_read:
                other_inputs = _rebuild_inputs(query, self.order.allow, until_read)
                begun = time.perf_counter()
                frame = self._computed(query)
                seconds = time.perf_counter() - begun
            told, expected = self._compared(query, frame, bool(changes))
            self._keep(query, frame, seconds)
        finally:
            query.close()
        return Answer((), "; ".join([*other_inputs, *filter(None, [told])]), expected and not other_inputs, changes)

    def _proven(self, elsewhere: bool) -> Keyed:
        """The plan with its keys, which are those on record. elsewhere: in another environment they cannot be."""
        paths = {scan.step: scan.paths for scan in self.recipe.scans}
        names = {scan.step: [each.names[0] for each in scan.files] for scan in self.recipe.scans}
        reasons: list[str] = []
        for plan, proof in self._plans():
            try:
                found = keyed(plan, self.order.session.inputs, self.recipe.flags)
                root = found.program.nodes[-1]
                if root.refusal:
                    reasons.append(root.refusal)
                elif paths != {number: source.files for number, source, _ in found.sources if source.files}:
                    reasons.append("other files are found where it read: some came or went")
                elif elsewhere or _same(proof_of(found, names), proof):
                    return found
                else:
                    reasons += _differing(found, proof)
            except (Exception, pl.exceptions.PanicException) as error:  # of Polars, or of modules that are imported
                reasons.append(f"its plan cannot be read: {type(error).__name__}: {error}")
        raise because(*dict.fromkeys(reasons))

    def _plans(self) -> list[tuple[Plan, Proof]]:
        """The plan as it was, and the one that names the files it read, which may have got company since."""
        plan = Plan(self.order.written.plan)
        plans = [(plan, self.recipe.proof)]
        if self.recipe.fixed is not None:
            fixed = with_fixed_files(plan, plan.root, {scan.step: scan.paths for scan in self.recipe.scans})
            plans += [(fixed, self.recipe.fixed)] if fixed is not None else []
        return plans

    def _computed(self, query: Query) -> pl.DataFrame:
        known = query.result()
        if known is not None:
            return known
        engine, optimizations = PolarsEngine().inner, optimizations_of(self.recipe.flags)
        try:
            return computed(query, lambda frame: frame.collect(engine=engine, optimizations=optimizations))
        except (Exception, pl.exceptions.PanicException) as error:
            raise because(f"running it failed: {type(error).__name__}: {error}") from error

    def _compared(self, query: Query, frame: pl.DataFrame, elsewhere: bool) -> tuple[str, bool]:
        """How the result differs from the one that was deleted, and whether nobody promised that it would not."""
        recipe = self.recipe
        if recipe.checksum is None:
            told = "it has no checksum to be compared with"
        else:
            same_engine = recipe.environment.engine_version == pl.__version__
            now = checksum_of(frame)
            told = difference(recipe.checksum, now, ordered=recipe.ordered, comparable=same_engine)
        return self.order.judged(told, "Polars", elsewhere, lambda: _suspects(query))

    def _keep(self, query: Query, frame: pl.DataFrame, seconds: float) -> None:
        why_not = changed(query, query.looking)
        if why_not:
            raise because(why_not)
        recipe = self.recipe
        made_from = [query.entries[each] for each in query.choice.hits]
        kept = self.order.catalog.keep(
            recipe.key, recipe.program, frame, table=True, seconds=seconds, made_from=made_from,
            recipe=self.order.written.identity, about=recipe.about, made=query.began,
        )  # fmt: skip
        if isinstance(kept, NotKept):
            raise because(kept.reason)


# inputs


def _rebuild_inputs(query: Query, allow: bool, held: ExitStack) -> list[str]:
    """Deleted results of other programs that the query will read are there again; those that differ are told.

    held: they stay until it is closed. Raises with everything that is in the way of any of them.
    """
    program, reasons, told = query.keyed.program, list[str](), list[str]()
    for node in program.below(program.root, query.known):
        reader = None if node in query.known else reader_of(query.keyed.plan.steps[query.keyed.step_of[node]])
        if reader is None:
            continue
        try:
            catalog = catalog_knowing(reader.key, reader.place)
            settings = catalog.settings or query.session.settings
            held.enter_context(holding(catalog, reader.key))
            done = rebuilt(catalog, reader.key, settings, allow_environment_change=allow)
            if done.difference and not done.expected:
                told.append(f"{reader.label}, which it is made from, was rebuilt first: {done.difference}")
        except RebuildError as error:
            reasons += [f"{reader.label}, which it is made from, cannot be rebuilt: {why}" for why in error.reasons]
    if reasons:
        raise because(*reasons)
    return told


# proofs


def _same(here: Proof, there: Proof) -> bool:
    return (here.program, here.key) == (there.program, there.key)


def _differing(found: Keyed, proof: Proof) -> list[str]:
    """Which steps are not what they were, of those over the same as before."""
    nodes, known = found.program.nodes, set(proof.parts)
    other = [
        node
        for node in nodes
        if node.program not in known and all(nodes[source].program in known for source in node.inputs)
    ]
    if not other:
        return ["its files are read in another order, or known by other names, than they were"]
    return [_why_other(node) for node in other]


def _why_other(node: Node) -> str:
    if node.is_input:
        return f"{node.text} is not what it was: its columns have other types, or it is read in another way"
    return (
        f"the step {node.text!r} is not what it was: it depends on something that the text of its functions does not "
        "say, such as a variable that was set later, or a setting"
    )


def _suspects(query: Query) -> list[str]:
    """What functions of a query do that may give something else each time, had nobody vouched for them."""
    from nectar.recipes.code import suspects_in

    plan = query.keyed.plan
    return suspects_in(functions_of(plan, range(len(plan.steps))))
