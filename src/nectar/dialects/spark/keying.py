"""From a plan to its program: each relation with its fingerprint and keys, as its files are now.

The key of a relation is a hash of what it does and of the keys of what it reads; that of a read, of its files. All of
them stand for the engine and the settings of the session as well. A relation that may not be reused makes everything
above it so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from msgspec import structs

from nectar.dialects.spark.constants import Facts
from nectar.dialects.spark.dated_reads import columns_of_read, parses_times
from nectar.dialects.spark.day import Day
from nectar.dialects.spark.elsewhere import Elsewhere
from nectar.dialects.spark.fresh import as_sent, state_of
from nectar.dialects.spark.function_names import KNOWN, why_unknown
from nectar.dialects.spark.functions import Pickled, is_still
from nectar.dialects.spark.keyed import Keyed, Own, key_of_read, key_of_step
from nectar.dialects.spark.kinds import RELATIONS, UNSORTED
from nectar.dialects.spark.reads import FORMATS, Source, read_of, source_of
from nectar.dialects.spark.relations import Step, steps_of
from nectar.dialects.spark.scope import Registered, Scope, View
from nectar.dialects.spark.sql.words import Name
from nectar.dialects.spark.tables import Table
from nectar.dialects.spark.texts_and_times import Columns
from nectar.dialects.spark.today import Today, columns_beside
from nectar.dialects.spark.validity import Validity, text_of
from nectar.errors import EnvironmentFailure, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import ROW_WISE, Node, Order, Program
from nectar.recipes.folder import working_folder
from nectar.store.inputs.identify import Identity, Inputs

# Two runs within a period may give something else: parts of one program must not see both.
_AS_IT_COMES: Final = Order(scrambles=True, arbitrary=True)
_UNSEEN: Final = "its files were not looked at, since another part is refused"
_UNTOLD: Final = "a text that names files by their path cannot tell the server that they have changed"


def keyed(
    root: object, circumstances: bytes, inputs: Inputs, scope: Scope, elsewhere: Elsewhere | None = None,
    validity: Validity | None = None,
) -> Keyed:  # fmt: skip
    """The program of a plan, whose root relation is given. scope: what names mean in its session.

    elsewhere: the server, if it is none of this process. validity: for sources that are good for a while.
    """
    return keyed_steps(steps_of(root), circumstances, inputs, scope, elsewhere, validity)


def keyed_steps(
    steps: Sequence[Step], circumstances: bytes, inputs: Inputs, scope: Scope, elsewhere: Elsewhere | None = None,
    validity: Validity | None = None, now: Scope | None = None,
) -> Keyed:  # fmt: skip
    """The program of a plan that has been read. now: what names mean to the session, if scope is only a part of it."""
    try:
        views = _Views(scope if now is None else now)
        return _Keying(steps, circumstances, inputs, scope, elsewhere, validity, views).run()
    except RecursionError as error:
        raise UserError("its views are nested too deeply") from error


Looked = tuple[Source, list[Identity] | None]  # None: they are looked at one by one


@dataclass(slots=True)
class _Views:
    """Views that were read so far, by their ids, since one may be read in many places. now: what names mean by now.

    files: what was looked at ahead, by the ids of reads; None if nothing was yet. folder: where the program is.
    """

    now: Scope
    keyed: dict[int, Keyed] = field(default_factory=dict)
    facts: dict[int, Facts] = field(default_factory=dict)
    columns: dict[int, Callable[[], Columns]] = field(default_factory=dict)
    files: dict[int, Looked] | None = None
    folder: str = field(default_factory=working_folder)


class _Keying:
    def __init__(
        self, steps: Sequence[Step], circumstances: bytes, inputs: Inputs, scope: Scope, elsewhere: Elsewhere | None,
        validity: Validity | None, views: _Views,
    ) -> None:  # fmt: skip
        self._steps, self._frame, self._inputs, self._scope = steps, circumstances, inputs, scope
        self._elsewhere, self._validity = elsewhere, validity
        self._views = views
        self._states: dict[bytes, bytes] = {}
        self._nodes: list[Node] = []
        self._node_of: list[int] = []
        self._contents: list[bytes] = []  # of each step, as its keys have it
        self._by_key: dict[tuple[bytes, ...], int] = {}
        self._sources: list[Source] = []
        self._identities: list[Identity] = []
        self._functions: list[Pickled] = []
        self._reads: dict[int, tuple[Source, tuple[Identity, ...]]] = {}
        self._own: dict[int, Own] = {}
        self._declared: list[str] = []
        self._tables: list[Table] = []
        self._by_name = False  # a server reads files without being told which they are
        self._today = Today(steps, self._columns_read)
        self._day: Day | None = None
        self._names_refused = False  # what is behind a name may act: such a plan must not be sent twice

    def run(self) -> Keyed:
        barred = _is_barred(self._steps, self._scope)
        if self._elsewhere is not None and not barred and not self._views.now.cached:
            self._elsewhere.ask_ahead({name for step in self._steps for name in step.names if self._is_table(name)})
        if not barred and self._views.files is None:
            self._views.files = self._looked_at()
        for step in self._steps:
            # Where nothing can be reused, no file is looked at.
            files, functions, declared = len(self._identities), len(self._functions), len(self._declared)
            made = self._relation if step.read is None else self._read_step
            self._node_of.append(self._added(made(step, look=not barred)))
            own = Own(
                tuple(self._identities[files:]), tuple(self._functions[functions:]), tuple(self._declared[declared:])
            )
            self._own.setdefault(self._node_of[-1], own)
        sources = {id(source): source for source in self._sources}
        identities = {id(identity): identity for identity in self._identities}
        return Keyed(
            Program(tuple(self._nodes)), tuple(sources.values()), tuple(identities.values()), tuple(self._functions),
            self._states, tuple(self._steps), tuple(self._node_of), self._own, barred or self._names_refused,
            tuple(self._contents),
            self._reads, self._frame, tuple(self._declared), tuple(self._views.facts.values()), tuple(self._tables),
            self._by_name, self._day,
        )  # fmt: skip

    def _looked_at(self) -> dict[int, Looked]:
        """The files of all reads, those behind names included, by the ids of reads: together they take less time.

        What cannot be looked at is left out: whoever comes to the read says why.
        """
        sources: dict[int, Source] = {}
        for read in _reads_of(self._steps, self._scope, self._views.folder, set()):
            with suppress(UserError, EnvironmentFailure):
                sources[id(read)] = self._source_of(read)
        files = [file for source in sources.values() for file in source.files]
        together: Iterator[Identity] | None = None
        if len(sources) > 1:
            with suppress(UserError, EnvironmentFailure):
                together = iter(self._inputs.identify(files))
        return {
            read: (source, None if together is None else list(islice(together, len(source.files))))
            for read, source in sources.items()
        }

    def _added(self, node: Node) -> int:
        """The number of a node; a computation that is there already is not added again, unless it is the root."""
        known = self._by_key.get(node.keys)
        if known is not None and len(self._node_of) + 1 < len(self._steps):
            return known
        return self._appended(node)

    def _beside(self, node: Node) -> int:
        """The number of a node that is no step, but behind a name; the same computation behind others is this one."""
        known = self._by_key.get(node.keys)
        return self._appended(node) if known is None else known

    def _appended(self, node: Node) -> int:
        self._nodes.append(node)
        self._by_key[node.keys] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _relation(self, step: Step, *, look: bool) -> Node:
        below = tuple(self._node_of[number] for number in step.inputs)
        named = [self._named(step, name, look=look) for name in step.names]
        self._names_refused = self._names_refused or any(node.refusal for node in named)
        nodes = [*(self._nodes[number] for number in below), *named]
        self._functions += step.functions
        content = joined("relation", step.content, *self._registered(step))
        below_refused = sorted((node.refusal for node in nodes if node.refusal), key=lambda reason: reason == _UNSEEN)
        refusal = self._refusal(step) or next(iter(below_refused), "")
        functions = [*step.functions, *(each for _, found in _called(step, self._scope) for each in found.functions)]
        if functions and self._elsewhere is not None and not refusal:
            refusal = self._elsewhere.why_unlike(functions)
            content = content if refusal else joined("elsewhere", content, self._elsewhere.environment())
        if not refusal:
            content, refusal = self._with_day(step, content)
        self._contents.append(content)
        program = digest_of(self._frame + joined("program", content, *(node.program for node in nodes)))
        best, last = (key_of_step(self._frame, content, [node.keys[which] for node in nodes]) for which in (0, -1))
        order = self._order(step, below, named)
        order = structs.replace(order, arbitrary=True) if step.windows or step.layout else order
        text = f"{step.kind} of {', '.join('.'.join(name) for name in step.names)}" if step.names else step.kind
        # What is behind names is part of the program: two texts may read what each run gives differently.
        below += tuple(map(self._beside, named))
        return Node(text, below, program, tuple(dict.fromkeys((best, last))), order, refusal, step.breaks)

    def _order(self, step: Step, below: Sequence[int], named: Sequence[Node]) -> Order:
        """What a relation has to do with the order of rows.

        A text: what a sort has, unless neither it nor what it reads has an order.
        """
        if not step.sql:
            return named[0].order if named else RELATIONS.get(step.kind, ROW_WISE)
        ordered = _ordered(self._nodes)
        read = [*(ordered[number] for number in below), *(not node.order.scrambles for node in named)]
        return UNSORTED if read and not any(read) and not step.sorts else RELATIONS["sql"]

    def _refusal(self, step: Step) -> str:
        return "; ".join(step.refusals) or _why_not_the_engines(step, self._scope)

    def _registered(self, step: Step) -> Iterator[bytes]:
        """What the functions compute that a step calls and that were registered."""
        for name, function in _called(step, self._scope):
            self._functions += function.functions
            yield joined("registered", name, function.content)

    def _with_day(self, step: Step, content: bytes) -> tuple[bytes, str]:
        """What the step that comes next does, with the day if its rows may depend on it; or why it is not reused."""
        # What a function gives that somebody has registered under a name of the engine's is not known.
        known = all(name not in KNOWN for name, _ in _called(step, self._scope))
        return (content, "") if known and not self._today.is_dated(len(self._node_of)) else self._dated(content)

    def _dated(self, content: bytes) -> tuple[bytes, str]:
        day = None if self._validity is None else self._validity.day
        if day is None:  # whoever asks does not ask for keys of a certain time
            return joined("on some day", content), ""
        self._day = day
        self._declared.append("today's date")
        return joined("on the day", day.text, content), day.doubt

    def _columns_read(self, at: int) -> Columns:
        """The columns of what a step reads, from files or by name, as far as they are known."""
        step = self._steps[at]
        if step.read is not None:
            source, identities = self._reads.get(at, (None, ()))
            files = () if source is None else zip(source.files, identities, strict=True)
            return columns_of_read(step.read, ((path, each.names[0]) for path, each in files))
        return columns_beside([self._columns_of_name(name) for name in step.names])

    def _columns_of_name(self, name: Name) -> Columns:
        find = self._views.columns.get(id(self._scope.view(name)))
        return Columns() if find is None else find()

    # relations by name

    def _named(self, step: Step, name: Name, *, look: bool) -> Node:
        """The relation that a name stands for."""
        if not look:
            return _refused("named", _UNSEEN)
        view = self._scope.view(name)
        if view is not None:
            return self._viewed(".".join(name), view)
        if _is_path(name):
            return self._read(read_of(name[0], name[1]), step.period, by_name=True)
        reason = f"the table or view {'.'.join(name)} is not one that this session was seen to make"
        if self._elsewhere is not None:
            try:
                return self._table(name, self._elsewhere)
            except (UserError, EnvironmentFailure) as error:
                reason = str(error)
        if step.period is not None and self._validity is not None:
            return self._good_for(step.period, ".".join(name), partial(self._validity.of_table, name))
        return _refused("named", reason)

    def _is_table(self, name: Name) -> bool:
        return self._scope.view(name) is None and not _is_path(name)

    def _table(self, name: Name, elsewhere: Elsewhere) -> Node:
        """A table of a server's catalog. Raises UserError or EnvironmentFailure if it cannot be followed."""
        if self._views.now.cached:
            raise UserError(self._views.now.cached)
        table = elsewhere.table(name)
        files = self._read(table.read, None, by_name=True)
        why_not = files.refusal or table.why_other_files(self._sources[-1])
        if why_not:
            raise UserError(why_not)
        self._tables.append(table)
        self._states[joined("table", *name)] = table.definition
        keys = tuple(digest_of(joined("table", table.definition, key)) for key in files.keys)
        program = digest_of(joined("table", table.definition, files.program))
        return Node(f"table {'.'.join(name)}", (), program, keys, files.order, is_input=True)

    def _viewed(self, name: str, view: View) -> Node:
        """A view as everything is now; and as it was when it was made, if that was different."""
        why_not = _why_not_followed(name, view, self._views.folder)
        if why_not:
            return _refused("view", why_not)
        found = self._views.keyed.get(id(view))
        if found is None:
            keying = _Keying(
                view.steps, self._frame, self._inputs, view.scope, self._elsewhere, self._validity, self._views
            )
            found = self._views.keyed[id(view)] = keying.run()
            self._views.facts[id(view)] = view.facts
            self._views.columns[id(view)] = keying._today.columns
        self._sources += found.sources
        self._identities += found.identities
        self._functions += found.functions
        self._declared += found.declared
        self._tables += found.tables
        self._by_name = self._by_name or found.by_name
        self._day = self._day or found.day
        root = found.root
        why_not = root.refusal or self._why_not_as_made(view, found)
        refusal = f"the view {name} is not reused: {why_not}" if why_not else ""
        if not all(map(is_still, found.functions)):
            refusal = f"a function of the view {name} changed after it was made"
        # A file that is young when the view is made has one name then, and that is the first of two later.
        frozen = b"" if view.made in root.keys else view.made
        keys = tuple(digest_of(joined("view", view.content, frozen, key)) for key in root.keys)
        program = digest_of(joined("view", view.content, root.program))
        ordered = _ordered(found.program.nodes)[-1]
        below = self._inlined(found.program)
        return Node("view", (below,), program, keys, Order(scrambles=not ordered, carries=ordered), refusal)

    def _inlined(self, program: Program) -> int:
        """The number of the last node of a program whose nodes are nodes of this one now."""
        numbers: list[int] = []
        for node in program.nodes:
            numbers.append(self._beside(structs.replace(node, inputs=tuple(numbers[each] for each in node.inputs))))
        return numbers[-1]

    def _why_not_as_made(self, view: View, found: Keyed) -> str:
        """Why a server that remembers may show something else than the view as it was made; empty if it does not.

        It keeps the files that a view had then, unless it was told to look again, or has rows of them in memory. A text
        it reads anew, with what names mean now.
        """
        if self._elsewhere is None:
            return ""
        if found.states != view.states:
            return "its files have changed since it was made, and the server may show either"
        if view.by_text and any(step.inputs or step.read is not None for step in view.steps):
            return _UNTOLD
        if view.by_text and not view.means_the_same(self._views.now):
            return "a name in its definition means something else since it was made"
        return ""

    def _read_step(self, step: Step, *, look: bool) -> Node:
        self._contents.append(step.content)
        sources, known = len(self._sources), len(self._identities)
        node = self._read(step.read, step.period) if look else _refused("read", _UNSEEN)
        if len(self._sources) > sources:
            self._reads[len(self._node_of)] = self._sources[-1], tuple(self._identities[known:])
        return node

    def _read(self, read: Any, period: float | None, *, by_name: bool = False) -> Node:
        """Files. by_name: a server that remembers is not told what is in them."""
        order = RELATIONS["read"]
        try:
            if self._scope.unknown:
                raise UserError(self._scope.unknown)
            ahead = (self._views.files or {}).get(id(read))
            source = self._source(read, period, ahead and ahead[0])
            if isinstance(source, Node):
                return source
            if self._elsewhere is not None and parses_times(read):  # Sail gives no time of day in a file a date
                content, doubt = self._dated(source.content)
                if doubt:
                    raise UserError(doubt)
                source = replace(source, content=content)
            identities = (ahead and ahead[1]) or self._inputs.identify(source.files)
            unseen = "" if self._elsewhere is None else self._elsewhere.why_unseen(source)
            if unseen:
                raise EnvironmentFailure(unseen)
            if self._elsewhere is not None:
                self._states[as_sent(read)] = state_of(source, identities)
                remembered = self._elsewhere.why_remembered(source) if by_name else ""
                if remembered:
                    raise UserError(remembered)
                self._by_name = self._by_name or by_name
        except (UserError, EnvironmentFailure) as error:
            return _refused("read", str(error))
        self._sources.append(source)
        self._identities += identities
        program = digest_of(self._frame + joined("program", source.content))
        names = dict.fromkeys(tuple(identity.names[which] for identity in identities) for which in (0, -1))
        keys = tuple(key_of_read(self._frame, source, each) for each in names)
        return Node(f"read {source.text}", (), program, keys, order, is_input=True)

    def _source_of(self, read: Any) -> Source:
        source = source_of(read)
        if source.is_table and self._elsewhere is not None:
            raise UserError(f"{source.text}: which version of a table a server shows is not known")
        return source

    def _source(self, read: Any, period: float | None, ahead: Source | None) -> Source | Node:
        """The files of a read; where they cannot be looked at, the source as it is in this period."""
        try:
            return ahead or self._source_of(read)
        except UserError:
            if period is None or self._validity is None or read.is_streaming or not read.HasField("data_source"):
                raise
            reader = self._scope.sources.get(read.data_source.format.lower())
            if reader is None:
                return self._good_for(period, text_of(read), partial(self._validity.of_source, read, b""))
            if not is_still(reader):
                raise UserError(f"the source {read.data_source.format} changed after it was registered") from None
            self._functions.append(reader)
            return self._good_for(period, text_of(read), partial(self._validity.of_source, read, reader.digest))

    def _good_for(self, period: float, text: str, content_of: Callable[[], bytes]) -> Node:
        """A source that is good for a period. Its key says which period it is."""
        assert self._validity is not None
        try:
            content = content_of()
        except (UserError, EnvironmentFailure) as error:
            return _refused("named", str(error))
        self._declared.append(text)
        program = digest_of(self._frame + joined("program", content))
        key = digest_of(self._frame + joined("key", content, self._validity.at(period)))
        return Node(f"source {text}", (), program, (key,), _AS_IT_COMES, is_input=True)


