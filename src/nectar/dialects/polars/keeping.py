"""Keeping results: in the background, if they are worth it and their inputs are still what they were.

Whoever computes says so, and others wait for it; what is kept has a recipe, and what it came from goes on record.
"""

from __future__ import annotations

import io
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final

import polars as pl

from nectar.catalog.service import Kept
from nectar.dialects.polars.query import Query, about, changed, is_opened
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Entry
from nectar.recipes.folder import working_folder
from nectar.report.run import Part
from nectar.report.site import call_site
from nectar.rewrite.choose import Choice
from nectar.session import Session
from nectar.trust.secrets import logger
from nectar.waiting.health import worth

if TYPE_CHECKING:
    from nectar.dialects.polars.pickling import Pickles

_log: Final = logger("nectar.polars")


def claimed(query: Query, seconds: float = inf) -> bool:
    """Whether another process has computed the result meanwhile; otherwise this one says that it does.

    seconds: that the computation takes, as far as that is known.
    """
    root = query.keyed.program.root
    settings = query.session.settings
    if query.root.refusal or settings.refresh or query.catalog.read_only or not query.keyed.sources:
        return False
    if query.keyed.is_result(root):  # whoever makes it again reserves it, and would wait for us
        return False
    try:
        with worth(seconds):
            taken = query.session.reservations.take_or_wait(query.root.key)
    except EnvironmentFailure as failure:
        _log.info("others may compute the same: %s", failure)
        return False
    if isinstance(taken, Entry):
        if not is_opened(query, root, taken):
            return False
        query.choice = Choice({root: taken}, (), ())
        return True
    query.reservation = taken
    return False


def release(query: Query) -> None:
    """Nothing comes of this computation: others need not wait for it."""
    if query.reservation is not None:
        query.session.reservations.give_back(query.reservation)
        query.reservation = None


def learn_content(session: Session, path: str) -> None:
    """Reads, in the background, a file that was just written: whoever reads it later knows it by its content."""

    def learn() -> None:
        try:
            session.inputs.identify([path])
        except EnvironmentFailure as failure:  # deleted meanwhile, or somewhere that cannot be looked at
            _log.debug("%s is known by its origin only: %s", path, failure)

    session.keeper.submit(learn)


def keep(
    query: Query,
    number: int,
    frame: pl.DataFrame,
    seconds: float,
    part: Part | None = None,
    without: float | None = None,
) -> None:
    """Keeps a result, if it is worth it and its inputs are still what they were; all of that in the background.

    without: seconds that the program would have taken for it without Nectar, if they are not those.
    """
    node = query.keyed.program.nodes[number]
    part = part or Part(node.text)
    if node.refusal or query.keyed.is_result(number):
        return
    if query.observed and number in query.keyed.live:
        part.keeping = f"not kept: {query.observed}"
        return
    if pl.Object in frame.schema.dtypes():  # Polars has none inside other types
        part.keeping = "not kept: it holds Python objects (pl.Object)"
        return
    pickles = _pickles(query, number) if number in query.keyed.live else None
    if not query.keyed.runs_the_same(number):  # now, and not later: the program goes on, and may change them
        part.keeping = "not kept: a function in it, or what it refers to, changed while it ran"
        return
    size = int(frame.estimated_size())
    steering, asked = query.session.steering, query.asked and number == query.keyed.program.root
    gain = seconds if without is None else without
    why_not = "" if asked else steering.why_not_keep(gain, size, asked_before=number in query.growing)
    if why_not:
        part.keeping = f"not kept: {why_not}"
        return
    part.keeping, part.size = "being kept", size
    copy = _with_memory_of_its_own(frame) if query.keyed.reads_memory else frame.clone()
    made_from = [query.entries[each] for each in query.choice.hits]
    made_from += [entry for used in query.advanced.values() for entry in used]
    what, folder = about(query, number), working_folder()
    looking = frozenset(query.looking)
    reservation = None
    if number == query.keyed.program.root:  # what was reserved is the result, and none of its parts
        reservation, query.reservation = query.reservation, None
    now = query.session.clock.now()
    landed = Entry(
        node.key, node.program, "arrow", "", b"", size, 0, frame.height, seconds, query.began, now, about=what
    )
    pending, site = query.session.pending, call_site()
    pending[node.key] = (landed, copy)

    kept = False

    def write() -> None:
        nonlocal kept
        from nectar.dialects.polars.growth import spans_of, watch  # these take long to load
        from nectar.dialects.polars.provenance import sources_of
        from nectar.dialects.polars.recipe import Made, recorded
        from nectar.store.formats import arrow  # noqa: F401 - what writing loads is not the disk's time

        why_not = ("" if asked else query.catalog.worth_keeping(seconds, size)) or changed(query, looking)
        if why_not:
            part.keeping = f"not kept: {why_not.removeprefix('not kept: ')}"
            return
        keys = tuple(entry.key for entry in made_from)
        made = Made(query.keyed, number, copy, what, seconds, keys, folder, pickles)
        recipe = recorded(query.catalog, query.session.inputs, made)
        begun = perf_counter()
        answer = query.catalog.keep(
            node.key, node.program, copy, table=True, seconds=seconds, made_from=made_from, about=what,
            made=query.began, replaces=query.session.settings.refresh, spans=spans_of(query, number),
            sources=lambda: sources_of(query.keyed, number, copy, site),
            recipe=recipe.identity, rebuildable=recipe.rebuildable,
        )  # fmt: skip
        kept = isinstance(answer, Kept)
        part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"
        if isinstance(answer, Kept):
            query.session.totals.count_kept(answer.entry.size)
            steering.wrote(size, perf_counter() - begun)
            over()
            watch(query)  # when nobody waits any more: a file may have to be read

    def over() -> None:
        nonlocal reservation
        if part.keeping == "being kept":
            part.keeping = "not kept: the catalog could not be used"
        if pending.get(node.key, (None,))[0] is landed:
            del pending[node.key]
        held, reservation = reservation, None
        if held is not None:
            reservations = query.session.reservations
            reservations.done(held) if kept else reservations.give_back(held)

    query.session.keeper.submit(write, size, over)


def _pickles(query: Query, number: int) -> Pickles | None:
    from nectar.dialects.polars.recipe import pickles_at_once  # takes long to load, and most plans hold no function

    return pickles_at_once(query.keyed, number)


def _with_memory_of_its_own(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame; columns that came from memory may share it with an array that somebody changes."""
    memory = io.BytesIO()
    frame.write_ipc_stream(memory)
    memory.seek(0)
    copy = pl.read_ipc_stream(memory)
    marked = {name: flags for name, flags in frame.flags.items() if flags["SORTED_ASC"] or flags["SORTED_DESC"]}
    return (
        copy.with_columns(pl.col(name).set_sorted(descending=flags["SORTED_DESC"]) for name, flags in marked.items())
        if marked
        else copy
    )
