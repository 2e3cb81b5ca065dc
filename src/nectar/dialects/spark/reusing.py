"""Parts of a query from the store: found, put into the plan in place of what they stand for, or computed to be kept.

In: a query with its keys. Out: the same query, its plan reading what is known. Law: the plan gives the same answer; if
it cannot be made, or the engine does not take it, the query runs as it was given.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import nullcontext
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

import grpc

from nectar.catalog.service import Kept, NotKept
from nectar.dialects.spark.connections import is_passing
from nectar.dialects.spark.fruitless import remember_in_vain, was_in_vain
from nectar.dialects.spark.kinds import PRINTING
from nectar.dialects.spark.persisted import is_asked_for
from nectar.dialects.spark.query import Query
from nectar.dialects.spark.results import is_whole
from nectar.dialects.spark.stored import relation_of
from nectar.dialects.spark.writing import Limits, schema_by_engine, size_of, write
from nectar.errors import EnvironmentFailure, NectarError
from nectar.model.entry import Entry
from nectar.rewrite.choose import Choice, choose, choose_opened
from nectar.rewrite.consistency import reusable
from nectar.store.problem import Damaged, Gone
from nectar.trust.secrets import logger
from nectar.waiting.health import worth

if TYPE_CHECKING:
    from nectar.catalog.handover import Handover

_log: Final = logger("nectar.spark")
_LEASED: Final = 6 * 3600.0  # seconds that files of a plan are not deleted, unless it ends before
_EXPECTED: Final = 64 << 20  # bytes, at most, for which room is made before an engine writes nobody knows how many
_LARGER: Final = 4  # times what it is read from
_LONGER: Final = 2  # times a query that has it in it: so long may a part take by itself
_UNSEEN: Final = 15.0  # seconds that such a query is thought to take, if nobody has seen one
_SLOWER: Final = 8.0  # times what we take to write a byte: an engine encodes and compresses
_HALF_MORE: Final = 1.5  # times a query that has it in it, where the budget counts: so long may a part take
_SELECTIVE: Final = 0.1  # share of rows that a filter is thought to let pass
_FEW_ROWS: Final = frozenset({"aggregate", "summary", "describe", "crosstab", "limit", "tail"})  # give few, mostly
LEAST_PLANS = 5  # what takes less than so many plans is not worth a file and a plan of its own
_REMEMBERED: Final = 4096

_cheap: Final[OrderedDict[bytes, float]] = OrderedDict()  # keys of parts that are not worth keeping
_failed: Final[OrderedDict[bytes, float]] = OrderedDict()  # keys of queries that the engine did not take over parts
_took: Final[OrderedDict[bytes, float]] = OrderedDict()  # the most seconds that queries with a part took, by its key


def look_up(query: Query) -> None:
    """What is known of a query is found and opened: the whole of it, or its largest parts."""
    program = query.keyed.program
    whole = [] if query.keyed.root.refusal else [program.root]
    asked = [] if query.session.settings.refresh else [*whole, *_parts(query)]
    pairs = [(number, key) for number in asked for key in program.nodes[number].keys]
    answers = query.catalog.lookup([key for _, key in pairs], [program.nodes[number].program for number, _ in pairs])
    entries: dict[int, Entry] = {}
    lookups: dict[int, int] = {}
    for (number, _), answer in zip(pairs, answers, strict=True):
        if answer.entry is not None and _may_be_read(query, number, answer.entry):
            entries.setdefault(number, answer.entry)
        lookups[number] = max(lookups.get(number, 0), answer.lookups)
    query.lookups = lookups
    query.choice = choose_opened(program, entries, lookups, partial(_is_opened, query))


def claim(query: Query) -> None:
    """The result is computed by one at a time: by this process, which says so, or it has what another one has made."""
    settings, root = query.session.settings, query.keyed.program.root
    if query.keyed.root.refusal or settings.refresh or query.catalog.read_only:
        return
    try:
        expected = inf if query.timing is None or query.timing.site is None else query.timing.expected
        with worth(expected), query.timing.waiting() if query.timing is not None else nullcontext():
            taken = query.session.reservations.take_or_wait(query.keyed.root.key)
    except EnvironmentFailure as failure:
        _log.info("others may compute the same: %s", failure)
        return
    if not isinstance(taken, Entry):
        query.reservation = taken
    elif _may_be_read(query, root, taken) and _is_opened(query, root, taken):
        query.known = {number: known for number, known in query.known.items() if number == root}
        query.choice = Choice({root: taken}, (), ())


def looked_at(query: Query) -> Choice:
    """What would be taken from the store; nothing is opened, and nothing counted."""
    program = query.keyed.program
    whole = [] if query.keyed.root.refusal else [program.root]
    asked = [] if query.session.settings.refresh else [*whole, *_parts(query)]
    known = query.catalog.index.lookup([key for number in asked for key in program.nodes[number].keys])
    entries = {
        number: known[key]
        for number in asked
        for key in reversed(program.nodes[number].keys)
        if key in known and _may_be_read(query, number, known[key])
    }
    counts = query.catalog.index.lookups([program.nodes[number].program for number in asked])
    lookups = {number: counts.get(program.nodes[number].program, 0) for number in asked}
    return choose(program, entries, lookups)


def _parts(query: Query) -> list[int]:
    """Nodes that may be looked up besides the root. Files are read where they lie, unless somebody wants a copy."""
    if not query.engine.shares_files or query.keyed.root.key in _failed:
        return []
    program = query.keyed.program
    if query.scope.instead:  # what is called as a function of the engine may see how rows are cut
        return []
    allowed = reusable(program)
    return [
        number
        for number in sorted(query.keyed.apart() - {program.root}, reverse=True)
        if allowed[number] and (not program.nodes[number].is_input or is_asked_for(program.nodes[number].program))
    ]


def _may_be_read(query: Query, number: int, entry: Entry) -> bool:
    """Whether a known result is used; a whole one that gets a name has to be one that others can read, too."""
    if number == query.keyed.program.root:
        return not query.asked or entry.kind == "arrow"
    return _is_worth_reading(query, number, entry)


def _is_worth_reading(query: Query, number: int, entry: Entry) -> bool:
    """Whether it is faster to read a part than to compute it, as far as one can tell; or somebody said so."""
    return entry.seconds >= _least(query) or is_asked_for(query.keyed.program.nodes[number].program)


def _least(query: Query) -> float:
    """What a part has to take in seconds to be worth a plan of its own."""
    return LEAST_PLANS * query.engine.manner.plan_seconds


def _is_opened(query: Query, number: int, entry: Entry) -> bool:
    """Whether the result of a node is at hand now: the whole of the query as a table, a part as a relation."""
    if number in query.known or query.answer is not None:
        return True
    is_answer = number == query.keyed.program.root and entry.kind == "arrow"
    if entry.location and not is_answer:  # the engine reads its files, some time from now
        query.leases += query.catalog.lease([entry], _LEASED)
    try:
        opened = query.catalog.open(entry)
        if isinstance(opened, Gone | Damaged):
            return False
        with opened:
            if is_answer:
                table = opened.to_arrow()
                query.answer = table if is_whole(table) else None
                return query.answer is not None
            relation = relation_of(opened, manner=query.engine.manner)
    except NectarError as failure:
        _log.info("%s is computed again: %s", entry.about, failure)
        return False
    if isinstance(relation, str):
        _log.debug("%s is computed again: %s", entry.about, relation)
        return False
    query.known[number] = (entry, relation)
    return True


def put_in(query: Query, client: Any) -> bool:
    """Known parts stand in the plan, and so do those that were worth computing by themselves; whether there are any."""
    for number in sorted(query.choice.hits):
        _replace(query, number)
    for number in _to_be_kept(query):
        with query.timing.writing() if query.timing is not None else nullcontext():
            _compute(query, client, number)
    if query.known:
        try:
            schema_by_engine(client, _shown(query.plan))  # what the engine finds wrong with a plan it finds here
        except grpc.RpcError as error:
            give_up(query, str(error.details()), for_good=not is_passing(error))
    return bool(query.known)


def _shown(plan: Any) -> Any:
    """The relation that a plan prints, or the plan; of a printed one Sail tells no schema."""
    kind = plan.WhichOneof("rel_type")
    return getattr(plan, kind).input if kind in PRINTING else plan


def give_up(query: Query, reason: str, *, for_good: bool = True) -> None:
    """The engine does not take the plan over known parts: the query runs as it was given.

    for_good: also when it is asked for again.
    """
    _log.info("%s runs without what is known of it: %s", query.part.name, reason)
    if for_good:
        _remember(_failed, query.keyed.root.key)
    query.forget_known()


def _to_be_kept(query: Query) -> list[int]:
    """Parts that are computed by themselves, inputs of others first: those asked for often, or by somebody's word."""
    program, lookups = query.keyed.program, query.lookups
    nodes = program.nodes
    asked = {each for each in query.choice.computed if each in lookups and is_asked_for(nodes[each].program)}
    often = {each for each in query.choice.keep if _is_promising(query, each)}
    chosen = (asked | often) - {program.root}
    # What was never asked for without a larger one need not be kept beside it.
    with_others = {
        below
        for each in chosen
        for below in program.below(each)
        if below in often - {each} and lookups[below] <= lookups[each]
    }
    return sorted(chosen - with_others | asked - {program.root})