def _is_barred(steps: Sequence[Step], scope: Scope) -> bool:
    """Whether nothing of a plan can be reused, so that no file is looked at."""
    return any((step.refusals and step.layout) or _why_not_the_engines(step, scope) for step in steps)


def _why_not_the_engines(step: Step, scope: Scope) -> str:
    """Why nobody knows what the functions and names of a step mean to the engine."""
    if scope.unknown:
        return scope.unknown
    unknown = sorted(step.unknown - scope.functions.keys())
    if unknown:
        return why_unknown(unknown[0])
    for name, function in _called(step, scope):
        if function.refusal:
            return f"{name} is a function that this session has registered: {function.refusal}"
        if not all(map(is_still, function.functions)):
            return f"the function {name} changed after it was registered"
    return ""


def _called(step: Step, scope: Scope) -> Iterator[tuple[str, Registered]]:
    """Functions that were registered and that a step may call, by name."""
    for name in sorted((step.calls | scope.instead) & scope.functions.keys()):
        yield name, scope.functions[name]


def _why_not_followed(name: str, view: View, folder: str) -> str:
    """Why a view is not followed to what it reads. folder: where the program is."""
    if view.refusal:
        return f"the view {name} is not reused: {view.refusal}"
    if view.folder != folder:
        return f"the working folder is another one than when the view {name} was made"
    return ""


def _reads_of(steps: Sequence[Step], scope: Scope, folder: str, seen: set[int]) -> Iterator[Any]:
    """The reads of steps, and of the views that they name. seen: views that were there already, by their ids."""
    for step in steps:
        if step.read is not None:
            yield step.read
        for view in filter(None, map(scope.view, step.names)):
            if id(view) not in seen and not _why_not_followed("", view, folder):
                seen.add(id(view))
                if not _is_barred(view.steps, view.scope):
                    yield from _reads_of(view.steps, view.scope, folder, seen)


def _ordered(nodes: Sequence[Node]) -> list[bool]:
    """For each node whether its rows come in an order that somebody could rely on."""
    found: list[bool] = []
    for node in nodes:
        from_below = not node.inputs or not node.order.carries or any(found[below] for below in node.inputs)
        found.append(not node.order.scrambles and from_below)
    return found


def _refused(kind: str, reason: str) -> Node:
    unknown = digest_of(joined("unknown", reason))
    return Node(kind, (), unknown, (unknown,), RELATIONS["read"], reason, is_input=True)


def _is_path(name: Name) -> bool:
    """Whether a name is a path, as in parquet.`clicks/`."""
    return len(name) == 2 and name[0].lower() in FORMATS
