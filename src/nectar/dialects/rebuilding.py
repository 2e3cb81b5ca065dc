"""What running a recipe has in common, whichever dialect wrote it; in a process that was started for it.

A dialect makes one attempt for each recipe of a key; the first that comes to a result counts. Law: nothing is computed
from other files than those on record, nor in another environment, unless somebody said that it may be another.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from nectar.catalog.service import Catalog
from nectar.errors import RebuildError
from nectar.recipes.environment import differences
from nectar.recipes.importing import CapturedModules
from nectar.recipes.inputs import lost_inputs
from nectar.recipes.rebuild import Answer
from nectar.recipes.recipe import Environment, Recipe, Written, recipes_of
from nectar.session import Session, current, disable, enable
from nectar.settings import Settings
from nectar.store.inputs.identify import Inputs


@dataclass(frozen=True, slots=True)
class Order:
    """A recipe that is to be run here. allow: in another environment, too."""

    session: Session
    catalog: Catalog
    written: Written
    allow: bool

    @property
    def recipe(self) -> Recipe:
        """What is to be run."""
        return self.written.recipe

    def by_content(self) -> Inputs:
        """What reads files to tell what they hold."""
        return Inputs(
            self.catalog, self.session.clock, identity="content", shared=self.session.settings.shared,
            host=socket.gethostname(),
        )  # fmt: skip

    def checked(self, here: Environment, changed: Iterable[str] = ()) -> tuple[str, ...]:
        """What of the environment has changed, and was allowed to. Raises with everything that is in the way.

        changed: what the dialect has found besides.
        """
        recipe = self.recipe
        found = differences(recipe, here, {module.name.partition(".")[0] for module in recipe.modules})
        changes = (*found.changed, *changed)
        reasons = [*recipe.refusals, *found.missing]
        if changes and not self.allow:
            reasons += [*changes, "if that may be: nectar rebuild --allow-environment-change"]
        reasons += lost_inputs(self.catalog, recipe, self.session.inputs, self.by_content())
        if reasons:
            raise because(*reasons)
        return changes

    def judged(self, told: str, engine: str, elsewhere: bool, suspects: Callable[[], list[str]]) -> tuple[str, bool]:
        """What is to be said of a difference, and whether nobody promised that there would be none.

        elsewhere: in another environment it must not differ: programs of the old one would take it for what it was.
        suspects: functions that may give something else each time.
        """
        if told and elsewhere:
            raise because(f"made in this environment, {told}: run the program again, which gives it a key of its own")
        if not told or self.recipe.checksum is None:
            return told, True
        suspected = suspects()
        if suspected:
            return f"{told}: two runs of it do not give the same. Suspected: {'; '.join(suspected)}", False
        if not self.recipe.settled:
            return f"{told}, which {engine} does not promise to be the same in two runs of such a query", True
        return f"{told}: two runs of it do not give the same, and no function in it is known to be the cause", False


def run_first(settings: Settings, key: bytes, allow: bool, attempt: Callable[[Order], Answer]) -> Answer:
    """What came of the first recipe of a key that could be run; or why the latest could not."""
    enable(**asdict(settings))
    try:
        session = current()
        catalog = None if session is None else session.catalog
        if session is None or catalog is None:
            return Answer((f"the catalog in {settings.home} cannot be used",))
        return _first(session, catalog, key, allow, attempt)
    finally:
        disable()


def _first(session: Session, catalog: Catalog, key: bytes, allow: bool, attempt: Callable[[Order], Answer]) -> Answer:
    failed: list[Answer] = []
    for written in recipes_of(catalog, key):
        modules = CapturedModules(written.recipe.modules, written.texts)
        modules.install()
        try:
            return attempt(Order(session, catalog, written, allow))
        except RebuildError as error:
            failed.append(Answer(error.reasons))
        finally:
            modules.uninstall()
    return failed[0] if failed else Answer(("its recipe is of another version of Nectar",))


def because(*reasons: str) -> RebuildError:
    """Why a recipe cannot be run."""
    return RebuildError("the result", reasons)
