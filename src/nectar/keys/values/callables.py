"""Expanders of callables that are neither functions nor classes: partials, caches, methods, getters, descriptors."""

from __future__ import annotations

import functools
import gc
import operator
import types
from collections.abc import Callable
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.ambient import SETTINGS_OF_METHODS
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.origin import origin_of_function
from nectar.keys.purity.mutators import RECEIVER_IS_PATH, RECEIVER_READS_FILE
from nectar.keys.purity.observers import ATTRIBUTE_FEATURES, REFUSE
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

COPIED: Final = frozenset(
    {"__module__", "__name__", "__qualname__", "__doc__", "__wrapped__", "__annotations__", "__type_params__"}
)  # what functools.update_wrapper copies from the wrapped function


def attributes(value: object, without: frozenset[str] = frozenset()) -> tuple[list[str], list[object]]:
    """Names and values of an instance's own attributes, ordered by name."""
    own: dict[str, object] = getattr(value, "__dict__", {})
    names = sorted(name for name in own if name not in without)
    return names, [own[name] for name in names]


def expand_partial(value: functools.partial[Any], walk: WalkContext) -> Expansion:
    """A partial: function, positional and keyword arguments, own attributes."""
    walk.note_call_names((), frozenset(value.keywords), False)
    names, own = attributes(value)
    return Expansion(
        "partial", joined(*names), (value.func, value.args, value.keywords, *own),
        ("func", "args", "keywords", *names),
    )  # fmt: skip


def expand_partial_method(value: functools.partialmethod[Any], walk: WalkContext) -> Expansion:
    """A partialmethod: function and arguments."""
    walk.note_call_names((), frozenset(value.keywords), False)
    names, own = attributes(value, frozenset({"func", "args", "keywords"}))
    return Expansion(
        "partialmethod", joined(*names), (value.func, value.args, value.keywords, *own),
        ("func", "args", "keywords", *names),
    )  # fmt: skip


def expand_cached_property(value: functools.cached_property[Any], walk: WalkContext) -> Expansion:
    """A cached_property: its function and the attribute it fills."""
    names, own = attributes(value, frozenset({"func", "attrname", "lock", "__doc__", "__module__"}))
    return Expansion(
        "cached_property", joined(*names), (value.func, value.attrname, *own), ("func", "attrname", *names)
    )


def expand_lru_cache(value: functools._lru_cache_wrapper[Any], walk: WalkContext) -> Expansion:
    """A function with lru_cache: the function and the cache's parameters, never what the cache holds."""
    wrapped = value.__wrapped__
    if not any(part is wrapped for part in gc.get_referents(value)):
        raise UnencodableError(
            "an lru_cache wrapper", walk.path(), "its __wrapped__ is not the function it calls: it was replaced"
        )
    if type(wrapped) is not types.FunctionType or origin_of_function(wrapped) is APPLICATION:
        walk.note_cache(value)  # caches of libraries hold what their functions give in any process
    names, own = attributes(value, COPIED | {"cache_parameters"})
    typed = value.cache_parameters()["typed"]
    payload = joined(repr(value.cache_info().maxsize), repr(bool(typed)), *names)
    return Expansion("lru_cache", payload, (wrapped, *own), ("__wrapped__", *names))


_DISPATCHER: Final = next(
    code
    for code in functools.singledispatch.__code__.co_consts
    if isinstance(code, types.CodeType) and code.co_name == "wrapper"
)


def dispatch_registry(function: types.FunctionType) -> dict[type, Callable[..., Any]] | None:
    """The implementations a singledispatch function chooses from, or None if function is not one.

    The cache of choices and the token that tells when it is stale are left out: they follow from the registry and
    change by use.
    """
    if function.__code__ is not _DISPATCHER:
        return None
    dispatch = _cell(function, "dispatch")
    registry = _cell(dispatch, "registry")
    assert isinstance(registry, dict)
    return registry


def _cell(function: Any, name: str) -> object:
    position: int = function.__code__.co_freevars.index(name)
    return function.__closure__[position].cell_contents


def expand_dispatch_method(value: functools.singledispatchmethod[Any], walk: WalkContext) -> Expansion:
    """A singledispatchmethod: its dispatcher; the cache of earlier dispatches does not count."""
    return Expansion("singledispatchmethod", b"", (value.func, value.dispatcher), ("func", "dispatcher"))


def expand_method(value: types.MethodType, walk: WalkContext) -> Expansion:
    """A bound method: its function and its object. Every access makes a new one, so it has no identity."""
    plain = type(value.__func__) is types.FunctionType and type(value.__self__) is not types.MethodType
    return Expansion(
        "method", b"", (value.__func__, value.__self__), ("__func__", "__self__"), by_value=plain, still=always
    )


