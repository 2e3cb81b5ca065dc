"""Expanders of types used as values: generic aliases, unions, type variables, dataclass fields."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from typing import Any

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined


def _plain(args: tuple[object, ...]) -> bool:
    """Whether all are classes or atoms; then an alias of them stands for itself, by value."""
    return all(isinstance(arg, (type, str, int, types.EllipsisType)) for arg in args)


def expand_generic_alias(value: types.GenericAlias, walk: WalkContext) -> Expansion:
    """list[int] and its like: origin and arguments."""
    starred = bool(getattr(value, "__unpacked__", False))
    args = value.__args__
    return Expansion(
        type(value).__name__, joined(repr(starred)), (value.__origin__, *args), ("origin",),
        by_value=_plain(args), still=always,
    )  # fmt: skip


def expand_union(value: types.UnionType, walk: WalkContext) -> Expansion:
    """int | str: its members, in order."""
    return Expansion("union", b"", value.__args__, by_value=_plain(value.__args__), still=always)


def expand_typing_alias(value: Any, walk: WalkContext) -> Expansion:
    """typing.List[int], Optional[...], Literal[...], Annotated[...]: origin, arguments, metadata."""
    metadata = tuple(getattr(value, "__metadata__", ()))
    args = tuple(value.__args__)
    payload = joined(type(value).__name__, repr(value._name), repr(len(args)))
    return Expansion("typing alias", payload, (value.__origin__, *args, *metadata), ("origin",), still=always)


def expand_typing_name(value: Any, walk: WalkContext) -> Expansion:
    """typing.Any, typing.List without arguments and their like: the standard library's object of that name."""
    name = value._name
    if getattr(typing, name, None) is not value:
        raise UnencodableError("a special form", walk.path(), f"it is not the standard library's typing.{name}")
    return Expansion("typing name", joined(name), by_value=True, still=always)


def expand_type_variable(value: Any, walk: WalkContext) -> Expansion:
    """TypeVar, ParamSpec, TypeVarTuple: name, bound, constraints, variance, default."""
    flags = [repr(getattr(value, name, None)) for name in ("__covariant__", "__contravariant__", "__infer_variance__")]
    children = (
        getattr(value, "__bound__", None),
        tuple(getattr(value, "__constraints__", ())),
        getattr(value, "__default__", None),
    )
    payload = joined(type(value).__name__, value.__name__, *flags)
    return Expansion("type variable", payload, children, ("bound", "constraints", "default"), still=always)


def expand_parameter_of_specification(value: Any, walk: WalkContext) -> Expansion:
    """P.args and P.kwargs: which of them, and P."""
    return Expansion(type(value).__name__, b"", (value.__origin__,), ("origin",), still=always)


def expand_forward_reference(value: Any, walk: WalkContext) -> Expansion:
    """A type named by a string."""
    is_class = getattr(value, "__forward_is_class__", False)
    children = (value.__forward_arg__, getattr(value, "__forward_module__", None))
    return Expansion("forward reference", joined(repr(is_class)), children, still=always)


def expand_new_type(value: typing.NewType, walk: WalkContext) -> Expansion:
    """typing.NewType: its name and what it stands for."""
    return Expansion("new type", joined(value.__name__), (value.__supertype__,), ("supertype",))


def expand_type_alias(value: Any, walk: WalkContext) -> Expansion:
    """type X = ...: its name, parameters and what it stands for."""
    return Expansion("type alias", joined(value.__name__), (value.__type_params__, value.__value__))


_FIELD = ("name", "default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")


def expand_field(value: dataclasses.Field[Any], walk: WalkContext) -> Expansion:
    """A dataclass field: all that dataclasses.fields() shows of it; its type only where code looks at annotations."""
    kind = str(getattr(getattr(value, "_field_type", None), "name", None))
    names = (*_FIELD, "type") if "annotations" in walk.observed else _FIELD
    return Expansion("dataclass field", joined(kind), [getattr(value, name) for name in names], names)


def _sentinel(name: str) -> Expander:
    return lambda value, walk: Expansion(name, by_value=True, still=always)


def _typing(*names: str) -> list[type]:
    found = (getattr(typing, name, None) for name in names)
    return [kind for kind in found if isinstance(kind, type)]


def _dataclass_sentinels() -> dict[type, Expander]:
    names = ("MISSING", "KW_ONLY", "_HAS_DEFAULT_FACTORY")
    return {type(getattr(dataclasses, name)): _sentinel(f"dataclasses.{name}") for name in names}


EXPANDERS: dict[type, Expander] = {
    types.GenericAlias: expand_generic_alias,
    getattr(collections.abc, "_CallableGenericAlias"): expand_generic_alias,  # noqa: B009 - unknown to type stubs
    **dict.fromkeys(
        _typing(
            "_GenericAlias", "_UnionGenericAlias", "_LiteralGenericAlias", "_CallableGenericAlias", "_AnnotatedAlias",
            "_ConcatenateGenericAlias", "_UnpackGenericAlias",
        ),
        expand_typing_alias,
    ),
    **dict.fromkeys(
        _typing("_SpecialForm", "_LiteralSpecialForm", "_SpecialGenericAlias", "_TupleType", "_CallableType",
                "_DeprecatedType", "_TypedCacheSpecialForm"),
        expand_typing_name,
    ),
    types.UnionType: expand_union,
    **dict.fromkeys(_typing("TypeVar", "ParamSpec", "TypeVarTuple"), expand_type_variable),
    **dict.fromkeys(_typing("ParamSpecArgs", "ParamSpecKwargs"), expand_parameter_of_specification),
    **dict.fromkeys(_typing("ForwardRef"), expand_forward_reference),
    typing.NewType: expand_new_type,
    **dict.fromkeys(_typing("TypeAliasType"), expand_type_alias),
    dataclasses.Field: expand_field,
    **_dataclass_sentinels(),
}  # fmt: skip
EXPANDERS.pop(type, None)