def _is_promising(query: Query, number: int) -> bool:
    """Whether a part seems worth being computed by itself, before anything is done for it."""
    node, steering = query.keyed.program.nodes[number], query.session.steering
    if node.key in _cheap:
        return False
    if not steering.is_free and _expected_size(query, number) > steering.paying(_gain(query, number) or 0.0, _SLOWER):
        return False
    return not was_in_vain(query, number)


def _expected_size(query: Query, number: int) -> float:
    """About how many bytes a part has: those of the files it is made from, less what its steps are thought to drop.

    A guess: columns that nobody uses are among them, because whoever asks for the part next may use others.
    """
    sizes: dict[int, float] = {}
    for at in sorted(query.keyed.program.below(number)):
        own, steps = query.keyed.own.get(at), query.keyed.steps_of(at)
        size = sum(file.size or 0 for file in own.files) if own is not None else 0.0
        size += sum(sizes[below] for below in query.keyed.program.nodes[at].inputs)
        kind = steps[0].kind if steps else ""
        sizes[at] = 0.0 if kind in _FEW_ROWS else size * (_SELECTIVE if kind == "filter" else 1.0)
    return sizes[number]


def _gain(query: Query, number: int) -> float | None:
    """Seconds that a query with a part in it takes without it, which is the most that the part may save."""
    expected = query.timing.expected if query.timing is not None else 0.0
    return _took.get(query.keyed.program.nodes[number].key) or expected or None


