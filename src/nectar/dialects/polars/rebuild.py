"""Running a recipe, in a process that was started for it.

In: a key. Out: its result in the catalog, and an answer for whoever asked. Law: the fingerprints of program and inputs
are computed anew here, and nothing is computed unless they are the ones on record; so code and inputs are what they
were, wherever this runs.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass

import polars as pl

from nectar.catalog.holding import holding
from nectar.catalog.service import Catalog, NotKept
from nectar.datasets.access import catalog_knowing
from nectar.dialects.polars import checksum
from nectar.dialects.polars.computing import computed
from nectar.dialects.polars.derived import reader_of
from nectar.dialects.polars.engine import PolarsEngine
from nectar.dialects.polars.keying import Keyed, keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.query import Query, changed, looked_up
from nectar.dialects.polars.recipe import functions_of, pickled_in, proof_of, this_environment, with_fixed_files
from nectar.errors import InputFailure, MissingInputError, RebuildError
from nectar.keys.values import polars_plans
from nectar.program.tree import Node
from nectar.recipes.environment import differences
from nectar.recipes.importing import CapturedModules
from nectar.recipes.rebuild import Answer, rebuilt
from nectar.recipes.recipe import InputFile, Proof, Recipe, Written, recipes_of
from nectar.session import Session, current, disable, enable
from nectar.settings import Settings
from nectar.store.inputs.identify import Inputs
from nectar.store.inputs.identity import Identity


def run(settings: Settings, key: bytes, allow: bool) -> Answer:
    """The result of a key is in the catalog again; or the answer says why not. allow: in another environment, too."""
    enable(**asdict(settings))
    try:
        session = current()
        catalog = None if session is None else session.catalog
        if session is None or catalog is None:
            return Answer((f"the catalog in {settings.home} cannot be used",))
        return _first_that_can_be_run(session, catalog, key, allow)
    finally:
        disable()


def _first_that_can_be_run(session: Session, catalog: Catalog, key: bytes, allow: bool) -> Answer:
    failed: list[Answer] = []
    for written in recipes_of(catalog, key):
        modules = CapturedModules(written.recipe.modules, written.texts)
        modules.install()
        try:
            return _Run(session, catalog, written, allow).answer()
        except RebuildError as error:
            failed.append(Answer(error.reasons))
        finally:
            modules.uninstall()
    return failed[0] if failed else Answer(("its recipe is of another version of Nectar",))


@dataclass(frozen=True, slots=True)
class _Run:
    """One recipe, to be run here."""

    session: Session
    catalog: Catalog
    written: Written
    allow: bool

    @property
    def recipe(self) -> Recipe:
        return self.written.recipe

    def answer(self) -> Answer:
        """The result is kept, and this is what there is to say about it."""
        changes = self._checked()
        if self.recipe.folder:
            with suppress(OSError):  # then relative paths lead nowhere, and their files are told to be missing
                os.chdir(self.recipe.folder)
        if self.recipe.environment.engine_folder:
            polars_plans.elsewhere.add(os.path.join(self.recipe.environment.engine_folder, ""))
        query = looked_up(self.session, self.catalog, self._proven(bool(changes)))
        try:
            with ExitStack() as until_read:
                other_inputs = _rebuild_inputs(query, self.allow, until_read)
                begun = time.perf_counter()
                frame = self._computed(query)
                seconds = time.perf_counter() - begun
            told, expected = self._compared(query, frame, bool(changes))
            self._keep(query, frame, seconds)
        finally:
            query.close()
        return Answer((), "; ".join([*other_inputs, *filter(None, [told])]), expected and not other_inputs, changes)

    def _checked(self) -> tuple[str, ...]:
        """What of the environment has changed, and was allowed to. Raises with everything that is in the way."""
        recipe = self.recipe
        tops = {module.name.partition(".")[0] for module in recipe.modules}
        found = differences(recipe, this_environment(), tops)
        reasons = [*recipe.refusals, *found.missing]
        if found.changed and not self.allow:
            reasons += [*found.changed, "if that may be: nectar rebuild --allow-environment-change"]
        reasons += _lost_inputs(self.session, self.catalog, recipe)
        if reasons:
            raise _because(*reasons)
        return found.changed

    def _proven(self, elsewhere: bool) -> Keyed:
        """The plan with its keys, which are those on record. elsewhere: in another environment they cannot be."""
        paths = {scan.step: scan.paths for scan in self.recipe.scans}
        names = {scan.step: [each.names[0] for each in scan.files] for scan in self.recipe.scans}
        reasons: list[str] = []
        for plan, proof in self._plans():
            try:
                found = keyed(plan, self.session.inputs)
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
        raise _because(*dict.fromkeys(reasons))

    def _plans(self) -> list[tuple[Plan, Proof]]:
        """The plan as it was, and the one that names the files it read, which may have got company since."""
        plan = Plan(self.written.plan)
        plans = [(plan, self.recipe.proof)]
        if self.recipe.fixed is not None:
            fixed = with_fixed_files(plan, plan.root, {scan.step: scan.paths for scan in self.recipe.scans})
            plans += [(fixed, self.recipe.fixed)] if fixed is not None else []
        return plans

    def _computed(self, query: Query) -> pl.DataFrame:
        known = query.result()
        if known is not None:
            return known
        engine = PolarsEngine().inner
        try:
            return computed(query, lambda frame: frame.collect(engine=engine))
        except (Exception, pl.exceptions.PanicException) as error:
            raise _because(f"running it failed: {type(error).__name__}: {error}") from error

    def _compared(self, query: Query, frame: pl.DataFrame, elsewhere: bool) -> tuple[str, bool]:
        """How the result differs from the one that was deleted, and whether nobody promised that it would not.

        In another environment it must not differ: programs of the old one would take it for what it was.
        """
        recipe = self.recipe
        if recipe.checksum is None:
            told = "it has no checksum to be compared with"
        else:
            same_engine = recipe.environment.engine_version == pl.__version__
            now = checksum.checksum_of(frame)
            told = checksum.difference(recipe.checksum, now, ordered=recipe.ordered, comparable=same_engine)
        if told and elsewhere:
            raise _because(f"made in this environment, {told}: run the program again, which gives it a key of its own")
        if not told or recipe.checksum is None:
            return told, True
        suspects = _suspects(query)
        if suspects:
            return f"{told}: two runs of it do not give the same. Suspected: {'; '.join(suspects)}", False
        if not recipe.settled:
            return f"{told}, which Polars does not promise to be the same in two runs of such a query", True
        return f"{told}: two runs of it do not give the same, and no function in it is known to be the cause", False

    def _keep(self, query: Query, frame: pl.DataFrame, seconds: float) -> None:
        why_not = changed(query, query.looking)
        if why_not:
            raise _because(why_not)
        recipe = self.recipe
        made_from = [query.entries[each] for each in query.choice.hits]
        kept = self.catalog.keep(
            recipe.key, recipe.program, frame, table=True, seconds=seconds, made_from=made_from,
            recipe=self.written.identity, about=recipe.about, made=query.began,
        )  # fmt: skip
        if isinstance(kept, NotKept):
            raise _because(kept.reason)


def _because(*reasons: str) -> RebuildError:
    return RebuildError("the result", reasons)


# inputs


def _lost_inputs(session: Session, catalog: Catalog, recipe: Recipe) -> list[str]:
    """A sentence for each file that is not what it was; and what still can be had, if there is any such file."""
    files = list(dict.fromkeys(file for scan in recipe.scans for file in scan.files))
    by_content = Inputs(
        catalog, session.clock, identity="content", shared=session.settings.shared, host=socket.gethostname()
    )
    told = [sentence for file in files if (sentence := _lost(session.inputs, by_content, file))]
    if not told:
        return []
    still = catalog.index.lookup(recipe.made_from)
    same = len(files) - len(told)
    had = [f"{same} of {len(files)} files are what they were"] if same else []
    had += [f"the result {key.hex()[:12]} ({entry.about}), which it was made from, is still kept"
            for key, entry in still.items()]  # fmt: skip
    return [*told, *had]


def _lost(inputs: Inputs, by_content: Inputs, file: InputFile) -> str:
    """Why a file is not what it was; empty if it is."""
    try:
        now = inputs.identify([file.url])[0]
        if _is(now, file) or (file.content is not None and _is(by_content.identify([file.url])[0], file)):
            return ""
    except MissingInputError:
        return f"the file {file.url} is gone"
    except InputFailure as failure:
        return f"the file {file.url} cannot be read: {failure}"
    if None not in (now.size, file.size) and now.size != file.size:
        return f"the file {file.url} was changed: it had {file.size} bytes and has {now.size}"
    return f"the file {file.url} was rewritten, replaced or touched since, and may hold something else"


def _is(now: Identity, file: InputFile) -> bool:
    return not set(now.names).isdisjoint(file.names)


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
        raise _because(*reasons)
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
    return suspects_in(functions_of(list(pickled_in(plan, range(len(plan.steps))))))
