"""Growing streams: what was computed of their parts before is put together with what is new.

Rows (filters, selections, new columns) are put one after the other; group-bys are made from states (aggregates/) of
runs of the stream: those that are known, and one computed for each gap. Law: the result is what the computation over
all files would have given, in names, types, order and values, but for the last bits of floats; if that is not certain,
nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.aggregates import LAYOUT, States, expression_of, taken_apart
from nectar.dialects.polars.elementwise import is_elementwise, reads_rows
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.plan import Plan, Step
from nectar.dialects.polars.scans import segment
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.model.entry import Entry, Span
from nectar.rewrite.segments import Gap, Run, cover
from nectar.store.inputs.identity import Identity
from nectar.store.read import Result

ROW_WISE: Final = frozenset({"Filter", "Select", "HStack"})


@dataclass(frozen=True, slots=True)
class Growing:
    """A group-by that can be computed in parts.

    node, step: the group-by. scan: the step that reads the stream. program: fingerprint of the computation of a state.
    """

    node: int
    step: int
    scan: int
    program: bytes
    keys: tuple[pl.Expr, ...]
    states: States
    finishing: tuple[pl.Expr, ...]
    ordered: bool
    identities: tuple[Identity, ...]
    files: tuple[str, ...]
    schema: pl.Schema
    others: tuple[bytes, bytes] = (b"", b"")  # what else is read: joined sides, by their first and by their last keys


@dataclass(frozen=True, slots=True)
class Piece:
    """A state to be kept: of which run, and what it took."""

    start: int
    end: int
    frame: pl.DataFrame
    seconds: float


def growing(keyed: Keyed, node: int, exact_floats: bool) -> Growing | str:
    """A node as a group-by that can be computed in parts, or why it cannot."""
    number = keyed.step_of[node]
    step = keyed.plan.steps[number]
    if step.kind != "GroupBy" or keyed.program.nodes[node].refusal:
        return "it is no group-by"
    options = step.body["options"]
    if step.body["apply"] is not None or any(options.get(name) for name in ("dynamic", "rolling", "slice")):
        return "its groups are windows, or are handed to a function"
    if not all(map(is_elementwise, step.body["keys"])) or step.body.get("predicates"):
        return "what it groups by is not computed row by row"
    scan = _stream_below(keyed.plan, step)
    if isinstance(scan, str):
        return scan
    return _taken_apart(keyed, node, number, step, scan, exact_floats)


@dataclass(frozen=True, slots=True)
class GrowingRows:
    """Rows of a stream that can be computed in parts.

    steps: the scan, and each step over the one before. closing: how many of the last ones (a sort, a slice, a removal
    of duplicates) are done once more over what the parts gave.
    """

    node: int
    steps: tuple[int, ...]
    closing: int
    identities: tuple[Identity, ...]
    files: tuple[str, ...]


def growing_rows(keyed: Keyed, node: int) -> GrowingRows | None:
    """A node as rows of a stream that can be computed in parts; None if it is not."""
    plan, number = keyed.plan, keyed.step_of[node]
    closing = _closing(plan, number)
    if keyed.program.nodes[node].refusal or closing is None:
        return None
    steps = [number]
    for _ in range(closing):
        steps.insert(0, plan.steps[steps[0]].inputs[0])
    scan = _stream_at(plan, steps[0])
    found = next((each for each in keyed.sources if each[0] == scan), None)
    if isinstance(scan, str) or found is None or scan == number:
        return None
    while steps[0] != scan:
        steps.insert(0, plan.steps[steps[0]].inputs[0])
    return GrowingRows(node, tuple(steps), closing, found[2], found[1].files)


def _closing(plan: Plan, number: int) -> int | None:
    """How many steps, this one the last, are done again over parts; None if parts cannot be put together."""
    step = plan.steps[number]
    if step.kind in ROW_WISE or (step.kind == "Join" and _is_row_wise_join(step)):
        return 0
    if step.kind == "Sort":
        return 1 if _is_plain_sort(step) else None
    if step.kind == "Distinct":
        options = step.body["options"]
        plain = all(map(is_elementwise, options["subset"] or ()))
        return 1 if plain and options["keep_strategy"] in ("First", "Last", "Any") else None
    if step.kind != "Slice" or not _is_from_an_end(step):
        return None
    below = plan.steps[step.inputs[0]]
    return 2 if below.kind == "Sort" and _is_plain_sort(below) else 1 if below.kind in (*ROW_WISE, "Scan") else None


def _is_plain_sort(step: Step) -> bool:
    return step.body.get("slice") is None and all(map(is_elementwise, step.body["by_column"]))


def _is_from_an_end(step: Step) -> bool:
    """Whether a slice is a head or a tail: then it is one of the heads, or tails, of the parts."""
    offset, length = step.body["offset"], step.body["len"]
    return bool(offset == 0 or (offset < 0 and length is not None and length == -offset))


def rows_key(keyed: Keyed, made: GrowingRows, start: int, end: int, which: int = 0) -> bytes:
    """The key of the rows of a run."""
    return key_over(keyed, made.steps, [identity.names[which] for identity in made.identities[start:end]], which)


def put_together(
    keyed: Keyed,
    made: GrowingRows,
    catalog: Catalog,
    run: Callable[[pl.LazyFrame], pl.DataFrame],
    known: Mapping[int, pl.LazyFrame] = {},
) -> tuple[pl.DataFrame, list[Entry]] | None:
    """The rows, those of known runs from the store; None if nothing is known of them."""
    program = keyed.program.nodes[made.node].program
    entries = catalog.inquire([program])[program]
    runs = _runs_of(made.identities, entries, lambda start, end, which: rows_key(keyed, made, start, end, which))
    if not runs:
        return None
    frames: list[pl.LazyFrame] = []
    used: list[Entry] = []
    for piece in cover(len(made.files), runs):
        if isinstance(piece, Gap):
            scan = segment(keyed.plan, made.steps[0], made.files[piece.start : piece.end])
            if scan is None:
                return None
            beside = _beside(keyed.plan, known, made.steps[-1], made.steps[0])
            frames.append(keyed.plan.frame(made.steps[-1], {**beside, made.steps[0]: scan}))
        else:
            part = _opened(catalog, piece.what)
            if part is None:
                return None
            frames.append(part.lazy())
            used.append(piece.what)
    return _closed(keyed.plan, made, run(pl.concat(frames)), run), used


def _closed(
    plan: Plan, made: GrowingRows, parts: pl.DataFrame, run: Callable[[pl.LazyFrame], pl.DataFrame]
) -> pl.DataFrame:
    """What the closing steps make of the parts, put one after the other."""
    if not made.closing:
        return parts
    together = StoredFrame(parts)
    try:
        return run(plan.frame(made.steps[-1], {made.steps[-1 - made.closing]: together.lazy()}))
    finally:
        together.close()


def _stream_below(plan: Plan, step: Step) -> int | str:
    """The scan that a step reads through nothing but row-wise steps."""
    return _stream_at(plan, step.inputs[0])


def _stream_at(plan: Plan, number: int) -> int | str:
    """The scan whose rows a step gives, one by one: changed, left out, or joined with what does not grow."""
    joined_with: list[int] = []
    while (below := plan.steps[number]).kind in ROW_WISE or below.kind == "Join":
        if below.kind == "Join":
            if not _is_row_wise_join(below):
                return "a join below it is not computed row by row of its left side"
            joined_with.append(below.inputs[1])
        elif not _is_row_wise(below):
            return f"{below.kind.lower()} below it looks at several rows at once"
        number = below.inputs[0]
    if below.kind != "Scan":
        return f"{below.kind.lower()} below it is not computed row by row"
    if any(_reads_files_of(plan, other, number) for other in joined_with):
        return "it is joined with the very stream that grows"
    return number


def _is_row_wise(step: Step) -> bool:
    """Whether each row of the input gives its row, or none; a selection of literals alone is one row in all."""
    expressions = _expressions(step)
    return all(map(is_elementwise, expressions)) and (step.kind != "Select" or any(map(reads_rows, expressions)))


def _expressions(step: Step) -> list[Any]:
    return step.body.get("expr") or step.body.get("exprs") or [step.body.get("predicate")]


def _is_row_wise_join(step: Step) -> bool:
    """Whether each row of the left side gives its rows whatever the others are."""
    arguments = step.body["options"]["args"]
    plain = arguments["how"] in ("Inner", "Left", "Semi", "Anti", "Cross") and arguments["slice"] is None
    conditions = step.body["condition"]
    on = conditions.get("Equi") if isinstance(conditions, dict) else None
    sides = [] if on is None else [*on["left_on"], *on["right_on"]]
    known = on is not None or arguments["how"] == "Cross"
    return plain and known and arguments["validation"] == "ManyToMany" and all(map(is_elementwise, sides))


def _reads_files_of(plan: Plan, number: int, scan: int) -> bool:
    """Whether a step reads the same source as a scan: then it grows as well."""
    pending = [number]
    while pending:
        step = plan.steps[pending.pop()]
        if step.kind == "Scan" and step.body["sources"] == plan.steps[scan].body["sources"]:
            return True
        pending.extend(step.inputs)
    return False


def _taken_apart(keyed: Keyed, node: int, number: int, step: Step, scan: int, exact_floats: bool) -> Growing | str:
    schema_below = keyed.plan.frame(step.inputs[0]).collect_schema()
    apart = taken_apart(step.body["aggs"], schema_below, step.body["keys"])
    if isinstance(apart, str):
        return apart
    found = next(((source, each) for at, source, each in keyed.sources if at == scan), None)
    if found is None:
        return "its stream is not known by its files"
    source, identities = found
    keys = tuple(map(expression_of, step.body["keys"]))
    below = keyed.program.nodes[keyed.node_of[step.inputs[0]]]
    program = digest_of(joined(f"state {LAYOUT}", keyed.program.nodes[node].program, below.program))
    made = Growing(
        node, number, scan, program, keys, apart.states, apart.finishing,
        bool(step.body["maintain_order"]), identities, source.files, pl.Schema(), _others(keyed, step.inputs[0], scan),
    )  # fmt: skip
    schema = keyed.plan.frame(number).collect_schema()
    return _checked(keyed.plan, made, schema, exact_floats)


def _checked(plan: Plan, made: Growing, schema: pl.Schema, exact_floats: bool) -> Growing | str:
    """The same, once it is certain that merging gives the very columns that grouping gives."""
    if segment(plan, made.scan, made.files[:1]) is None:
        return "its files cannot be read one by one"
    empty = _state_plan(plan, made, made.files)
    if empty is None:
        return "its files cannot be read one by one"
    types = empty.collect_schema()
    if exact_floats and made.states.depend_on_cuts(types):
        return "sums of floats depend on how a stream is cut, and exact_floats is set"
    merged = _merged(made, [pl.DataFrame(schema=types)]).collect_schema()
    if list(merged) != list(schema):
        return "merging would give other columns"
    casts = [name for name in schema if merged[name] != schema[name]]
    if any(not (merged[name].is_float() and schema[name].is_float()) for name in casts):
        return "merging would give other types"
    return _with(made, schema)


def _with(made: Growing, schema: pl.Schema) -> Growing:
    finishing = tuple(
        each.cast(schema[each.meta.output_name()]) if schema[each.meta.output_name()].is_float() else each
        for each in made.finishing
    )
    return replace(made, finishing=finishing, schema=schema)


def _others(keyed: Keyed, number: int, scan: int) -> tuple[bytes, bytes]:
    """The keys of what the steps down to a scan are joined with."""
    found: list[tuple[bytes, ...]] = []
    while number != scan:
        inputs = keyed.plan.steps[number].inputs
        found += [keyed.program.nodes[keyed.node_of[other]].keys for other in inputs[1:]]
        number = inputs[0]
    return b"".join(keys[0] for keys in found), b"".join(keys[-1] for keys in found)


def key_of(made: Growing, start: int, end: int, which: int = 0) -> bytes:
    """The key of the state of a run. which: 0 by the best names of its files, -1 by the last."""
    names = b"".join(identity.names[which] for identity in made.identities[start:end])
    return digest_of(joined("state of", made.program, made.others[which], names))


def known_runs(made: Growing, entries: Sequence[Entry]) -> list[Run[Entry]]:
    """The entries that are states of runs of this stream: found by their first files, proven by their keys."""
    return _runs_of(made.identities, entries, lambda start, end, which: key_of(made, start, end, which))


def _runs_of(
    identities: Sequence[Identity], entries: Sequence[Entry], key: Callable[[int, int, int], bytes]
) -> list[Run[Entry]]:
    at: dict[bytes, list[int]] = {}
    for number, identity in enumerate(identities):
        for name in identity.names:
            at.setdefault(name, []).append(number)
    runs = []
    for entry in entries:
        for span in entry.spans[:1]:
            for start in at.get(span.first, ()):
                end = start + span.count
                if end <= len(identities) and entry.key in {key(start, end, which) for which in (0, -1)}:
                    runs.append(Run(start, end, float(span.count), entry))
    return runs


def advance(
    made: Growing,
    plan: Plan,
    catalog: Catalog,
    run: Callable[[pl.LazyFrame], tuple[pl.DataFrame, float]],
    known: Mapping[int, pl.LazyFrame] = {},
) -> tuple[pl.DataFrame, list[Entry], list[Piece]] | None:
    """The result, the entries it was made from, and new states to be kept; None if it is to be computed as a whole."""
    entries = catalog.inquire([made.program])[made.program]
    runs = known_runs(made, entries)
    # States are known, but none of a run of this stream: it has lost its head. States of single files outlive that.
    window = bool(entries) and not runs
    pieces = cover(len(made.files), runs)
    frames: list[pl.DataFrame] = []
    used: list[Entry] = []
    new: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Gap):
            for start, end in _cuts(piece, window):
                frame = _state_plan(plan, made, made.files[start:end], known)
                if frame is None:
                    return None
                state, seconds = run(frame)
                new.append(Piece(start, end, state, seconds))
                frames.append(state)
            continue
        state_known = _opened(catalog, piece.what)
        if state_known is None:
            return None
        frames.append(state_known)
        used.append(piece.what)
    return run(_merged(made, frames))[0], used, new


def _cuts(gap: Gap, window: bool) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(gap.start, gap.end)] if window else [(gap.start, gap.end)]


def _opened(catalog: Catalog, entry: Entry) -> pl.DataFrame | None:
    try:
        opened = catalog.open(entry)
        return opened.to_polars() if isinstance(opened, Result) else None
    except EnvironmentFailure:
        return None


def _state_plan(
    plan: Plan, made: Growing, files: Sequence[str], known: Mapping[int, pl.LazyFrame] = {}
) -> pl.LazyFrame | None:
    """The plan that makes the state of some files of the stream."""
    scan = segment(plan, made.scan, files)
    if scan is None:
        return None
    (below,) = plan.steps[made.step].inputs
    rows = (
        scan if below == made.scan else plan.frame(below, {**_beside(plan, known, below, made.scan), made.scan: scan})
    )
    return rows.group_by(*made.keys, maintain_order=made.ordered).agg(*made.states.made)


def _beside(plan: Plan, known: Mapping[int, pl.LazyFrame], number: int, scan: int) -> dict[int, pl.LazyFrame]:
    """What is known, but for the steps on the way to the scan: of them the whole is known, and not a part."""
    way = {number}
    while number != scan:
        number = plan.steps[number].inputs[0]
        way.add(number)
    return {step: frame for step, frame in known.items() if step not in way}


def _merged(made: Growing, states: Sequence[pl.DataFrame]) -> pl.LazyFrame:
    names = [key.meta.output_name() for key in made.keys]
    together = pl.concat([state.lazy() for state in states]) if len(states) > 1 else states[0].lazy()
    if len(states) > 1:
        together = together.group_by(*names, maintain_order=made.ordered).agg(*made.states.merged)
    return together.select(*names, *made.finishing)


def span_of(made: Growing | GrowingRows, start: int, end: int) -> Span:
    """How the run of a state is found again."""
    return Span(made.identities[start].names[0], made.identities[end - 1].names[0], end - start)
