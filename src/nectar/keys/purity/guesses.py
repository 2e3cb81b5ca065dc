"""What functions of libraries that no table knows do, told by their names: those that draw random numbers or say now.

In: a callable of a library. Out: the kind of what it reads and how a call has to look to be fine, or None. Code that is
not Python's cannot be followed, so its name is all there is. Functions in Python can be followed, and are guessed at
only if they take a seed: what they hand it to may not be Python's.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from typing import Any, Final

from nectar.keys.origin import is_installed
from nectar.keys.purity.deny import Condition

_RANDOM: Final = frozenset(
    {"random", "randomly", "randomize", "randomized", "rand", "randn", "randint", "noise", "shuffle", "shuffled"}
    | {"uuid1", "uuid4", "uuid6", "uuid7", "ulid", "nanoid", "gensalt", "nonce", "keygen", "keypair"}
)
_MAKING: Final = frozenset({"generate", "gen", "create", "make", "new"})
_SECRETS: Final = frozenset({"key", "keys", "private", "secret", "password", "token", "salt", "prime"})
_SAMPLES: Final = frozenset({"sample", "sampled", "samples", "sampling"})  # of texts or points, unless there is a seed
_CLOCK: Final = frozenset({"now", "utcnow", "today"})
SEEDS: Final = frozenset({"seed", "random_state", "random_seed", "rng", "prng", "generator"})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*")
_COMPILED: Final = frozenset({"cython_function_or_method", "fused_cython_function", "nb_func"})
_OF_BOOST: Final = ("Boost.Python", "function")
_DECLARED: Final = re.compile(r"[(,\[]\s*(?:\([\w.]+\)\s*)?([A-Za-z_]\w*)\s*(?==|[,\])])")  # parameters, in a docstring
_LONG: Final = 4000  # characters of what tells the parameters
_KNOWN: Final = frozenset({"numpy", "pandas", "polars", "pyarrow", "duckdb", "builtins"})  # tables tell of them


def guess(value: Any) -> tuple[str, Condition | None] | None:
    """What a function of a library is taken to read ("random" or "clock"), and what makes a call of it fine."""
    is_python = type(value) is types.FunctionType
    if not is_python and not is_native(value):
        return None
    name = getattr(value, "__name__", None)
    kind = _kind(name) if type(name) is str else ""
    if kind:
        return _of_library(value, kind, is_python)
    return None if is_python else _by_switch(value)


def is_native(value: Any) -> bool:
    """Whether a value is a function of a module or class that was compiled, and no method of an object."""
    if type(value) is types.BuiltinFunctionType:
        receiver = value.__self__
        is_shared = receiver is None or isinstance(receiver, (types.ModuleType, type))
        return is_shared or type(receiver).__name__ == "PyCapsule"
    if type(value) is types.ClassMethodDescriptorType:
        return True
    kind = type(value)
    return kind.__name__ in _COMPILED or (kind.__module__, kind.__name__) == _OF_BOOST


@functools.lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    words = {word.lower() for word in _WORD.findall(name)}
    if words & _RANDOM or (words & _MAKING and words & _SECRETS):
        return "random"
    return "clock" if words & _CLOCK else "sample" if words & _SAMPLES else ""


@functools.lru_cache(maxsize=1024)
def _of_library(value: Any, kind: str, is_python: bool) -> tuple[str, Condition | None] | None:
    if not _is_guessed_at(value, is_python):
        return None
    seed = _seed(value)
    if seed is None:
        return None if is_python or kind == "sample" else (kind, None)
    return ("clock", None) if kind == "clock" else ("random", seed)


def _is_guessed_at(value: Any, is_python: bool) -> bool:
    """Whether a function may be of a library that no table knows."""
    home = getattr(value, "__module__", None) or _home_of(value)  # Rust says nothing
    if type(home) is not str:
        return not is_python
    module = sys.modules.get(home)
    package = home.partition(".")[0]
    is_known = package in _KNOWN or package in sys.stdlib_module_names
    return not is_known and (module is None or is_installed(module))


@functools.lru_cache(maxsize=1024)
def _by_switch(value: Any) -> tuple[str, Condition | None] | None:
    """The same for a native function that draws if a parameter says so, such as `doRandom`."""
    # Asked first: reading a signature compiles patterns, for some milliseconds in a process that has read none.
    if not _is_guessed_at(value, is_python=False):
        return None
    for position, name in enumerate(_parameters(value)):
        if _kind(name) == "random":
            return "random", Condition(position, name, given=False)
    return None


def _parameters(value: Any) -> list[str]:
    """The names of the parameters of a native function, by its signature, or by that in its docstring.

    Of several there, the one with the most parameters counts.
    """
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        text = str(getattr(value, "__doc__", "") or "")[:_LONG]
        shown = re.findall(rf"\b{re.escape(value.__name__)}\s*(\(.*?)->", text, re.DOTALL)
        return max((_DECLARED.findall(each) for each in shown), key=len, default=[])


def _home_of(value: Any) -> object:
    """The name of the module that a function belongs to, by what it is asked of."""
    receiver = getattr(value, "__objclass__", None) or value.__self__
    return getattr(receiver, "__module__" if isinstance(receiver, type) else "__name__", None)


def _seed(value: Any) -> Condition | None:
    """The parameter that takes a seed; None if there is none. Of what does not tell its parameters nothing is known."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    for position, parameter in enumerate(parameters):
        if parameter.name in SEEDS:
            by_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
            return Condition(None if by_keyword else position, parameter.name)
    return None
