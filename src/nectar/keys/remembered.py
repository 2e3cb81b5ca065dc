"""What objects of libraries remember to save time, and what of it is left out where only the rest is asked for.

In: an object of a library, or a class that one has made, and attributes of it. Out: the attributes without what is
filled as it is asked for, and follows from the rest. Law: this decides whether a computation has changed anything
else; what is remembered stays in keys, so that a stale cache cannot do harm.
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict
from typing import Any, Final

from nectar.keys.expansion import WalkContext
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES
from nectar.keys.origin import origin_of_class
from nectar.keys.resolve import contents
from nectar.keys.texts import program_texts, version_of_program
from nectar.model.origin import APPLICATION

# Attributes in which classes keep what they have made of the rest, and of no argument: by module, class and name.
_FILLED: Final = frozenset(
    {
        # patterns and sets of characters that are made of the rules, and are made again when one is registered
        ("mistune.core", "Parser", "_Parser__sc"),
        ("mistune.inline_parser", "InlineParser", "_fast_trigger_chars"),
        ("mistune.inline_parser", "InlineParser", "_fast_trigger_re"),
        ("mistune.inline_parser", "InlineParser", "_fast_trigger_re_chars"),
        # the patterns of all terminals in one, and what is called for each
        ("lark.lexer", "BasicLexer", "_scanner"),
        ("lark.lexer", "BasicLexer", "callback"),
        # the signature of the function
        ("toolz.functoolz", "curry", "_sigspec"),
        ("toolz.functoolz", "curry", "_has_unknown_args"),
        # what every parse begins with: names of what has none, and whether nested sequences were made one
        ("pyparsing.core", "ParserElement", "streamlined"),
        ("pyparsing.core", "ParserElement", "_defaultName"),
        ("pyparsing.core", "ParserElement", "errmsg"),
        ("pyparsing.core", "ParseExpression", "_may_return_empty"),
        ("pyparsing.core", "ParseExpression", "mayReturnEmpty"),
        ("pyparsing.core", "ParseExpression", "mayIndexError"),
    }
)
# Captured variables in which functions keep what they find out about another one: by module, name and variables.
_FOUND_OUT: Final = {("pyparsing.core", "_trim_arity.<locals>.wrapper"): frozenset({"found_arity", "limit"})}
_EMPTY: Final = frozenset({list, dict, set})  # what reading leaves behind in a dict that makes what is missing


def remembers(cls: type, attributes: dict[str, Any]) -> bool:
    """Whether some of the attributes of an instance remember something."""
    names = _filled(cls)
    return any(name in names or _names_cache(name) for name in attributes) and _is_plain(cls)


def rest_of(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an instance that remembers something, without what follows from the rest."""
    names = _filled(cls)
    rest = {name: value for name, value in attributes.items() if name not in names and not _names_cache(name)}
    if "streamlined" in names and type(rest.get("exprs")) is list:
        rest["exprs"] = _made_one(cls, rest["exprs"])
    return rest


def captured_by(function: types.FunctionType, walk: WalkContext) -> list[object]:
    """What the cells of a function of a library hold, without what follows from the rest where only that counts."""
    held = contents(function)
    where = str(function.__globals__.get("__name__")), function.__code__.co_qualname
    found_out = _FOUND_OUT.get(where, frozenset())
    if not found_out.isdisjoint(held):
        walk.observe(HOLDS_CACHES)
        if WITHOUT_CACHES in walk.observed:
            return [value for name, value in held.items() if name not in found_out]
    return list(held.values())


def _made_one(cls: type, parts: list[Any]) -> list[Any]:
    """The parts of an expression of pyparsing as they are once it was used: nested ones of its kind are taken in."""
    if len(parts) != 2:
        return parts
    first = _parts_of(cls, parts[0])
    last = _parts_of(cls, parts[1])
    return [*first, *last]


def _parts_of(cls: type, inner: Any) -> list[Any]:
    """The parts that stand for an expression within another: itself, if it does more than its parts."""
    held = vars(inner) if isinstance(inner, cls) else {}
    does_more = held.get("parseAction") or held.get("debug") or held.get("resultsName") is not None
    return [inner] if does_more or type(held.get("exprs")) is not list else _made_one(type(inner), held["exprs"])


def is_made_by_metaclass(cls: type, name: str, value: Any) -> bool:
    """Whether a class of the application has a dict that makes what is missing from the library of its metaclass.

    A name that stands in a text of the program may be used there.
    """
    if type(value) is not defaultdict or value.default_factory not in _EMPTY or type(cls) is type:
        return False
    is_hidden = name.startswith("_") and not _is_written(name, version_of_program())
    return is_hidden and origin_of_class(type(cls)) is not APPLICATION


def without_empty(value: Any) -> Any:
    """A dict that makes what is missing, without what it has made and nobody has filled."""
    kind = value.default_factory
    return defaultdict(kind, {key: each for key, each in value.items() if each or type(each) is not kind})


def _names_cache(name: str) -> bool:
    return name.rstrip("_").endswith(("cache", "caches"))


@functools.lru_cache(maxsize=1024)
def _filled(cls: type) -> frozenset[str]:
    bases = {(str(base.__module__), base.__qualname__) for base in cls.__mro__}
    return frozenset(name for module, kind, name in _FILLED if (module, kind) in bases)


def _is_plain(cls: type) -> bool:
    """Whether what lies in caches of instances follows from the rest: not if the class is there to remember things."""
    return origin_of_class(cls) is not APPLICATION and not _is_there_to_remember(cls)


@functools.lru_cache(maxsize=1024)
def _is_there_to_remember(cls: type) -> bool:
    return any("cache" in f"{base.__module__}.{base.__qualname__}".lower() for base in cls.__mro__[:-1])


@functools.lru_cache(maxsize=256)
def _is_written(name: str, version: object) -> bool:
    """Whether a name stands in a text of the program, or may stand in one that nobody can read."""
    return any(name in each.source or each.why for each in program_texts(version))
