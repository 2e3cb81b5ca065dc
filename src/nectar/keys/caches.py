"""Functions that remember their results (functools.cache, lru_cache): whether these are what they compute now.

In: such a function and the fingerprint of what it wraps, each time a walk has reached it. Out: why results made with
its help must not be kept, or None. What a cache holds cannot be looked at; but one that was empty when it was first
seen, whose function has had the same fingerprint each time since, and to which nothing was added but by computations
that are watched, holds what a fresh process would compute: what is added at other times may be added while something
is another that is set back before anybody looks. So does that of a function which uses nothing of the application but
itself. Clearing a cache makes a new beginning.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from nectar.keys.folding import MISSING
from nectar.keys.origin import origin_of_builtin, origin_of_class, origin_of_function, origin_of_module
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

    from nectar.keys.purity.report import Examined

    Cached = _lru_cache_wrapper[Any]


KIND: Final = "cache"  # of these refusals, which speak against results made in this process, not against the function


class _Seen:
    """How a cache was found. digest: of the function that has filled it; None if nobody knows which that was.

    added: how many results were ever added to it; None if it does not matter when.
    """

    __slots__ = ("added", "digest")

    def __init__(self, digest: bytes | None, added: int | None) -> None:
        self.digest, self.added = digest, added

    def is_complete(self, cached: Cached) -> bool:
        """Whether it is known of all results in the cache when they were added."""
        return self.added is None or self.added == cached.cache_info().misses


_seen: Final[weakref.WeakKeyDictionary[Cached, _Seen]] = weakref.WeakKeyDictionary()


def look(cached: Cached, digest: bytes, alone: bool) -> Refusal | None:
    """Notes that the cache was reached while its function has this fingerprint; says if it may hold something else.

    alone: nothing that the function uses can have been another before.
    """
    before = _seen.get(cached)
    found = cached.cache_info()
    added = None if alone else found.misses
    if found.currsize == 0 or (before is None and alone):
        if before is None or before.digest != digest or not before.is_complete(cached):
            _seen[cached] = _Seen(digest, added)
        return None
    if before is None:
        _seen[cached] = _Seen(None, None)
        return _refusal(cached, "was filled before Nectar saw it")
    if before.digest is not None and (before.digest != digest or not before.is_complete(cached)):
        _seen[cached] = _Seen(None, None)
    if _seen[cached].digest is None:
        return _refusal(cached, "may have been filled when the function, or what it uses, was another")
    return None


def noted() -> list[tuple[weakref.ref[Cached], _Seen]]:
    """The caches of which everything is known now; for a computation that begins."""
    if not _seen:
        return []
    return [(weakref.ref(cached), seen) for cached, seen in list(_seen.items()) if seen.is_complete(cached)]


def note_what_was_added(before: Iterable[tuple[weakref.ref[Cached], _Seen]]) -> None:
    """What was added to these caches since was added by a computation that has been looked at when it began."""
    for reference, seen in before:
        cached = reference()
        if cached is not None and seen.added is not None:
            seen.added = cached.cache_info().misses


def is_unchanged(cached: Cached, seen: object) -> bool:
    """Whether the cache is as it was found then (see token); and may be emptied at any time to make it good."""
    if not isinstance(seen, _Seen) or _seen.get(cached) is not seen:
        return False
    return seen.is_complete(cached) and (seen.digest is not None or cached.cache_info().currsize > 0)


def token(cached: Cached) -> object:
    """Stands for how the cache was found last."""
    return _seen.get(cached)


def uses_only_itself(cached: Cached, examined: Iterable[Examined]) -> bool:
    """Whether all that a function was seen to use is itself and what libraries and the language bring."""
    for each in examined:
        if each.function is not cached.__wrapped__ or each.resolution.cells:
            return False
        for _, _, found in each.resolution.reads:
            if found is not cached and found is not MISSING and not _is_of_library(found):
                return False
    return True


def _is_of_library(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return origin_of_module(value) is not APPLICATION
    if isinstance(value, type):
        return origin_of_class(value) is not APPLICATION
    if isinstance(value, types.FunctionType):
        return origin_of_function(value) is not APPLICATION
    return isinstance(value, types.BuiltinFunctionType) and origin_of_builtin(value) is not APPLICATION


def _refusal(cached: Cached, how: str) -> Refusal:
    function: Any = cached.__wrapped__
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    place = name if code is None else f"{name} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"
    reason = f"remembers results (functools.cache), and its cache {how}; {name}.cache_clear() makes it reusable"
    return Refusal(KIND, reason, place)
