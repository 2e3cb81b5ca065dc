"""Which steps can be computed part by part, if the streams they read are cut.

In: the steps of a plan. Out: for each step either a Separable, or why it is none. Law: the results of a separable step
over the parts, one after the other, are its result over everything, in values, and in order where Polars promises one.

Two streams that are joined can be cut together where no value of what they are joined on is in two parts; whether they
are is told by the data (`alignable`). Otherwise one of them is cut, and the other is the same for every part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from nectar.dialects.polars.aggregates import expression_of
from nectar.dialects.polars.elementwise import is_elementwise, reads_rows
from nectar.dialects.polars.incremental.grouplocal import is_group_local
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.plan import Step
from nectar.dialects.polars.scans import reads_file_by_file

Origin = tuple[int, str]  # a column of a scan, by the number of its step
Alignable = Callable[[frozenset[Origin]], bool]

_LEFT_IS_CUT: Final = frozenset({"Inner", "Left", "Semi", "Anti", "Cross"})
_RIGHT_IS_CUT: Final = frozenset({"Inner", "Right", "Cross"})
_LEFT_ONLY: Final = frozenset({"Semi", "Anti"})  # give no column of the other side
_ORDERS: Final = {"left": frozenset({"None", "Left", "LeftRight"}), "right": frozenset({"None", "Right", "RightLeft"})}
# Rows that find no other stand behind all others where the order is first that of the other side.
_ORDERS_OF_BOTH: Final = {
    "Inner": _ORDERS["left"] | _ORDERS["right"], "Left": _ORDERS["left"], "Semi": _ORDERS["left"],
    "Anti": _ORDERS["left"], "Right": _ORDERS["right"], "Full": frozenset({"None"}),
}  # fmt: skip
_MAPS: Final = frozenset({"Explode", "Rename", "Unnest", "FillNan"})


class Separable(Struct, frozen=True):
    """A step that can be computed part by part.

    scans: the steps that read the streams, which are cut together; the first leads. aligned: columns that have no value
    in two parts. columns: of each column of the result the column of a scan that it is, unchanged; None if not known.
    in_turn: the streams stand one behind the other (concat), each part is of one of them. ordered: the order of rows
    over the parts is that over everything.
    """

    scans: tuple[int, ...]
    aligned: frozenset[Origin] = frozenset()
    columns: Mapping[str, Origin | None] | None = None
    in_turn: bool = False
    ordered: bool = True


class Separation:
    """The steps of a plan, as far as they were asked for.

    alignable: whether no value of columns is in two parts; None if no streams are to be cut together. separates: the
    same for what is grouped by.
    """

    def __init__(self, keyed: Keyed, alignable: Alignable | None, separates: Alignable | None = None) -> None:
        self._keyed = keyed
        self._plan = keyed.plan
        self._alignable = alignable
        self._separates = separates
        self._sources = {number: (source, identities) for number, source, identities in keyed.sources}
        self._found: list[Separable | str] = []

    def of(self, number: int) -> Separable | str:
        """A step as a separable one, or why it is none."""
        while len(self._found) <= number:
            self._found.append(self._examined(len(self._found)))
        return self._found[number]

    def _examined(self, number: int) -> Separable | str:
        step = self._plan.steps[number]
        if step.kind == "Scan":
            return self._scan(number)
        if step.kind == "Join":
            return self._join(number, step)
        if step.kind == "Union":
            return self._union(step)
        below = self._found[step.inputs[0]] if step.inputs else "it is in memory"
        if isinstance(below, str):
            return below
        rule = _RULES.get(step.kind)
        if rule is not None:
            return rule(step, below)
        if step.kind == "GroupBy":
            return self._group_by(step, below)
        return f"{step.kind.lower()} is not computed row by row"

    def _scan(self, number: int) -> Separable | str:
        if number not in self._sources or not self._sources[number][0].files:
            return "its stream is not known by its files"
        if not reads_file_by_file(self._plan, number, self._sources[number][0].files):
            return "its stream is not read file by file: rows are numbered or limited, or paths are part of them"
        if self._alignable is None:
            return Separable((number,))
        names = self._plan.schema(number).names()
        return Separable((number,), columns={name: (number, name) for name in names})

    # streams one behind the other

    def _union(self, step: Step) -> Separable | str:
        inputs: list[Separable] = []
        for each in step.inputs:
            found = self._found[each]
            if isinstance(found, str):
                return found
            if len(found.scans) > 1 and not found.in_turn:
                return "streams that are cut together are concatenated with others"
            inputs.append(found)
        scans = tuple(scan for each in inputs for scan in each.scans)
        if len(set(scans)) < len(scans):
            return "it reads one stream in several places"
        return Separable(scans, in_turn=len(scans) > 1, ordered=all(each.ordered for each in inputs))

    # groups

    def _group_by(self, step: Step, below: Separable) -> Separable | str:
        """A group-by is separable if no group has rows in two parts."""
        options, columns = step.body["options"], below.columns or {}
        if step.body["apply"] is not None or any(options.get(name) for name in ("dynamic", "rolling", "slice")):
            return "its groups are windows, or are handed to a function"
        if not all(map(is_elementwise, step.body["keys"])):
            return "what it groups by is not computed row by row"
        if not all(map(is_group_local, step.body["aggs"])):
            return "one of its aggregates may look at other groups"
        for key in step.body["keys"]:
            origin = columns.get(key["Column"]) if _is_column(key) else None
            if origin is not None and self._separates is not None and self._separates(below.aligned | {origin}):
                keys = _named(step.body["keys"], below)
                values = _named(step.body["aggs"], replace(below, columns=None))
                known = None if keys is None or values is None else {**keys, **values}
                return Separable(below.scans, below.aligned | {origin}, known)
        return "rows of one group may be in several parts"

    # joins

    def _join(self, number: int, step: Step) -> Separable | str:
        left, right = (self._found[each] for each in step.inputs)
        if not _is_plain_join(step):
            return "a join below it is not computed row by row"
        if isinstance(left, Separable) and isinstance(right, Separable):
            together = self._cut_together(step, left, right)
            if together is not None:
                return self._joined(number, step, together, left, right)
        sides = [side for side in (left, right) if isinstance(side, Separable) and _may_be_cut(step, side, left, right)]
        if not sides:
            return "a join below it needs all rows of what grows"
        chosen = max(sides, key=lambda side: self._size(side.scans))
        if self._reads(step.inputs[1 if chosen is left else 0], chosen.scans):
            return "it is joined with the very stream that grows"
        return self._joined(number, step, replace(chosen, columns=None), left, right)

    def _cut_together(self, step: Step, left: Separable, right: Separable) -> Separable | None:
        arguments = step.body["options"]["args"]
        if arguments["maintain_order"] not in _ORDERS_OF_BOTH.get(arguments["how"], ()):
            return None
        if arguments["nulls_equal"] or left.in_turn or right.in_turn:
            return None
        on = step.body["condition"]["Equi"]
        for mine, other in zip(on["left_on"], on["right_on"], strict=True):
            if not (_is_column(mine) and _is_column(other)):
                continue
            origins = (left.columns or {}).get(mine["Column"]), (right.columns or {}).get(other["Column"])
            if None in origins:
                continue
            aligned = left.aligned | right.aligned | {origin for origin in origins if origin is not None}
            if self._alignable is not None and self._alignable(aligned):
                return Separable(tuple(dict.fromkeys((*left.scans, *right.scans))), aligned)
        return None

    def _joined(
        self, number: int, step: Step, cut: Separable, left: Separable | str, right: Separable | str
    ) -> Separable:
        """The same, with the columns that the join gives; those that may be null now are not what they were."""
        how, suffix = step.body["options"]["args"]["how"], step.body["options"]["args"]["suffix"]
        mine = left.columns if isinstance(left, Separable) else None
        others = right.columns if isinstance(right, Separable) else None
        if mine is None or how in ("Right", "Full"):
            return cut
        columns = {name: origin if origin and origin[0] in cut.scans else None for name, origin in mine.items()}
        if how not in _LEFT_ONLY:
            if others is None:
                return cut
            on = step.body["condition"]["Equi"]
            dropped = {each["Column"] for each in on["right_on"] if _is_column(each)}
            for name, origin in others.items():
                if name not in dropped:
                    kept = origin if how == "Inner" and origin and origin[0] in cut.scans else None
                    columns[name if name not in mine else f"{name}{suffix}"] = kept
        is_true = set(columns) == set(self._plan.schema(number).names())
        return replace(cut, columns=columns if is_true else None)

    def _size(self, scans: tuple[int, ...]) -> tuple[bool, int]:
        """What is likely to grow: several files before one, and much before little."""
        identities = [identity for scan in scans for identity in self._sources[scan][1]]
        return len(identities) > len(scans), sum(identity.size or 0 for identity in identities)

    def _reads(self, number: int, scans: tuple[int, ...]) -> bool:
        """Whether a step reads the same files as one of these scans: then it grows as well."""
        sources = [self._plan.steps[scan].body["sources"] for scan in scans]
        pending = [number]
        while pending:
            step = self._plan.steps[pending.pop()]
            if step.kind == "Scan" and step.body["sources"] in sources:
                return True
            pending.extend(step.inputs)
        return False


# steps of one input


def _filter(step: Step, below: Separable) -> Separable | str:
    return below if is_elementwise(step.body["predicate"]) else "filter below it looks at several rows at once"


def _select(step: Step, below: Separable) -> Separable | str:
    expressions = step.body["expr"]
    # A selection of literals alone is one row in all.
    if not all(map(is_elementwise, expressions)) or not any(map(reads_rows, expressions)):
        return "select below it looks at several rows at once"
    return replace(below, columns=_named(expressions, below))


def _with_columns(step: Step, below: Separable) -> Separable | str:
    expressions = step.body["exprs"]
    if not all(map(is_elementwise, expressions)):
        return "with_columns below it looks at several rows at once"
    added = _named(expressions, below)
    return replace(below, columns=None if below.columns is None or added is None else {**below.columns, **added})


def _map(step: Step, below: Separable) -> Separable | str:
    function = step.body["function"]
    name = next(iter(function)) if isinstance(function, dict) else str(function)
    if name == "Unpivot":  # the columns of one batch of rows, then those of the next: whichever batches there are
        return replace(below, columns=None, ordered=False)
    return replace(below, columns=None) if name in _MAPS else f"{name.lower()} below it is not computed row by row"


_RULES: Final[dict[str, Callable[[Step, Separable], Separable | str]]] = {
    "Filter": _filter,
    "Select": _select,
    "HStack": _with_columns,
    "MapFunction": _map,
}


def is_row_wise(step: Step) -> bool:
    """Whether a step of one input gives for each row what depends on that row alone."""
    rule = _RULES.get(step.kind)
    found = None if rule is None else rule(step, Separable(()))
    return isinstance(found, Separable) and found.ordered


def _named(expressions: Sequence[Any], below: Separable) -> dict[str, Origin | None] | None:
    """The columns that expressions give, and where they come from; None if only the schema tells."""
    found: dict[str, Origin | None] = {}
    for expression in expressions:
        name = _name(expression)
        if name is None:
            return None
        found[name] = _origin(expression, below)
    return found


def _origin(expression: Any, below: Separable) -> Origin | None:
    """The column of a scan that an expression is, if it is one under whatever name."""
    while isinstance(expression, dict) and "Alias" in expression:
        expression = expression["Alias"][0]
    return (below.columns or {}).get(expression["Column"]) if _is_column(expression) else None


def _name(expression: Any) -> str | None:
    """What an expression is called; None if it is several columns."""
    try:
        return str(expression_of(expression).meta.output_name())
    except Exception:  # only the schema tells
        return None


def _is_column(expression: Any) -> bool:
    return isinstance(expression, dict) and set(expression) == {"Column"}


def _is_plain_join(step: Step) -> bool:
    arguments, condition = step.body["options"]["args"], step.body["condition"]
    if not isinstance(arguments["how"], str) or not isinstance(condition, dict) or set(condition) != {"Equi"}:
        return False
    sides = (*condition["Equi"]["left_on"], *condition["Equi"]["right_on"])
    plain = arguments["slice"] is None and arguments["validation"] == "ManyToMany"
    return plain and all(map(is_elementwise, sides))


def _may_be_cut(step: Step, side: Separable, left: Separable | str, right: Separable | str) -> bool:
    """Whether the rows of one side give their rows whatever its others are."""
    arguments = step.body["options"]["args"]
    if side is left and arguments["how"] in _LEFT_IS_CUT and arguments["maintain_order"] in _ORDERS["left"]:
        return True
    return side is right and arguments["how"] in _RIGHT_IS_CUT and arguments["maintain_order"] in _ORDERS["right"]
