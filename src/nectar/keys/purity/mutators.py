"""What changes a receiver or an argument. Data, and one look-up over it.

Types and functions of optional libraries are named as (module, qualified name), because nothing is imported for them.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import io
import random
import sys
import threading
from types import (
    BuiltinMethodType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, Final

from nectar.keys.modules import Follower, is_arriving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nectar.keys.bytecode.operation import Operation

_IN_PLACE: Final = frozenset({"__iadd__", "__imul__", "__isub__", "__iand__", "__ior__", "__ixor__", "__imatmul__"})
_ITEMS: Final = frozenset({"__setitem__", "__delitem__"})
_LIST: Final = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "__init__"})
_LIST_ALL: Final = _LIST | _ITEMS | {"__iadd__", "__imul__"}
_DICT: Final = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__ior__", "__init__"}) | _ITEMS
_SET: Final = frozenset(
    {"add", "discard", "remove", "pop", "clear", "update", "difference_update", "intersection_update", "__init__"}
) | {"symmetric_difference_update", "__ior__", "__iand__", "__isub__", "__ixor__"}
_READER: Final = frozenset(
    {"read", "readline", "readlines", "readinto", "read1", "readinto1", "__next__", "seek", "detach"}
)
_WRITER: Final = frozenset({"write", "writelines", "truncate", "flush", "close", "__exit__"})
_RANDOM: Final = (
    "random seed setstate getrandbits randrange randint randbytes choice choices shuffle sample uniform triangular "
    "normalvariate gauss lognormvariate expovariate vonmisesvariate gammavariate betavariate paretovariate "
    "weibullvariate binomialvariate __init__"
)
_NUMPY_DRAWS: Final = (
    "random choice bytes shuffle permutation normal standard_normal uniform beta binomial chisquare dirichlet "
    "exponential f gamma geometric gumbel hypergeometric laplace logistic lognormal logseries multinomial "
    "multivariate_normal negative_binomial noncentral_chisquare noncentral_f pareto poisson power rayleigh "
    "standard_cauchy standard_exponential standard_gamma standard_t triangular vonmises wald weibull zipf "
)
_GENERATOR: Final = _NUMPY_DRAWS + "integers permuted multivariate_hypergeometric spawn"
_RANDOM_STATE: Final = _NUMPY_DRAWS + "rand randn randint random_sample random_integers tomaxint seed set_state"

MUTATORS: Final[dict[type, frozenset[str]]] = {
    list: _LIST_ALL,
    dict: _DICT,
    set: _SET,
    bytearray: _LIST_ALL - {"sort"},
    collections.deque: (_LIST_ALL - {"sort"}) | {"appendleft", "extendleft", "popleft", "rotate"},
    collections.defaultdict: _DICT | {"__missing__", "__getitem__"},  # looking up a missing key adds it
    collections.OrderedDict: _DICT | {"move_to_end"},
    collections.Counter: _DICT | {"subtract", "__iadd__", "__isub__", "__iand__", "_keep_positive"},
    collections.ChainMap: _DICT,
    collections.UserDict: _DICT,
    collections.UserList: _LIST_ALL,
    array.array: (_LIST_ALL - {"clear", "sort"}) | {"byteswap", "frombytes", "fromfile", "fromlist", "fromunicode"},
    memoryview: frozenset({"__setitem__", "release"}),
    random.Random: frozenset(_RANDOM.split()),
    GeneratorType: frozenset({"__next__", "send", "throw", "close"}),
    contextvars.ContextVar: frozenset({"set", "reset"}),
    contextvars.Context: frozenset({"run"}),
    threading.Event: frozenset({"set", "clear"}),
    threading.Semaphore: frozenset({"acquire", "release", "__enter__", "__exit__"}),
    threading.Barrier: frozenset({"wait", "reset", "abort"}),
    io.StringIO: (_READER - {"readinto", "read1", "readinto1"}) | _WRITER | {"__init__"},
    io.BytesIO: _READER | _WRITER | {"__init__"},
    io.IOBase: _READER | _WRITER,
    io.TextIOWrapper: (_READER - {"readinto", "read1", "readinto1"}) | _WRITER | {"reconfigure"},
    functools._lru_cache_wrapper: frozenset({"cache_clear"}),
}

# The same for types of optional libraries. Names their pandas or numpy version does not have do no harm.
LIBRARY_MUTATORS: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("numpy", "ndarray"): frozenset({"fill", "sort", "partition", "put", "resize", "setfield", "setflags"})
    | _ITEMS | _IN_PLACE
    | {"__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__ilshift__", "__irshift__"},
    ("numpy.random", "Generator"): frozenset(_GENERATOR.split()),
    ("numpy.random", "RandomState"): frozenset(_RANDOM_STATE.split()),
    ("numpy.random", "SeedSequence"): frozenset({"spawn"}),
    ("pandas", "DataFrame"): frozenset({"insert", "pop", "update", "isetitem", "__setattr__"}) | _ITEMS | _IN_PLACE,
    ("pandas", "Series"): frozenset({"pop", "update", "__setattr__"}) | _ITEMS | _IN_PLACE,
    ("pandas", "Index"): frozenset({"__setattr__"}),
    ("polars", "DataFrame"): frozenset(
        {"insert_column", "replace_column", "extend", "drop_in_place", "__setitem__"}
    ),
    ("polars", "Series"): frozenset({"append", "extend", "scatter", "__setitem__"}),
}  # fmt: skip

# A call with one of these keywords true (in_place, inplace) or holding an array or frame (out) changes something.
INPLACE_KEYWORDS: Final[frozenset[str]] = frozenset({"inplace", "in_place"})
OUT_KEYWORDS: Final[frozenset[str]] = frozenset({"out"})

# Attribute chains that lead to a part of the receiver, so that assigning to an item there changes the receiver.
VIEWS_OF_RECEIVER: Final[frozenset[str]] = frozenset(
    {"loc", "iloc", "at", "iat", "flat", "T", "values", "real", "imag"}
)

# Methods that on a receiver nobody knows mean reading files or the network, and hardly anything else.
RECEIVER_READS_FILE: Final[frozenset[str]] = frozenset(
    {"read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "rglob", "hardlink_to", "symlink_to", "recv"}
    | {"recvfrom", "recv_into", "sendall", "urlopen", "getaddrinfo", "fetchone", "fetchall", "fetchmany"}
)
# Methods of paths that others than paths hardly have, except a class that calls its own.
RECEIVER_IS_PATH: Final[frozenset[str]] = frozenset(
    {"exists", "is_file", "is_dir", "is_symlink", "is_mount", "stat", "lstat", "samefile", "glob", "open"}
)
# Methods that draw random numbers unless one of the keywords is given.
RECEIVER_NEEDS_KEYWORD: Final[dict[str, frozenset[str]]] = {"sample": frozenset({"random_state", "seed"})}
# Methods that draw random numbers if they are given nothing at all.
RECEIVER_NEEDS_ARGUMENT: Final[frozenset[str]] = frozenset({"shuffle"})
RECEIVER_READS_CLOCK: Final[frozenset[str]] = frozenset({"now", "utcnow", "today"})
# All of these: names that say something about a receiver nobody knows.
GUESSED: Final[frozenset[str]] = frozenset().union(
    RECEIVER_READS_FILE, RECEIVER_IS_PATH, RECEIVER_NEEDS_KEYWORD, RECEIVER_NEEDS_ARGUMENT, RECEIVER_READS_CLOCK
)

# Objects that are changed during a call and put back before it ends: guards against endless recursion.
TRANSIENT: Final[tuple[tuple[str, str], ...]] = (("attr._compat", "repr_context"),)

RECEIVER: Final = -1  # the position of what a bound method is bound to

# (module, qualified name): positions of the arguments that the call changes.
ARGUMENT_MUTATORS: Final[dict[tuple[str, str], tuple[int, ...]]] = {
    ("builtins", "setattr"): (0,),
    ("builtins", "delattr"): (0,),
    ("builtins", "next"): (0,),
    ("builtins", "anext"): (0,),
    ("builtins", "object.__setattr__"): (0,),
    ("builtins", "object.__delattr__"): (0,),
    ("builtins", "type.__setattr__"): (0,),
    ("builtins", "type.__delattr__"): (0,),
    **{("operator", name): (0,) for name in
       ("setitem", "delitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior",
        "ipow", "irshift", "isub", "itruediv", "ixor")},
    **{(module, name): (0,) for module in ("heapq", "_heapq") for name in
       ("heapify", "heappop", "heappush", "heappushpop", "heapreplace", "_heapify_max", "_heappop_max",
        "_heapreplace_max")},
    **{("bisect", name): (0,) for name in ("insort", "insort_left", "insort_right")},
    **{("_bisect", name): (0,) for name in ("insort_left", "insort_right")},
    ("random", "shuffle"): (0,),
    ("numpy.random", "shuffle"): (0,),
    ("random", "Random.shuffle"): (0, 1),
    ("struct", "pack_into"): (1,),
    ("_struct", "pack_into"): (1,),
    ("functools", "update_wrapper"): (0,),
    ("functools", "total_ordering"): (0,),
    ("dataclasses", "dataclass"): (0,),
    ("collections.abc", "MutableMapping.update"): (0,),
    ("collections.abc", "MutableMapping.setdefault"): (0,),
    ("collections.abc", "MutableSequence.append"): (0,),
    ("collections.abc", "MutableSequence.extend"): (0,),
    ("abc", "ABCMeta.register"): (0,),
    ("shutil", "copyfileobj"): (0, 1),
    ("json", "dump"): (1,),
    ("json", "load"): (0,),
    ("csv", "writer"): (0,),
    ("numpy", "copyto"): (0,),
    ("numpy", "put"): (0,),
    ("numpy", "putmask"): (0,),
    ("numpy", "place"): (0,),
    ("numpy", "put_along_axis"): (0,),
    ("numpy", "fill_diagonal"): (0,),
    ("numpy", "ufunc.at"): (1,),
    ("itertools", "tee"): (0,),
}  # fmt: skip


def draws_without_seed(method: str, call: Operation) -> bool:
    """Whether a method that needs a seed is called without one."""
    if method in RECEIVER_NEEDS_ARGUMENT:
        return len(call.operands) == 1
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    return method in RECEIVER_NEEDS_KEYWORD and not RECEIVER_NEEDS_KEYWORD[method].intersection(keywords)


def mutators_of(kind: type) -> frozenset[str]:
    """Names of the methods that change an object of this type, inherited ones included."""
    known = _by_type.get(kind)
    if known is None:
        known = frozenset()
        for base in kind.__mro__:
            known |= MUTATORS.get(base, frozenset()) | _library_mutators(base)
        if hasattr(kind, "__next__"):
            known |= {"__next__"}
        _by_type[kind] = known
    return known


_by_type: dict[type, frozenset[str]] = {}


def implicit_in(kind: type) -> frozenset[str]:
    """Names of the methods that change an object of this type where code only looks: `words[k]`, `for x in it`."""
    return mutators_of(kind) & _LOOKS


_LOOKS: Final = frozenset({"__getitem__", "__missing__", "__next__"})


def _library_mutators(base: type) -> frozenset[str]:
    for (module_name, name), methods in LIBRARY_MUTATORS.items():
        module = sys.modules.get(module_name)
        if module is not None and vars(module).get(name) is base:
            return methods
    return frozenset()


def is_transient(value: object) -> bool:
    """Whether changes of an object do not outlive the call, because its library sees to it."""
    for module_name, name in TRANSIENT:
        module = sys.modules.get(module_name)
        if isinstance(module, ModuleType) and vars(module).get(name, TRANSIENT) is value:
            return True
    return False


def changed_arguments(value: object) -> tuple[int, ...]:
    """Positions of the arguments a library callable changes.

    The receiver of an unbound method is position 0; of a bound one it is RECEIVER, and the others count without it.
    """
    known = _positions()
    found = known.get(id(value))
    if found is not None:
        return found[1]
    kind = type(value)
    if kind is MethodDescriptorType or kind is WrapperDescriptorType:
        method: Any = value
        return (0,) if method.__name__ in mutators_of(method.__objclass__) else ()
    if kind is MethodType:
        method = value
        return tuple(position - 1 for position in changed_arguments(method.__func__))
    if kind is BuiltinMethodType or kind is MethodWrapperType:
        method = value
        receiver = method.__self__
        if receiver is None or isinstance(receiver, type | ModuleType):
            return ()
        if method.__name__ in mutators_of(type(receiver)):
            return (RECEIVER,)
        if type(receiver) is dict and method.__name__ in _LOOKS:  # which a defaultdict inherits, and changes itself by
            return ()
        unbound = next(
            (vars(base)[method.__name__] for base in type(receiver).__mro__ if method.__name__ in vars(base)), None
        )
        found = known.get(id(unbound))
        return tuple(position - 1 for position in found[1]) if found is not None else ()
    return ()


_index: dict[int, tuple[object, tuple[int, ...]]] = {}
_indexed: dict[tuple[str, str], ModuleType] = {}


def _positions() -> dict[int, tuple[object, tuple[int, ...]]]:
    _modules.follow()
    return _index


def _take_in() -> bool:
    for place, positions in ARGUMENT_MUTATORS.items():
        for found in _new(place):
            _index.setdefault(id(found), (found, positions))
    for kind, names in MUTATORS.items():
        _take_in_methods(kind, names)
    for place, names in LIBRARY_MUTATORS.items():
        for found in _new(place):
            _take_in_methods(found, names)
    return not any(map(is_arriving, _homes()))


_modules: Final = Follower(_take_in)


def _homes() -> Iterator[ModuleType]:
    for name, _ in (*ARGUMENT_MUTATORS, *LIBRARY_MUTATORS):
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            yield module


def _new(place: tuple[str, str]) -> Iterator[Any]:
    """What lies at a place of a module that was not there before."""
    module = sys.modules.get(place[0])
    if not isinstance(module, ModuleType) or _indexed.get(place) is module:
        return
    found: Any = vars(module)
    for part in place[1].split("."):
        found = found.get(part) if isinstance(found, dict) else getattr(found, part, None)
    if found is not None:
        yield found
        _indexed[place] = module


def _take_in_methods(kind: type, names: frozenset[str]) -> None:
    """Methods that are inherited, or not written in C, do not tell this class: they are known by identity."""
    for name in names:
        home = next((base for base in kind.__mro__ if name in vars(base)), object)
        if home is not object:
            _index.setdefault(id(vars(home)[name]), (vars(home)[name], (0,)))
