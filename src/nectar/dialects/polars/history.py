"""What queries were: a short record of each one that had to be computed, so that a later one can say what changed.

A record belongs to a script. It is written in the background after a computation, and read when somebody asks for the
reason of a miss. It holds words and digests, no data, and of files their names and digests only.
"""

from __future__ import annotations

import sys
import uuid
import weakref
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import polars as pl
from msgspec import Struct

from nectar.catalog.losses import whole_recipe
from nectar.catalog.service import Catalog
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.plan import Step
from nectar.dialects.polars.words import detail_of, phrases_of
from nectar.keys.values.polars_functions import callback_in
from nectar.keys.values.polars_plans import is_python
from nectar.trust.secrets import logger, redacted

_log: Final = logger("nectar.polars")
_PROCESS: Final = uuid.uuid4().hex
_COMPARED: Final = 40  # of the latest records of a script
_MOST_FILES: Final = 1000  # of a scan; the names of more are not written down
_MOST_STEPS: Final = 500  # of a query; larger ones are made by programs, and told of by nobody
_DIGITS: Final = 16  # of each digest: nothing is decided by a record, so chance may be trusted
_KEYS: Final = 4  # of the way to a piece, so many of the last keys tell what it is
_written: Final[weakref.WeakKeyDictionary[Catalog, set[bytes]]] = weakref.WeakKeyDictionary()
_MOST_WRITTEN: Final = 1000  # by one process: a loop over thousands of queries needs no more to be told of


class StepRecord(Struct, frozen=True):
    """A step as it was.

    detail: in one line. phrases: one for each expression and option. own: digest of what it does. keys, program: as in
    its node. files: of a scan, names and digests. traces: of its Python functions, as JSON.
    """

    text: str
    detail: str
    phrases: tuple[str, ...]
    own: str
    keys: tuple[str, ...]
    program: str
    files: tuple[tuple[str, str], ...] = ()
    traces: tuple[str, ...] = ()


class ProgramRecord(Struct, frozen=True):
    """A query as it was. process, site: who ran it, and where in the code. at: when. steps: inputs first."""

    process: str
    site: str
    at: float
    polars: str
    steps: tuple[StepRecord, ...]


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.json.Decoder(ProgramRecord).decode


def record_of(keyed: Keyed, site: str, at: float) -> ProgramRecord:
    """The record of a query as it is."""
    return ProgramRecord(_PROCESS, site, at, pl.__version__, tuple(_steps(keyed)))


def _steps(keyed: Keyed) -> Iterator[StepRecord]:
    sources = {
        number: tuple(
            (_file_name(file), short(identity.names[0]))
            for file, identity in zip(source.files[:_MOST_FILES], identities, strict=False)
        )
        for number, source, identities in keyed.sources
    }
    for node, number in zip(keyed.program.nodes, keyed.step_of, strict=True):
        step = keyed.plan.steps[number]
        keys = tuple(map(short, node.keys))
        if not node.inputs:
            yield StepRecord(redacted(node.text), "", (), keys[0], keys, short(node.program), sources.get(number, ()))
            continue
        content = keyed.contents[number]
        assert content is not None, "only sources have none"
        traces = tuple(_traces(step)) if content.live else ()
        yield StepRecord(
            redacted(node.text), detail_of(step), phrases_of(step), short(content.canonical), keys, short(node.program),
            traces=traces,
        )  # fmt: skip


def short(digest: bytes) -> str:
    """Enough of a digest to know it again."""
    return digest.hex()[:_DIGITS]


def _traces(step: Step) -> Iterator[str]:
    for pickled in functions_in(step.body, (step.kind,)):
        from nectar.keys.api import trace  # takes long to load, and most plans hold no function

        try:
            yield trace(callback_in(pickled, "a Polars plan")).to_json()
        except Exception as error:  # pickles of others may raise anything; the step is still compared by its digest
            _log.debug("no trace of a function: %s", error)


def functions_in(value: Any, keys: tuple[str, ...]) -> Iterator[bytes]:
    """The Python functions in a step, as Polars pickles them; keys: where the value stands.

    What people gave is none of them, whatever it looks like.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from functions_in(inner, (*keys[-_KEYS:], str(name)))
    elif isinstance(value, bytes):
        if is_python(keys):
            yield value
    elif isinstance(value, list):
        if is_python(keys) and value and all(type(each) is int for each in value):
            yield bytes(value)
        else:
            for inner in value:
                yield from functions_in(inner, keys)


def _file_name(path: str) -> str:
    """The last two parts of a path or URL; what stands before or behind them may be a secret."""
    parts = PurePath(urlsplit(path).path if "://" in path else path).parts
    return "/".join(parts[-2:]).lstrip("/")


# where


def label() -> str:
    """What the records of this script are found by."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return f"polars {PurePath(file).stem}" if file else "polars"


# writing and reading


def remember(catalog: Catalog, keyed: Keyed, site: str, at: float) -> None:
    """The query is on record; once a process is enough. Whatever goes wrong, only words are lost."""
    root = keyed.program.nodes[-1]
    written = _written.setdefault(catalog, set())
    if root.refusal or catalog.read_only or root.key in written or len(written) >= _MOST_WRITTEN:
        return
    if len(keyed.program.nodes) > _MOST_STEPS:
        return
    written.add(root.key)
    try:
        catalog.add_version(label(), root.key, msgspec.json.encode(record_of(keyed, site, at)))
    except Exception as error:
        _log.info("no record of a query is kept: %s: %s", type(error).__name__, error)


def nearest(catalog: Catalog, current: ProgramRecord) -> ProgramRecord | None:
    """The earlier record of this script that has most in common with a query; None if there is none."""
    best, most = None, 0
    # A record may have been written after the query began, in the background, and yet be of an earlier one.
    for version in catalog.index.versions(label())[:_COMPARED]:
        parts = whole_recipe(catalog.index, version.trace)
        record = _decoded(parts[0]) if parts else None
        if record is None or record.at >= current.at or _is_another_query(record, current):
            continue
        score = _in_common(record, current)
        if score > most:
            best, most = record, score
    return best


def _decoded(data: bytes) -> ProgramRecord | None:
    try:
        return _decode(data)
    except msgspec.DecodeError:  # of another version of Nectar
        return None


def _is_another_query(record: ProgramRecord, current: ProgramRecord) -> bool:
    """Whether a record is of a neighbour in the same run, and not of an earlier state of the same query."""
    is_script = getattr(sys.modules.get("__main__"), "__file__", None) is not None
    return is_script and record.process == current.process and record.site != current.site


def _in_common(record: ProgramRecord, current: ProgramRecord) -> int:
    keys = {key for step in record.steps for key in step.keys}
    programs = {step.program for step in record.steps}
    owns = {step.own for step in record.steps}
    return (
        sum(not keys.isdisjoint(step.keys) for step in current.steps)
        + sum(step.program in programs for step in current.steps)
        + sum(step.own in owns for step in current.steps)
        + (record.site == current.site)
        - abs(len(record.steps) - len(current.steps))
    )