def _replace(query: Query, number: int) -> None:
    """Wherever a node stands in the plan, its result stands now, with the plan id that others name it by."""
    _, relation = query.known[number]
    for step in query.keyed.steps_of(number):
        common = step.message.common
        plan_id = common.plan_id if common.HasField("plan_id") else None
        step.message.CopyFrom(relation)
        if plan_id is not None:
            step.message.common.plan_id = plan_id


def _compute(query: Query, client: Any, number: int) -> None:
    """A part is computed by itself and kept; unless it fails, or is not worth it, which the query does not notice."""
    node = query.keyed.program.nodes[number]
    expected = min(_EXPECTED, sum(file.size or 0 for file in query.keyed.files_below(number)))
    place = query.catalog.handover(node.key, expected)
    if isinstance(place, NotKept):
        _log.info("%s is not computed by itself: %s", node.text, place.reason)
        return
    try:
        with place:
            kept = _written(query, client, number, place)
    except (grpc.RpcError, NectarError) as error:
        if not is_passing(error):
            _not_again(query, number, str(error))
        kept = NotKept(str(error))
    if isinstance(kept, NotKept):
        _log.info("%s is not kept: %s", node.text, kept.reason)
    elif _is_opened(query, number, kept.entry):
        _replace(query, number)
        if query.timing is not None:  # without Nectar the program would have waited for it
            query.timing.engine += kept.entry.seconds


def _written(query: Query, client: Any, number: int, place: Handover) -> Kept | NotKept:
    """A part that the engine has written is kept, if it comes back as it was, is worth it, and nothing changed."""
    relation = query.keyed.steps_of(number)[0].message
    seconds = write(client, relation, place, _limits(query, number), query.engine.manner)
    if not isinstance(seconds, str):  # by itself it may take longer than in a query that needs little of it
        seconds = min(seconds, _gain(query, number) or seconds)
    why_not = seconds if isinstance(seconds, str) else _why_not_worth(query, number, seconds, place.path)
    if isinstance(seconds, str) or why_not:
        _not_again(query, number, why_not)
        return NotKept(why_not)
    changed = query.names_changed or "; ".join(query.keyed.what_changed(query.session.inputs)) or query.why_another()
    return NotKept(changed) if changed else query.keep_part(number, place, seconds)


def _not_again(query: Query, number: int, reason: str) -> None:
    """A part is not tried again: not over these files by this process, nor by others."""
    _remember(_cheap, query.keyed.program.nodes[number].key)
    remember_in_vain(query, number, reason)


def _limits(query: Query, number: int) -> Limits:
    """What a part may take. It may fill the disk; and by itself it may take far longer than within a query.

    What is above it, such as a filter, may spare the engine most of it; as seen in queries that had it in them.
    """
    read = sum(file.size or 0 for file in query.keyed.files_below(number))
    budget = query.catalog.collector.budget.size
    size: float = max(_EXPECTED, _LARGER * read)
    gain, steering = _gain(query, number) or _UNSEEN, query.session.steering
    if is_asked_for(query.keyed.program.nodes[number].program):
        seconds = math.inf
    elif steering.is_free:
        seconds = _LONGER * gain + 1.0
    else:  # what is more does not pay the first time it is found
        seconds, size = _HALF_MORE * gain, min(size, steering.paying(gain, _SLOWER))
    return Limits(size if budget is None else min(size, budget // 4), seconds)


def _why_not_worth(query: Query, number: int, seconds: float, folder: str) -> str:
    """Why what the engine has written is not worth its bytes; empty if it is, or if somebody wants it kept."""
    if is_asked_for(query.keyed.program.nodes[number].program):
        return ""
    if seconds < _least(query):
        return "it took too little time to be worth a file"
    return query.catalog.worth_keeping(seconds, size_of(folder))


def note_cost(query: Query) -> None:
    """The query has run: what a part of it takes within such a query is no more than that."""
    for number in query.choice.computed:
        key = query.keyed.program.nodes[number].key
        if query.part.seconds < _least(query):
            _remember(_cheap, key)
        _remember(_took, key, max(query.part.seconds, _took.get(key, 0.0)))


def _remember(keys: OrderedDict[bytes, float], key: bytes, seconds: float = 0.0) -> None:
    keys[key] = seconds
    while len(keys) > _REMEMBERED:
        keys.popitem(last=False)
