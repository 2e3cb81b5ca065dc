"""Watching queries that hold Python functions while they run, and what follows from what was seen.

Law: a result is not kept if a Python function did something that no key shows. If it is certain that it was this query,
its program is remembered, so that no process tries again. Queries without Python functions are not watched: what Polars
itself reads and writes stands in their plans.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any, Final, TypeVar

import msgspec
import polars as pl

from nectar.dialects.observed import told
from nectar.dialects.polars.pickling import functions_in
from nectar.dialects.polars.query import Query, Run
from nectar.errors import NectarError, NectarWarning
from nectar.keys import declared
from nectar.keys.values import polars_functions
from nectar.keys.values.polars_plans import Callback
from nectar.keys.walk import Walk
from nectar.observation import monitoring, profile
from nectar.observation.effects import Allowed, Observation
from nectar.observation.imports import followed, module_named
from nectar.observation.reach import sources_reached
from nectar.observation.texts import texts_of
from nectar.observation.watch import Watch
from nectar.overhead.sites import frame_of_program
from nectar.trust.secrets import logger, redacted

_T = TypeVar("_T")
if not monitoring.IS_THERE:
    polars_functions.through = profile.call
_ADVICE: Final = "Say with nectar.pure that the result of the function depends on nothing else, if you know it"
_IN_EXPRESSION: Final = "This error occurred in the following expression:"
_log: Final = logger("nectar.polars")


def watched(query: Query, run: Run) -> Run:
    """Runs parts of a query as `run` does; what their Python functions do is seen."""
    return (lambda frame: watching([query], lambda: run(frame))) if query.keyed.live else run


def watching(queries: Sequence[Query], run: Callable[[], _T]) -> _T:
    """What running queries gives; each that holds Python functions gets to know what was seen meanwhile."""
    live = [query for query in queries if query.keyed.live]
    if not live:
        return run()
    watch = _begun(live)
    try:
        found = run()
    except BaseException as error:
        _end(watch, live, error)
        _name_functions(error)
        raise
    _end(watch, live)
    return found


def _name_functions(error: BaseException) -> None:
    """The message of an error calls Python functions as Polars does, which forgets it when a plan is written down."""
    if len(error.args) == 1 and type(error.args[0]) is str and _IN_EXPRESSION in error.args[0]:
        said, place, expression = error.args[0].partition(_IN_EXPRESSION)
        error.args = (said + place + expression.replace(".()", ".python_udf()"),)


def _begun(queries: Sequence[Query]) -> Watch | None:
    """What watches queries from now on; None if that cannot be had, and then they are not kept."""
    try:
        sources = [source for query in queries for _, source, _ in query.keyed.sources]
        files = [os.path.abspath(path) for source in sources for path in source.files]
        for query in queries:
            query.keyed.begin()
        callbacks = [callback for query in queries for callback in _callbacks_of(query)]
        walks = _walks_of(callbacks)
        functions = [function for walk in walks for function in _functions_in(walk)]
        reached = sources_reached(functions, frozenset().union(*(walk.kinds for walk in walks)))
        watch = Watch(
            Allowed(frozenset(files)),
            texts_of(functions, _frames_of(queries)),
            vouched=any(map(declared.is_pure, functions)),
            sources=followed(reached),
            named=module_named(reached, functions, ()),
            elsewhere=True,
            called=all(each.called is not each.function for each in callbacks),
        )
        watch.begin()
        return watch
    except Exception:  # a mistake in Nectar must not stop the program
        _cannot_watch(queries)
        return None


def _frames_of(queries: Sequence[Query]) -> list[pl.DataFrame]:
    """The frames in memory that queries hold, which may name files; large ones are not cached at all."""
    held = [msgspec.msgpack.decode(frame) for query in queries for frame in query.keyed.plan.frames[1:]]
    return [pl.read_ipc_stream(bytes(stream)) for frame in held for stream in frame["value"]]


def _end(watch: Watch | None, queries: Sequence[Query], error: BaseException | None = None) -> None:
    """The queries know what was seen, if they gave anything that could be kept."""
    if watch is None:
        return
    try:
        watch.end(error)
        observations = watch.observations() if error is None else []
        for query in queries if observations else ():
            _note(query, observations, alone=len(queries) == 1)
    except Exception:  # a mistake in Nectar must not stop the program
        _cannot_watch(queries)


def _cannot_watch(queries: Sequence[Query]) -> None:
    _log.exception("what the Python functions of a query do could not be seen")
    for query in queries:
        query.observed = "what its Python functions do could not be seen"


def _walks_of(callbacks: Sequence[Callback]) -> list[Walk]:
    """Over functions of queries and what they hold; none over those that are refused, which nobody keeps."""
    from nectar.keys.outcome import outcome_of  # takes long to load, and most plans hold no function

    walks = []
    for callback in callbacks:
        with suppress(NectarError):
            walks.append(outcome_of(callback, memory=callback.outcomes).walk)
    return walks


def _functions_in(walk: Walk) -> list[FunctionType]:
    """The functions of the application that a walk has reached."""
    return [each.function for each in list(walk.examined.values()) if type(each.function) is FunctionType]


def _callbacks_of(query: Query) -> list[Callback]:
    plan = query.keyed.plan
    return functions_in(plan, range(len(plan.steps)))


def _note(query: Query, observations: Sequence[Observation], alone: bool) -> None:
    text, certain = told(observations)
    if not certain or not alone:
        query.observed = f"something happened while it ran that a Python function in it may have done: it {text}"
        return
    query.observed = f"a Python function in it {text}"
    if not query.root.refusal:  # which says why it is not kept already
        query.catalog.observed.add(query.root.program, text, query.session.clock.now())
        _warn(f"a query is computed each time: {query.observed}. {_ADVICE}")


def _warn(text: str) -> None:
    """Says, where the program runs the query, why it is computed each time."""
    frame: Any = frame_of_program()
    text = redacted(text)
    try:
        if frame is not None:
            warnings.warn_explicit(text, NectarWarning, frame.f_code.co_filename, frame.f_lineno)
    except NectarWarning as warning:  # where warnings are errors; the program runs all the same
        _log.warning("%s", warning)
