"""All sources of a plan at once: which files they read, what is in them, and the plan resolved over them.

In: a plan, and what identifies files. Out: Sources. Law: files are identified before the frame that will run looks at
them, so that whatever it sees is what the key stands for, or was changed afterwards, which is found before anything is
kept. Polars resolves a plan as a whole: what it opened for the key, it need not open again to run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from nectar.dialects.polars.plan import Plan, Step, traverser_of
from nectar.dialects.polars.scans import Source, frame_source, refusal_of, scan_source, shown_files
from nectar.errors import InputFailure
from nectar.store.inputs.identify import Inputs
from nectar.store.inputs.identity import Identity

SOURCES: Final = frozenset({"Scan", "DataFrameScan"})
_EXPANDED: Final = frozenset("*?[")
_ARROW_SCAN: Final = r"Ipc SCAN \[.*\]"
_OPERANDS: Final = (  # where expressions, as Polars shows them, have others
    "arguments", "by", "expr", "falsy", "function", "idx", "input", "left", "length", "offset", "order_by",
    "partition_by", "predicate", "right", "truthy",
)  # fmt: skip
_SHOWN: Final = frozenset({"parquet", "csv", "ndjson"})  # scans whose files a resolved plan shows

Schema = Mapping[str, pl.DataType]


class Sources(Struct, frozen=True):
    """The sources of a plan, by the number of their step.

    found: what each is. identities: of their files. failures: why the files of some could not be identified. frame:
    the whole plan, resolved after its files were identified; None if it was not resolved as a whole. leaves: of that.
    """

    found: dict[int, Source]
    identities: dict[int, tuple[Identity, ...]]
    failures: dict[int, str] = field(default_factory=dict)
    frame: pl.LazyFrame | None = None
    leaves: tuple[Leaf, ...] = ()


def sources_of(plan: Plan, inputs: Inputs, *, whole: bool) -> Sources:
    """What the sources of a plan read. whole: it may be resolved as a whole, for it runs nothing but what is pure."""
    if whole:
        files = {number: _files(plan, number) for number, step in enumerate(plan.steps) if _is_readable_scan(step)}
        identities, failures = _identified(files, inputs)
        if not failures:
            frame = plan.frame(plan.root)
            leaves = leaves_of(frame)
            found = _found(plan, files, leaves)
            if all(found[number].files == each for number, each in files.items()):
                return Sources(found, identities, frame=frame, leaves=leaves)
        plan.forget_schemas()
    found = _found(plan, {}, ())
    identities, failures = _identified({number: source.files for number, source in found.items()}, inputs)
    return Sources(found, identities, failures)


def sources_now(plan: Plan, *, whole: bool) -> dict[int, Source]:
    """What the sources of a plan are by now; the files themselves are not identified."""
    if not whole:
        return _found(plan, {}, ())
    files = {number: _files(plan, number) for number, step in enumerate(plan.steps) if _is_readable_scan(step)}
    return _found(plan, files, leaves_of(plan.frame(plan.root)))


def _is_readable_scan(step: Step) -> bool:
    return step.kind == "Scan" and not refusal_of(step)


def _files(plan: Plan, number: int) -> tuple[str, ...]:
    """The files a scan reads: those it names, or those that Polars finds, or will most likely find, for it."""
    named = [str(path["inner"]) for path in plan.steps[number].body["sources"]["Paths"]]
    if named and all(not _EXPANDED & set(path) and os.path.isfile(path) for path in named):
        return tuple(named)
    guessed = _guessed(named[0]) if len(named) == 1 and _kind(plan.steps[number]) in _SHOWN else ()
    return guessed or shown_files(plan.steps[number], traverser_of(plan.frame(number)))


def _guessed(path: str) -> tuple[str, ...]:
    """What Polars will find for the most usual kind of pattern, or nothing; whoever uses it compares the two."""
    folder, name = os.path.split(path)
    if name.count("*") != 1 or _EXPANDED & set(folder) or {"?", "["} & set(name) or "://" in path:
        return ()
    before, after = name.split("*")
    try:
        names = [each.name for each in os.scandir(folder or ".") if len(each.name) >= len(name) - 1]
    except OSError:
        return ()
    fitting = sorted(each for each in names if each.startswith(before) and each.endswith(after))
    return tuple(os.path.join(folder, each) for each in fitting)


def _identified(
    files: Mapping[int, Sequence[str]], inputs: Inputs
) -> tuple[dict[int, tuple[Identity, ...]], dict[int, str]]:
    """The identities of the files of each source; and why there are none of some."""
    every = list(dict.fromkeys(file for each in files.values() for file in each))
    try:
        by_file = dict(zip(every, inputs.identify(every), strict=True))
        return {number: tuple(by_file[file] for file in each) for number, each in files.items()}, {}
    except InputFailure:
        return _identified_one_by_one(files, inputs)


def _identified_one_by_one(
    files: Mapping[int, Sequence[str]], inputs: Inputs
) -> tuple[dict[int, tuple[Identity, ...]], dict[int, str]]:
    identities: dict[int, tuple[Identity, ...]] = {}
    failures: dict[int, str] = {}
    for number, each in files.items():
        try:
            identities[number] = tuple(inputs.identify(each))
        except InputFailure as failure:
            failures[number] = str(failure)
    return identities, failures


def _found(plan: Plan, files: Mapping[int, tuple[str, ...]], leaves: Sequence[Leaf]) -> dict[int, Source]:
    """What each source is, as a resolved frame shows it; what that does not show is resolved on its own."""
    shown = _shown(plan, leaves) if leaves else {}
    found: dict[int, Source] = {}
    for number, step in enumerate(plan.steps):
        if step.kind == "DataFrameScan":
            found[number] = frame_source(plan, step)
        elif step.kind == "Scan" and (reason := refusal_of(step)):
            found[number] = Source(b"", (), (reason,))
        elif step.kind == "Scan":
            found[number] = _scan(plan, number, shown.get(number), files.get(number))
    return found


def _scan(plan: Plan, number: int, shown: Leaf | None, files: tuple[str, ...] | None) -> Source:
    step = plan.steps[number]
    if shown is not None and files is not None and shown.files in (None, files):
        plan.tell_schema(number, shown.schema)
        return scan_source(step, files, shown.schema)
    traverser = traverser_of(plan.frame(number))
    plan.tell_schema(number, traverser.get_schema())
    return scan_source(step, shown_files(step, traverser), traverser.get_schema())


# the leaves of a resolved frame, and the steps they come from


class Leaf(Struct, frozen=True):
    """A source as Polars has resolved it. kind: as the plan calls it. files: None where Polars does not show them.

    text: what it shows instead. size: bytes of a frame in memory.
    """

    kind: str
    schema: Schema
    files: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    size: int = 0


def _shown(plan: Plan, leaves: Sequence[Leaf]) -> dict[int, Leaf]:
    """For each scan the leaf it became; nothing if leaves and sources do not correspond one to one, in order.

    Polars may resolve a step into nothing (a slice of no rows) or several into one (a concat of scans).
    """
    numbers = _sources_in_order(plan, len(leaves))
    if len(numbers) != len(leaves):
        return {}
    pairs = list(zip(numbers, leaves, strict=True))
    return dict(pairs) if all(_kind(plan.steps[number]) == leaf.kind for number, leaf in pairs) else {}


def leaves_of(frame: pl.LazyFrame) -> tuple[Leaf, ...]:
    """The sources of a lazy frame, from left to right, as often as they are used."""
    traverser = traverser_of(frame)
    found = []
    pending = [traverser.get_node()]
    while pending:
        traverser.set_node(pending.pop())
        inputs = traverser.get_inputs()
        if not inputs:
            found.append(_leaf(traverser))
        pending.extend(reversed(inputs))
    if any(leaf.kind == "ipc" for leaf in found):  # the first file of each, and how many there are
        text = tuple(re.findall(_ARROW_SCAN, frame._ldf.describe_plan()))
        found = [replace(leaf, text=text) if leaf.kind == "ipc" else leaf for leaf in found]
    return tuple(found)


def size_of_constants(frame: pl.LazyFrame) -> int:
    """Bytes of the series in the expressions of a lazy frame, all of which stand in a plan that is written down."""
    if "Series" not in frame._ldf.describe_plan():
        return 0
    traverser = traverser_of(frame)
    nodes, size = [traverser.get_node()], 0
    while nodes:
        traverser.set_node(nodes.pop())
        nodes.extend(traverser.get_inputs())
        size += sum(map(_size_of_constant, _expressions(traverser)))
    return size


def _expressions(traverser: Any) -> Iterator[Any]:
    """The expressions of a node, and those within them."""
    pending = [each.node for each in traverser.get_exprs()]
    while pending:
        try:
            expression = traverser.view_expression(pending.pop())
        except NotImplementedError:  # of a kind that is not shown
            continue
        yield expression
        inner = [getattr(expression, name, None) for name in _OPERANDS]
        pending += [each for each in inner if type(each) is int]
        pending += [each for some in inner if isinstance(some, list | tuple) for each in some if type(each) is int]


def _size_of_constant(expression: Any) -> int:
    value = getattr(expression, "value", None) if type(expression).__name__ == "Literal" else None
    if value is None or type(value).__name__ != "PySeries":
        return 0
    return int(pl.Series._from_pyseries(value).estimated_size())


def _leaf(traverser: Any) -> Leaf:
    try:
        node = traverser.view_current_node()
    except NotImplementedError as hidden:
        return Leaf("ipc" if str(hidden) == "ipc scan" else "", traverser.get_schema())
    if type(node).__name__ == "DataFrameScan":
        return Leaf("DataFrameScan", {}, size=int(pl.DataFrame._from_pydf(node.df).estimated_size()))
    if type(node).__name__ != "Scan":
        return Leaf("", {})
    return Leaf(node.scan_type[0], traverser.get_schema(), tuple(map(str, node.paths)))


def _kind(step: Step) -> str:
    return next(iter(step.body["scan_type"])).lower() if step.kind == "Scan" else step.kind


def _sources_in_order(plan: Plan, most: int) -> list[int]:
    """Steps without inputs, from left to right, as often as they are used; one more than allowed if there are more."""
    found: list[int] = []
    pending = [plan.root]
    while pending and len(found) <= most:
        number = pending.pop()
        inputs = plan.steps[number].inputs
        if not inputs:
            found.append(number)
        pending.extend(reversed(inputs))
    return found