def expand_method_wrapper(value: types.MethodWrapperType, walk: WalkContext) -> Expansion:
    """A bound special method of a built-in type, such as [].__len__."""
    return Expansion("method-wrapper", joined(value.__name__), (value.__objclass__, value.__self__), still=always)


def expand_descriptor(value: Any, walk: WalkContext) -> Expansion:
    """An attribute that a C type or a slot defines: its class and its name."""
    _touch_settings(value.__name__, walk)
    return Expansion(
        type(value).__name__, joined(value.__name__), (value.__objclass__,), ("__objclass__",), still=always
    )


def _touch_settings(method: str, walk: WalkContext) -> None:
    """Says that a method is reached that depends on settings of the process, if it does."""
    if method in SETTINGS_OF_METHODS:
        walk.touch(SETTINGS_OF_METHODS[method])


def expand_property(value: property, walk: WalkContext) -> Expansion:
    """A property: its three functions."""
    return Expansion("property", b"", (value.fget, value.fset, value.fdel), ("fget", "fset", "fdel"))


def expand_wrapped_method(value: Any, walk: WalkContext) -> Expansion:
    """A classmethod or staticmethod: its function and attributes that were not copied from it."""
    function = value.__func__
    names, own = attributes(value, COPIED | {"__isabstractmethod__"})
    copied: dict[str, object] = getattr(function, "__dict__", {})
    kept = [(name, part) for name, part in zip(names, own, strict=True) if copied.get(name, copied) is not part]
    return Expansion(
        type(value).__name__,
        joined(*(name for name, _ in kept)),
        (function, *(part for _, part in kept)),
        ("__func__", *(name for name, _ in kept)),
    )


def expand_getter(value: Any, walk: WalkContext) -> Expansion:
    """An attrgetter or itemgetter: what it gets, in order."""
    parts = tuple(value.__reduce__()[1])
    if type(value) is operator.attrgetter:
        for name in ".".join(parts).split("."):
            _notice_attribute(name, walk)
    return Expansion(type(value).__name__, b"", parts, still=always)


def _notice_attribute(name: str, walk: WalkContext) -> None:
    """Getting an attribute of this name may show more of an object than what it computes."""
    feature = ATTRIBUTE_FEATURES.get(name)
    if feature == REFUSE:
        raise UnencodableError("an attrgetter", walk.path(), f"{name} shows more than what code computes")
    if feature is not None:
        walk.observe(feature)


def expand_method_caller(value: operator.methodcaller, walk: WalkContext) -> Expansion:
    """A methodcaller: the method's name and the arguments."""
    reduced: tuple[Any, ...] = tuple(value.__reduce__())
    make, arguments = reduced[0], reduced[1]
    keywords: dict[str, object] = {}
    if isinstance(make, functools.partial):
        arguments, keywords = (*make.args, *arguments), make.keywords
    names = list(keywords)
    walk.note_call_names((), frozenset(names), False)
    if arguments[0] in RECEIVER_READS_FILE or arguments[0] in RECEIVER_IS_PATH:
        walk.refuse(Refusal("file", f"calls {arguments[0]}(), which reads or writes files", walk.path()))
    _touch_settings(arguments[0], walk)
    return Expansion(
        "methodcaller", joined(*names), (*arguments, *keywords.values()),
        [*(f"[{index}]" for index in range(len(arguments))), *names], still=always,
    )  # fmt: skip


def expand_sort_key(value: Any, walk: WalkContext) -> Expansion:
    """What functools.cmp_to_key returns: the comparison function, and the value compared if there is one."""
    return Expansion("cmp_to_key", b"", tuple(gc.get_referents(value)))


EXPANDERS: dict[type, Expander] = {
    functools.partial: expand_partial,
    functools.partialmethod: expand_partial_method,
    functools.cached_property: expand_cached_property,
    functools._lru_cache_wrapper: expand_lru_cache,
    functools.singledispatchmethod: expand_dispatch_method,
    types.MethodType: expand_method,
    types.MethodWrapperType: expand_method_wrapper,
    types.WrapperDescriptorType: expand_descriptor,
    types.MethodDescriptorType: expand_descriptor,
    types.ClassMethodDescriptorType: expand_descriptor,
    types.GetSetDescriptorType: expand_descriptor,
    types.MemberDescriptorType: expand_descriptor,
    property: expand_property,
    classmethod: expand_wrapped_method,
    staticmethod: expand_wrapped_method,
    operator.attrgetter: expand_getter,
    operator.itemgetter: expand_getter,
    operator.methodcaller: expand_method_caller,
    type(functools.cmp_to_key(lambda a, b: 0)): expand_sort_key,
}
