"""Relations and expressions of Spark Connect, written down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql.connect.proto import expressions_pb2, relations_pb2, types_pb2

from nectar.dialects.spark.messages import children_of

Expression: Final = expressions_pb2.Expression
Relation: Final = relations_pb2.Relation

LONG: Final = types_pb2.DataType(long=types_pb2.DataType.Long())
DOUBLE: Final = types_pb2.DataType(double=types_pb2.DataType.Double())
ONE: Final = Expression(literal=Expression.Literal(double=1.0))


def column(name: str) -> Any:
    """A column by its name."""
    return Expression(unresolved_attribute=Expression.UnresolvedAttribute(unparsed_identifier=f"`{name}`"))


def number(value: int) -> Any:
    """A literal."""
    return Expression(literal=Expression.Literal(long=value))


def call(name: str, *arguments: Any) -> Any:
    """A call of a function of the engine."""
    return Expression(unresolved_function=Expression.UnresolvedFunction(function_name=name, arguments=arguments))


def cast(value: Any, kind: Any) -> Any:
    """A value as another type."""
    return Expression(cast=Expression.Cast(expr=value, type=kind))


def named(value: Any, name: str) -> Any:
    """A value with a name."""
    return Expression(alias=Expression.Alias(expr=value, name=[name]))


def over(value: Any, keys: Iterable[Any]) -> Any:
    """An aggregate of all rows that have the same keys, for each of them."""
    return Expression(window=Expression.Window(window_function=value, partition_spec=keys))


def project(below: Any, values: Iterable[Any]) -> Any:
    """Values of each row."""
    return Relation(project=relations_pb2.Project(input=below, expressions=values))


def with_columns(below: Any, values: Iterable[Any]) -> Any:
    """More values of each row; they have names."""
    aliases = [value.alias for value in values]
    return Relation(with_columns=relations_pb2.WithColumns(input=below, aliases=aliases))


def renamed(below: Any, names: Iterable[str]) -> Any:
    """All columns under other names."""
    return Relation(to_df=relations_pb2.ToDF(input=below, column_names=names))


def aggregate(below: Any, keys: Iterable[Any], values: Iterable[Any]) -> Any:
    """Values of each group of rows."""
    grouped = relations_pb2.Aggregate(
        input=below, group_type=relations_pb2.Aggregate.GROUP_TYPE_GROUPBY, grouping_expressions=keys,
        aggregate_expressions=values,
    )  # fmt: skip
    return Relation(aggregate=grouped)


def limited(below: Any, rows: int) -> Any:
    """So many rows at most."""
    return Relation(limit=relations_pb2.Limit(input=below, limit=rows))


def arrow_file(path: str) -> Any:
    """The rows of an Arrow file, which Sail reads with the very types it has."""
    source = relations_pb2.Read.DataSource(format="arrow", paths=[path])
    return Relation(read=relations_pb2.Read(data_source=source))


def bare(message: Any) -> bytes:
    """What an expression says, as bytes; where in the program it stands is left out."""
    plain = type(message)()
    plain.CopyFrom(message)
    pending = [plain]
    while pending:
        each = pending.pop()
        if each.DESCRIPTOR.full_name == "spark.connect.Expression":
            each.ClearField("common")
        pending.extend(children_of(each))
    return bytes(plain.SerializeToString(deterministic=True))
