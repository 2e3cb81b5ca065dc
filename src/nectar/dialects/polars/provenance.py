"""What the result of a query came from: files, functions, other results. Told in the background, once it is kept."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator

import polars as pl
from msgspec.structs import replace

from nectar import __version__
from nectar.dialects.polars.derived import reader_of, schema_bytes
from nectar.dialects.polars.history import functions_in
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.plan import Step
from nectar.keys.values.polars_functions import callback_in
from nectar.model.lineage import FileRead, FunctionUsed, Sources
from nectar.rewrite.states import Piece
from nectar.store.inputs.identity import Identity


def sources_of(keyed: Keyed, node: int, frame: pl.DataFrame, site: str) -> Sources:
    """What the result of a node came from: of its whole program, also of parts that were taken from the store."""
    below = set(keyed.program.below(node))
    steps = [keyed.plan.steps[keyed.step_of[each]] for each in sorted(below)]
    identities = [
        identity for number, _, found in keyed.sources if keyed.node_of[number] in below for identity in found
    ]
    readers = [reader for step in steps if (reader := reader_of(step)) is not None]
    return Sources(
        files_of(identities),
        tuple(dict.fromkeys(function for step in steps for function in _functions_of(step))),
        tuple(dict.fromkeys(reader.key for reader in readers)),
        schema_bytes(frame),
        f"polars {pl.__version__}, python {platform.python_version()}, nectar {__version__}",
        site,
    )


def sources_of_state(keyed: Keyed, parts: Parts, piece: Piece[pl.DataFrame], site: str) -> Sources:
    """What the state of a part of streams came from."""
    whole = sources_of(keyed, parts.node, piece.frame, site)
    of_others = set(whole.files) - set(files_of(_identities(parts, 0, parts.cut.count)))
    return replace(whole, files=(*files_of(_identities(parts, piece.start, piece.end)), *sorted(of_others)))


def _identities(parts: Parts, start: int, end: int) -> Iterator[Identity]:
    for scan in parts.cut.scans:
        yield from (extent.upto for extent in parts.cut.extents_of(scan, start, end))


def files_of(identities: Iterable[Identity]) -> tuple[FileRead, ...]:
    """Files as they are remembered; their addresses hold no credentials."""
    return tuple(dict.fromkeys(FileRead(each.url, each.names[0], each.size) for each in identities))


def _functions_of(step: Step) -> Iterator[FunctionUsed]:
    if step.kind in ("Scan", "DataFrameScan", "PythonScan"):
        return
    for pickled in functions_in(step.body, (step.kind,)):
        from nectar.keys.outcome import outcome_of  # takes long to load, and most plans hold no function
        from nectar.keys.sources import functions_of

        callback = callback_in(pickled, "a Polars plan")
        yield from functions_of(outcome_of(callback, memory=callback.outcomes).walk)
