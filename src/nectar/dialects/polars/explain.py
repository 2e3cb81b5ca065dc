"""What becomes of each part of a query, and why: before it runs, without running it.

In: a lazy frame, or a query that is about to run. Out: a QueryExplanation. Looking counts as no use and no look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.difference import Change, changes
from nectar.dialects.polars.history import ProgramRecord, nearest, record_of, short
from nectar.dialects.polars.incremental.outline import Outline, growth, outlines
from nectar.dialects.polars.incremental.rules import rules_for
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.query import Query, keyed_or_why_not, refused_if_observed
from nectar.dialects.polars.words import detail_of
from nectar.errors import NectarError
from nectar.report.explanation import Becomes, PlannedPart, QueryExplanation, of_entry, uncacheable, visible
from nectar.report.site import call_site
from nectar.report.watchers import watchers
from nectar.rewrite.choose import Choice, choose, wanted
from nectar.session import Session
from nectar.trust.secrets import logger

_log: Final = logger("nectar.polars")
_SHOWN_CHANGES: Final = 2
_PATIENCE: Final = 1.0  # seconds
_FIRST: Final = "it runs for the first time"


def explained(session: Session, frame: pl.LazyFrame) -> QueryExplanation:
    """What would become of a query if it ran now; nothing is run."""
    catalog = session.catalog
    if catalog is None:
        return uncacheable("the catalog cannot be used")
    session.settle(_PATIENCE)  # what is about to be written is known
    catalog.flush()
    try:
        found = keyed_or_why_not(frame, session.inputs)
        if isinstance(found, str):
            return uncacheable(found)
        found = refused_if_observed(found, catalog)
    except NectarError as error:
        return uncacheable(str(error))
    except (Exception, pl.exceptions.PanicException) as error:  # what is wrong with it, running it says better
        first, *_ = str(error).splitlines() or [""]
        return uncacheable(f"its plan cannot be read: {type(error).__name__}: {first}")
    choice, growing = _planned(session, catalog, found)
    ahead = _ahead(catalog, found, choice, growing, session.settings.exact_floats)
    return explanation(catalog, found, choice, call_site(), session.clock.now(), ahead)


def _planned(session: Session, catalog: Catalog, found: Keyed) -> tuple[Choice, frozenset[int]]:
    """What would be taken from the store; and which of the others were asked for before, over other files."""
    program = found.program
    asked = [] if session.settings.refresh else wanted(program)
    known = catalog.index.lookup([key for number in asked for key in program.nodes[number].keys])
    entries = {
        number: entry
        for number in asked
        if (entry := next((known[key] for key in program.nodes[number].keys if key in known), None)) is not None
    }
    counts = catalog.index.lookups([program.nodes[number].program for number in asked])
    lookups = {number: counts.get(program.nodes[number].program, 0) for number in asked}
    choice = choose(program, entries, lookups)
    return choice, frozenset(number for number in choice.computed if lookups.get(number))


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is put together from parts, and what becomes of the query when files are added."""

    put_together: Mapping[int, Outline] = field(default_factory=dict)
    growth: str = ""


def _ahead(catalog: Catalog, found: Keyed, choice: Choice, growing: frozenset[int], exact_floats: bool) -> Ahead:
    if found.program.root in choice.hits or found.program.nodes[-1].refusal or not found.identities:
        return Ahead()
    rules = rules_for(found, catalog, exact_floats)
    try:
        return Ahead(outlines(rules, growing, choice.hits), growth(rules))
    except (NectarError, pl.exceptions.PolarsError) as error:  # running it says better what is wrong
        _log.debug("what grows could not be told: %s", error)
        return Ahead()


# for those who want to see every query that runs


def tell_watchers(query: Query | str) -> None:
    """Everybody who watches gets the explanation of a query that is about to run, which runs whatever goes wrong."""
    try:
        if isinstance(query, str):
            found = uncacheable(query)
        else:
            exact = query.session.settings.exact_floats
            ahead = _ahead(query.catalog, query.keyed, query.choice, query.growing, exact)
            found = explanation(query.catalog, query.keyed, query.choice, call_site(), query.began, ahead)
        for watcher in watchers:
            watcher(found)
    except Exception:
        _log.exception("a query could not be explained")


