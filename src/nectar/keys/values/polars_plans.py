"""Canonical content of serialised Polars expressions and plans.

In: the bytes Polars writes for an expression or a plan, and what the walk collects. Out: their content in the
collector: node for node as Polars wrote it, except that data is added by content, Python functions by the function
object (their pickled form changes when a file moves), and numbers that differ from process to process are left out.

Law: a node that could hide an input (a file, a query, a plugin, a Python source) is refused; so is any kind of
expression or plan that this module has not been told about.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any, Final

import msgspec
import polars as pl
from polars.functions import lazy as polars_lazy

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expansion, WalkContext
from nectar.keys.values.bulk import Parts
from nectar.keys.values.messagepack import Piece, end_of_value, pieces
from nectar.keys.values.place import HERE
from nectar.keys.values.polars_columns import add_frame
from nectar.model.refusal import Refusal

HEADER: Final = 79  # bytes before a serialised plan: a word, the version, the hash of the format
_MARK: Final = b"PLPYFN"
_PICKLED_BY: Final = 3  # bytes before a pickle: by which pickler, and the version of Python
# Folders in which Polars lay where plans were written that are read here: code of its own carries its file's name.
elsewhere: Final[set[str]] = set()

PLANS: Final = frozenset(
    [
        "Filter",
        "Cache",
        "DataFrameScan",
        "Select",
        "GroupBy",
        "Join",
        "Gather",
        "HStack",
        "MatchToSchema",
        "Pivot",
        "Distinct",
        "Sort",
        "Slice",
        "MapFunction",
        "Union",
        "HConcat",
        "MergeSorted",
    ]
)
REFUSED_PLANS: Final = {
    "IR": "it holds a plan that Polars has resolved before",
    "PythonScan": "it reads from a Python source, which may give other rows each time",
    "PipeWithSchema": "it calls Python code that may return any plan",
    "Sink": "it writes its result to a file",
    "SinkMultiple": "it writes its results to files",
    "SQL": "it holds a query text that may name files or the clock",
    "Recursive": "it repeats a plan until nothing is left to do",
    "WorkingTable": "it is inside a plan that is repeated until nothing is left to do",
    "Resolver": "it calls Python code that may return any plan",
}
MAP_FUNCTIONS: Final = frozenset(
    ["RowIndex", "OpaquePython", "Explode", "Unpivot", "Rename", "Unnest", "Stats", "FillNan", "Hint"]
)
_KINDS: Final = (
    "Element Alias Column Selector Literal DataTypeFunction BinaryExpr Cast Sort Gather SortBy Agg Ternary Function "
    "Explode Filter Over Rolling Slice KeepName Len Field AnonymousFunction Eval StructEval RenameAlias"
)
EXPRESSIONS: Final = frozenset(_KINDS.split())
FUNCTIONS: Final = frozenset(
    [
        "ArrayExpr",
        "BinaryExpr",
        "Categorical",
        "Extension",
        "ListExpr",
        "MapExpr",
        "StringExpr",
        "StructExpr",
        "TemporalExpr",
        "Bitwise",
        "Boolean",
        "Business",
        "Abs",
        "Negate",
        "Hist",
        "NullCount",
        "Pow",
        "Hash",
        "Mm3Hash",
        "ArgWhere",
        "IndexOf",
        "SearchSorted",
        "Range",
        "Trigonometry",
        "Atan2",
        "Sign",
        "FillNull",
        "FillNullWithStrategy",
        "RollingExpr",
        "RollingExprBy",
        "Append",
        "ShiftAndFill",
        "Shift",
        "DropNans",
        "DropNulls",
        "Quantile",
        "Mode",
        "Skew",
        "Kurtosis",
        "Reshape",
        "RepeatBy",
        "ArgUnique",
        "ArgMin",
        "ArgMax",
        "ArgSort",
        "MinBy",
        "MaxBy",
        "Product",
        "Rank",
        "Repeat",
        "Clip",
        "AsStruct",
        "TopK",
        "TopKBy",
        "CumCount",
        "CumSum",
        "CumProd",
        "CumMin",
        "CumMax",
        "Reverse",
        "ValueCounts",
        "UniqueCounts",
        "ApproxNUnique",
        "ApproxQuantile",
        "Coalesce",
        "Diff",
        "PctChange",
        "Interpolate",
        "InterpolateBy",
        "Entropy",
        "Log",
        "Log1p",
        "Exp",
        "Erf",
        "Erfc",
        "Unique",
        "Round",
        "Sql",
        "RoundSF",
        "Truncate",
        "Floor",
        "Ceil",
        "UpperBound",
        "LowerBound",
        "ConcatExpr",
        "Correlation",
        "PeakMin",
        "PeakMax",
        "Cut",
        "QCut",
        "Bin",
        "RLE",
        "RLEID",
        "ToPhysical",
        "Random",
        "SetSortedFlag",
        "FoldHorizontal",
        "ReduceHorizontal",
        "CumReduceHorizontal",
        "CumFoldHorizontal",
        "MaxHorizontal",
        "MinHorizontal",
        "SumHorizontal",
        "MeanHorizontal",
        "EwmMean",
        "EwmMeanBy",
        "EwmSum",
        "EwmSumBy",
        "EwmStd",
        "EwmVar",
        "Replace",
        "ReplaceStrict",
        "GatherEvery",
        "Reinterpret",
        "ExtendConstant",
        "RowEncode",
        "RowDecode",
    ]
)
_MADE_BY_NOBODY: Final = "it has a part that Python programs do not make"
REFUSED_EXPRESSIONS: Final = {
    **dict.fromkeys(["Display", "DecimalArith", "TruncArith", "AsList"], _MADE_BY_NOBODY),
    "SubPlan": "it holds a whole plan",
    "PipeWithDtype": "it calls Python code that may return any expression",
    "FfiPlugin": "it calls a compiled plugin, whose code is not known",
}
# The numbers of categories; those of other types are the same everywhere, but here nobody knows the type.
_NUMBERS: Final = frozenset({"ToPhysical", "Physical"})
_WHERE_FUNCTIONS_ARE: Final = (("Function", "function"), ("function", "Categorical"))
_PYTHON: Final = (
    ("AnonymousFunction", "function"),
    ("FoldHorizontal", "callback"),
    ("ReduceHorizontal", "callback"),
    ("CumFoldHorizontal", "callback"),
    ("CumReduceHorizontal", "callback"),
    ("RenameAlias", "function", "Map"),
    ("StructExpr", "MapFieldNames"),
    ("RollingExpr", "function", "Map"),
    ("GroupBy", "apply"),
    ("MapFunction", "function", "OpaquePython", "function"),
)
_of_polars: Final[set[tuple[str, types.CodeType]]] = set()  # code that Polars nests in its functions, where it was met
_MOST_OF_POLARS: Final = 1000
_LAST_OF_PYTHON: Final = frozenset(place[-1] for place in _PYTHON)


class Callback:
    """A Python callable as it stands in a plan, Polars' own wrappers around it included.

    outcomes: its fingerprints, remembered as long as the plan lives. called: what plans that are read back call.
    """

    __slots__ = ("__weakref__", "called", "function", "outcomes")

    def __init__(self, function: object) -> None:
        self.function = self.called = function
        self.outcomes: dict[object, Any] = {}


CallbackIn = Callable[[Any, str], Callback]  # the callable that a piece of a plan holds


def add_expression(parts: Parts, data: bytes, walk: WalkContext, callback_in: CallbackIn) -> bool:
    """Adds a serialised expression; tells whether it holds functions or data, which may change."""
    return _Reader(parts, walk, callback_in, "a Polars expression").read(data)


def add_plan(parts: Parts, data: bytes, walk: WalkContext, callback_in: CallbackIn) -> bool:
    """Adds a serialised plan; tells whether it holds functions or data, which may change."""
    parts.raw(data[:HEADER])
    return _Reader(parts, walk, callback_in, "a Polars LazyFrame").read(data[HEADER:])


class _Reader:
    """Goes over the pieces once; unchanged stretches are added as they are."""

    def __init__(self, parts: Parts, walk: WalkContext, callback_in: CallbackIn, what: str) -> None:
        self._parts = parts
        self._walk = walk
        self._callback_in = callback_in
        self._what = what
        self._holds_parts = False
        self._caches: dict[object, int] = {}
        self._random_rank = False
        self._unknown = unknown_kinds()

    def read(self, data: bytes) -> bool:
        begin = 0
        for piece in pieces(data):
            self._inspect(piece)
            if self._is_replaced(piece):
                self._parts.raw(data[begin : piece.begin])
                self._replace(piece)
                begin = piece.end
        self._parts.raw(data[begin:])
        return self._holds_parts

    def _fail(self, reason: str) -> None:
        raise UnencodableError(self._what, HERE, reason)

    def _inspect(self, piece: Piece) -> None:
        keys = piece.keys
        if piece.kind == "key":
            self._inspect_key(str(piece.value), keys)
        elif piece.kind == "str":
            if keys[-2:] in _WHERE_FUNCTIONS_ARE and piece.value in _NUMBERS:
                self._walk.refuse(Refusal("categories", "takes categories for numbers of this process", self._what))
            if keys[-2:] == ("Function", "function") and piece.value in self._unknown:
                self._fail(refusal_of_kind(str(piece.value)))
            if keys[-3:] == ("Rank", "options", "method"):
                self._random_rank = piece.value == "Random"
        elif piece.kind == "nil" and keys[-1:] == ("seed",) and (keys[-2:-1] != ("Rank",) or self._random_rank):
            self._walk.refuse(Refusal("random", "draws random numbers without a seed", self._what))

    def _inspect_key(self, key: str, keys: tuple[str, ...]) -> None:
        if key in self._unknown:
            self._fail(refusal_of_kind(key))
        if keys == ("dsl_plans", "value"):
            if key == "Scan":
                self._walk.refuse(Refusal("file", "scans files, whose content is not known", self._what))
            elif key not in PLANS:
                self._fail(REFUSED_PLANS.get(key, f"it has a step of the kind {key}, which is not known"))
        if keys == ("dsl_plans", "value", "MapFunction", "function") and key not in MAP_FUNCTIONS:
            self._fail(f"it has a step of the kind {key}, which is not known")

    def _is_replaced(self, piece: Piece) -> bool:
        keys = piece.keys
        return piece.kind == "bin" or (
            piece.kind == "bytes" and (is_python(keys) or keys[:1] == ("dataframes",) or looks_pickled(piece.value))
        )

    def _replace(self, piece: Piece) -> None:
        keys, value = piece.keys, piece.value
        if is_python(keys):
            self._holds_parts = True
            said, _ = said_and_pickle(value, self._what)
            if said:
                self.read(said)
            add_callable(self._parts, self._callback_in(value, self._what).function, set())
        elif keys[-2:] == ("Cache", "id"):
            self._parts.number(self._caches.setdefault(value, len(self._caches)))
        elif keys[:1] == ("dataframes",) or "Literal" in keys or keys[-2:] == ("Enum", "strings"):
            self._holds_parts = True
            self._add_data(value)
        else:
            self._fail(f"it holds bytes of an unknown kind under {'.'.join(keys[-3:])}")

    def _add_data(self, value: Any) -> None:
        """Adds data by content if it is an Arrow stream, otherwise as it is."""
        if value[:4] == b"\xff\xff\xff\xff":
            try:
                frame = pl.DataFrame.deserialize(io.BytesIO(value))  # which also reads what is marked as sorted
            except Exception:  # whatever is wrong with it, its bytes still say what it is
                frame = None
            if frame is not None and frame.width > 0:
                self._parts.text("frame")
                add_frame(self._parts, frame, self._walk)
                return
        self._parts.text("bytes")
        self._parts.raw(value)


def expand_callback(value: Callback, walk: WalkContext) -> Expansion:
    """The function of the user, and by name what Polars has wrapped around it."""
    parts = Parts(Callback)
    add_callable(parts, value.function, set())
    return parts.expansion("polars callback")


def is_python(keys: tuple[str, ...]) -> bool:
    """Whether the piece that these keys lead to is a Python function."""
    last = keys[-1] if keys else ""
    return last in _LAST_OF_PYTHON and any(keys[-len(place) :] == place for place in _PYTHON)


def looks_pickled(value: object) -> bool:
    """Whether bytes begin like a function that Polars has pickled."""
    return isinstance(value, bytes) and (
        value.startswith(_MARK) or (value[:1] in (b"\0", b"\1") and value[_PICKLED_BY:][:1] == b"\x80")
    )


def said_and_pickle(value: Any, what: str) -> tuple[bytes, bytes]:
    """What Polars says of a Python function (MessagePack; empty where it says nothing), and the pickle after it.

    It says which type the function returns, and how it may be called: that is part of the plan. Which pickler wrote
    the function is not.
    """
    begin = end = 0
    if value.startswith(_MARK):
        begin, end = len(_MARK), end_of_value(value, len(_MARK))
    pickled = bytes(value[end + _PICKLED_BY :])
    if pickled[:1] != b"\x80":
        raise UnencodableError(what, HERE, "its Python function is stored in an unknown way")
    return _without_resolved_type(bytes(value[begin:end])), pickled


def _without_resolved_type(said: bytes) -> bytes:
    """What Polars says of a function, without the type that it resolved when the expression was first used.

    It stays where no type was given: then it decides which types the function may return from now on. The name beside
    it is not used by Polars.
    """
    if not said:
        return said
    saying: Any = msgspec.msgpack.decode(said)
    match saying:
        case [given, {"name": _, "dtype": resolved, **more}, *rest] if not more:
            is_given = given == {"Literal": resolved}
            return msgspec.msgpack.encode([given, None if is_given else {"dtype": resolved}, *rest])
    return said


def add_callable(parts: Parts, function: Any, above: set[int]) -> None:
    """Adds a Python callable; functions that Polars itself wraps around it are added by name, then what they hold."""
    if id(function) in above:
        raise UnencodableError("a Polars wrapper function", HERE, "it holds itself")
    if isinstance(function, polars_lazy._map_batches_wrapper):
        parts.text("map_batches")
        parts.number(function.returns_scalar)
        add_callable(parts, function.function, above | {id(function)})
    elif isinstance(function, types.FunctionType) and _is_polars_code(function.__code__):
        parts.text("wrapper", function.__code__.co_qualname)
        parts.child(function.__defaults__, "defaults")
        parts.child(function.__kwdefaults__, "keyword defaults")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            parts.text(name)
            add_callable(parts, cell.cell_contents, above | {id(function)})
    else:
        parts.child(function, "function")


def _is_polars_code(code: types.CodeType) -> bool:
    """Whether a code object is, piece for piece, one that the installed Polars has nested in one of its functions."""
    known = code.co_filename, code  # equal code may lie in another file
    if known in _of_polars:
        return True
    found = _is_nested_in_polars(code)
    if found and len(_of_polars) < _MOST_OF_POLARS:
        _of_polars.add(known)
    return found


def _is_nested_in_polars(code: types.CodeType) -> bool:
    outer, _, inner = code.co_qualname.partition(".<locals>.")
    file = _file_of(code)
    if not inner or not file.startswith(os.path.dirname(pl.__file__)):
        return False
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "polars" and getattr(module, "__file__", None) == file:
            found: Any = module
            for step in outer.split("."):
                found = getattr(found, step, None)
            found = inspect.unwrap(found) if callable(found) else None
            if isinstance(found, types.FunctionType) and _holds(found.__code__, code):
                return True
    return False


def _file_of(code: types.CodeType) -> str:
    """The file that code of Polars lies in here, if it was written down where Polars lay elsewhere."""
    for folder in elsewhere:
        if code.co_filename.startswith(folder):
            return os.path.join(os.path.dirname(pl.__file__), code.co_filename[len(folder) :].lstrip("/\\"))
    return code.co_filename


def _holds(outer: types.CodeType, code: types.CodeType) -> bool:
    nested = [constant for constant in outer.co_consts if isinstance(constant, types.CodeType)]
    return code in nested or any(_holds(inner, code) for inner in nested)


@functools.cache
def unknown_kinds() -> frozenset[str]:
    """Kinds of expressions and functions that the installed Polars has and that are not allowed.

    Polars names all kinds it knows when it is given one that it does not know.
    """
    asked = b"\x81\xa3Zzz\x01"
    expressions = _kinds_named(asked)
    functions = _kinds_named(b"\x81\xa8Function\x82\xa5input\x90\xa8function" + asked)
    if not expressions or not functions:
        raise UnencodableError("a Polars expression", HERE, f"the format of Polars {pl.__version__} is not known")
    return (expressions | functions | REFUSED_EXPRESSIONS.keys()) - EXPRESSIONS - FUNCTIONS


def refusal_of_kind(name: str) -> str:
    """Why an expression or function of this kind is refused."""
    return REFUSED_EXPRESSIONS.get(name, f"it has a part of the kind {name}, which is not known")


def _kinds_named(data: bytes) -> frozenset[str]:
    try:
        pl.Expr.deserialize(io.BytesIO(data))
    except Exception as error:
        _, _, listed = str(error).partition("expected one of")
        return frozenset(re.findall(r"`(\w+)`", listed))
    return frozenset()
