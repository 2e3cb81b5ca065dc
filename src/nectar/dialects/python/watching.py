"""Watching a call of a memoised function while it is computed, and what follows from what was seen.

Law: what a call did that its key does not show means that it is not kept. If it is certain that it was this call, the
function is remembered, so that no process tries again; the program goes on with the value that was computed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from types import FunctionType
from typing import Final

from nectar.dialects.python.declared_inputs import File, Folder, Fresh
from nectar.keys import declared
from nectar.keys.ambient import tells_states
from nectar.keys.call import Call, libraries_of
from nectar.keys.thread_states import stands_in_keys
from nectar.observation.effects import Allowed
from nectar.observation.imports import followed, module_named
from nectar.observation.profile import told
from nectar.observation.reach import Source, sources_reached
from nectar.observation.texts import texts_of
from nectar.observation.watch import Watch

_OF_FILES: Final = ("reads ", "lists ", "looks for ", "opens ")


def advice_about(text: str) -> str:
    """What to do about something that a function was seen to do."""
    say = "say with nectar.depends_on or nectar.pure that its result depends on nothing else"
    names_file = text.startswith(_OF_FILES) and ("/" in text.split(" (")[0] or "\\" in text)
    return f"Hand it files as nectar.File, or {say}" if names_file else f"If you know better, {say}"


def watch_of(call: Call, function: object, arguments: Mapping[str, object], cooperative: bool) -> Watch | None:
    """What watches the computation of a call; None for a function that somebody vouches for."""
    if declared.is_pure(function):
        return None
    reached = [each.function for each in list(call.walk.examined.values())]
    functions = [each for each in reached if type(each) is FunctionType]
    texts = texts_of(functions, arguments.values())
    vouched = any(map(declared.is_pure, functions))
    kinds = frozenset(call.walk.all_kinds())
    key = kinds, len(sys.modules)  # which decide what methods of unknown values may be
    sources = call.findings.get(key)
    if sources is None:
        sources = call.findings[key] = sources_reached(functions, kinds)
    named = module_named(sources, functions, arguments.values())
    watched = followed(sources)
    return Watch(
        _allowed(call.inputs), texts, cooperative=cooperative, vouched=vouched, sources=watched, named=named,
        known=_known(watched, call),
    )  # fmt: skip


def _known(sources: Collection[Source], call: Call) -> frozenset[str]:
    """What may be read, as it would be told: states of this thread that stand in the key."""
    libraries = [each for each in libraries_of(call) if tells_states(each)]
    found: dict[str, bool] = {}
    for each in sources:
        text = told(each.what, each.code)
        stands = each.state is not None and any(stands_in_keys(each.state, library) for library in libraries)
        found[text] = stands and found.get(text, True)
    return frozenset(text for text, stands in found.items() if stands)


def _allowed(inputs: Iterable[object]) -> Allowed:
    files = {value.path for value in inputs if isinstance(value, File)}
    fresh = [value.source for value in inputs if isinstance(value, Fresh)]
    files |= {os.path.abspath(os.path.expanduser(source)) for source in fresh if isinstance(source, (str, os.PathLike))}
    folders = tuple(os.path.join(value.path, "") for value in inputs if isinstance(value, Folder))
    return Allowed(frozenset(map(str, files)), folders, bool(fresh))