# reasons


def why_missed(session: Session, found: Keyed, site: str, began: float) -> Callable[[], str]:
    """Tells, when it is asked, why the result of a query was not known. It holds no results."""

    def reason() -> str:
        root = found.program.nodes[-1]
        if root.refusal:
            return root.refusal
        if session.settings.refresh:
            return "asked for anew"
        try:
            session.settle(_PATIENCE)  # queries that ran just before go on record in the background
            with session.looking() as catalog:
                return "" if catalog is None else _told(catalog, found, *_compared(catalog, found, site, began), began)
        except Exception as error:  # a report must not fail for want of words
            return f"the reason cannot be told: {type(error).__name__}: {error}"

    return reason


def _compared(catalog: Catalog, found: Keyed, site: str, began: float) -> tuple[ProgramRecord | None, list[Change]]:
    """The nearest earlier query, and what changed since; nothing, if there are no words for it."""
    try:
        current = record_of(found, site, began)
        before = nearest(catalog, current)
        return before, [] if before is None else changes(before, current)
    except RecursionError:
        return None, []


def _told(catalog: Catalog, found: Keyed, before: ProgramRecord | None, since: Sequence[Change], began: float) -> str:
    root = found.program.nodes[-1]
    if before is None:
        others = [each for each in catalog.inquire([root.program])[root.program] if each.created < began]
        return "it is known for other content of its files, not for this" if others else _FIRST
    if not since:
        return "it has run before, but its result was not kept, or has been deleted since"
    more = len(since) - _SHOWN_CHANGES
    shown = "; ".join(change.what for change in since[:_SHOWN_CHANGES])
    return f"{shown} (and {more} more)" if more > 0 else shown


# the tree


def explanation(
    catalog: Catalog, found: Keyed, choice: Choice, site: str, now: float, ahead: Ahead
) -> QueryExplanation:
    """What becomes of a query, as it was decided."""
    program = found.program
    if program.root in choice.hits:
        before, since = None, list[Change]()
    else:
        before, since = _compared(catalog, found, site, now)
    told = {change.at: change.what for change in reversed(since)}
    known_before = set() if before is None else {key for step in before.steps for key in step.keys}
    parts = tuple(
        _put_together(found, ahead.put_together[number], number, depth)
        if number in ahead.put_together
        else _part(found, choice, number, depth, again, told, known_before)
        for number, depth, again in visible(program, {*choice.hits, *ahead.put_together})
    )
    root = program.nodes[-1]
    reason = "" if program.root in choice.hits else root.refusal or _told(catalog, found, before, since, now)
    return QueryExplanation(parts, reason, ahead.growth)


def _put_together(found: Keyed, outline: Outline, number: int, depth: int) -> PlannedPart:
    detail = detail_of(found.plan.steps[found.step_of[number]])
    text = found.program.nodes[number].text
    return PlannedPart(depth, text, detail, "put together", str(outline), outline.saved)


def _part(
    found: Keyed, choice: Choice, number: int, depth: int, again: bool, told: Mapping[int, str], known: set[str]
) -> PlannedPart:
    node = found.program.nodes[number]
    detail = detail_of(found.plan.steps[found.step_of[number]])
    entry = choice.hits.get(number)
    if entry is not None:
        return PlannedPart(depth, node.text, detail, "reused", of_entry(entry), 0.0 if again else entry.seconds)
    if node.refusal:
        return PlannedPart(depth, node.text, detail, "not cached", "see above" if again else node.refusal)
    becomes: Becomes = "kept" if number in choice.keep else "computed"
    if again:
        return PlannedPart(depth, node.text, detail, becomes, "see above")
    note = told.get(number, "").removeprefix(f"{node.text}: ")
    if not note and not node.is_input and not known.isdisjoint(map(short, node.keys)):
        note = "done before, but not kept"
    return PlannedPart(depth, node.text, detail, becomes, note)
