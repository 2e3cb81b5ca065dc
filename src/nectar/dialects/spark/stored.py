"""A result that is kept, as a relation of a plan: the message that stands for it.

In: a result of the store. Out: a relation: a read of its Parquet files, or, where there are few, its rows themselves.
Law: the relation has the columns of the result, with their names, types, nullability and metadata; where that cannot
be, there is none, and a reason. Files were there, whole, when the relation was made; whoever runs it holds a lease on
them. Rows of a relation have no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.connect.proto import commands_pb2, expressions_pb2, relations_pb2, types_pb2
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructType

from nectar.dialects.spark.manners import SAIL, Manner
from nectar.dialects.spark.results import empty, is_whole, schema_of, without_schema
from nectar.dialects.spark.values import never_null
from nectar.quantities import show_size

if TYPE_CHECKING:
    from nectar.store.read import Result

SCHEMA: Final = "spark.schema"  # the part of a result in Parquet files that holds what the engine said of its columns
AS_TOLD: Final = "spark.as-told"  # the part that says whether these files have to be read with that schema
MOST_SENT: Final = 4 << 20  # bytes of rows that a plan holds: sending them takes a hundredth of a second for each
_FEW: Final = 1 << 18  # bytes that are sent sooner than read from a file
_WITHOUT_STATISTICS: Final = {"statistics_enabled": "none"}
_SENT: Final = frozenset({
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "binary", "date",
    "timestamp", "timestamp_ntz", "array", "map", "struct",
})  # fmt: skip


def relation_of(result: Result, plan_id: int | None = None, manner: Manner = SAIL) -> Any | str:
    """The relation that a result stands for, with the plan id of what it replaces; or why there is none."""
    if result.kind == "object":
        return "it is no table"
    if result.kind == "parquet":
        if not result.table_paths:
            return "others could change its files while they are read"
        told = types_pb2.DataType.FromString(bytes(result.part(SCHEMA)))
        return read_relation(result.table_paths, told, plan_id, as_told=bool(result.part(AS_TOLD)), manner=manner)
    table = result.to_arrow()
    if manner.reads_arrow and table.nbytes > _FEW and result.table_paths:
        relation = _arrow_relation(table, result.table_paths, plan_id)
        if not isinstance(relation, str):
            return relation
    return local_relation(table, plan_id, manner)


def local_relation(table: pa.Table, plan_id: int | None = None, manner: Manner = SAIL) -> Any | str:
    """A relation that holds the rows of a recorded result (`results.Recording.table`); or why there is none."""
    why_not = why_not_sent(table)
    if why_not:
        return why_not
    if table.nbytes > MOST_SENT:
        return f"its {show_size(table.nbytes)} are too many to be sent with a plan"
    local = relations_pb2.LocalRelation(data=_stream(without_schema(table)))
    if manner.takes_schemas:
        local.schema = str(proto_schema_to_pyspark_data_type(schema_of(table)).json())
    return _with_plan_id(relations_pb2.Relation(local_relation=local), plan_id)


def _arrow_relation(table: pa.Table, paths: Sequence[str], plan_id: int | None) -> Any | str:
    """A relation that reads the files of a recorded result where they lie; or why there is none."""
    why_not = why_not_sent(table)
    if why_not:
        return why_not
    if len({name.casefold() for name in table.column_names}) < table.num_columns:
        return "it has two columns of one name"
    source = relations_pb2.Read.DataSource(format="arrow", paths=paths)
    return _with_plan_id(relations_pb2.Relation(read=relations_pb2.Read(data_source=source)), plan_id)


def why_not_sent(table: pa.Table) -> str:
    """Why a table that passed the client is not handed back to the engine; empty if it can be."""
    if not is_whole(table):
        return "it is no result of Spark"
    unknown = sorted(_kinds_in(schema_of(table)) - _SENT)
    return f"it has a column of the type {unknown[0]}, which may not come back as it was" if unknown else ""


def files_relation(paths: Sequence[str]) -> Any:
    """A relation that reads Parquet files as they are."""
    source = relations_pb2.Read.DataSource(format="parquet", paths=paths)
    return relations_pb2.Relation(read=relations_pb2.Read(data_source=source))


def read_relation(
    paths: Sequence[str], told: Any, plan_id: int | None = None, *, as_told: bool = True, manner: Manner = SAIL
) -> Any:
    """A relation that reads Parquet files whose columns were written by `writable`; told: the schema it has to have.

    as_told: files are read with that schema. What an engine wrote may be narrower than what it said: of what it has
    seen it knows that there is no null. But what it is told of times is taken for times of the session's zone.
    """
    read = files_relation(paths)
    if as_told:
        read.read.data_source.schema = _schema_of_files(told)
    columns = [_column(number, field, manner) for number, field in enumerate(told.struct.fields)]
    made = relations_pb2.Relation(project=relations_pb2.Project(input=read, expressions=columns))
    return _with_plan_id(made, plan_id)


def writable(relation: Any, told: Any) -> Any:
    """The same relation, its columns named by position: files take no two columns of one name, nor every name."""
    names = [_name(number) for number in range(len(told.struct.fields))]
    return relations_pb2.Relation(to_df=relations_pb2.ToDF(input=relation, column_names=names))


def write_command(relation: Any, told: Any, path: str, manner: Manner = SAIL) -> Any:
    """The command that has a relation written to Parquet files that `read_relation` reads."""
    write = commands_pb2.WriteOperation(
        input=writable(relation, told), source="parquet", path=path,
        mode=commands_pb2.WriteOperation.SAVE_MODE_ERROR_IF_EXISTS,
        options=_WITHOUT_STATISTICS if manner.misreads_statistics else {},
    )  # fmt: skip
    return commands_pb2.Command(write_operation=write)


def _schema_of_files(told: Any) -> str:
    """The schema that files are read with: that of the relation, columns named by position."""
    schema = proto_schema_to_pyspark_data_type(told)
    for number, field in enumerate(schema.fields):
        field.name = _name(number)
    return str(StructType(schema.fields).json())


def _name(number: int) -> str:
    return f"c{number}"


def _column(number: int, field: Any, manner: Manner) -> Any:
    """A column of a file, under the name and with the metadata that it had, and without nulls if it had none."""
    attribute = expressions_pb2.Expression.UnresolvedAttribute(unparsed_identifier=_name(number))
    column = expressions_pb2.Expression(unresolved_attribute=attribute)
    if manner.forgets_nulls and not field.nullable:
        column = never_null(column, field.data_type)
    alias = expressions_pb2.Expression.Alias(expr=column, name=[field.name])
    if field.metadata.strip() not in ("", "{}"):
        alias.metadata = field.metadata
    return expressions_pb2.Expression(alias=alias)


def _with_plan_id(relation: Any, plan_id: int | None) -> Any:
    if plan_id is not None:
        relation.common.plan_id = plan_id
    return relation


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches() or [empty(table.schema)]:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _kinds_in(told: Any) -> set[str]:
    """The kinds of a type and of everything within it."""
    kind = str(told.WhichOneof("kind"))
    if kind == "string" and told.string.collation not in ("", "UTF8_BINARY"):
        return {"string with an order of its own"}
    inner: Any = getattr(told, kind, None)
    if kind == "struct":
        below = [field.data_type for field in inner.fields]
    elif kind == "array":
        below = [inner.element_type]
    elif kind == "map":
        below = [inner.key_type, inner.value_type]
    else:
        below = []
    return {kind}.union(*map(_kinds_in, below))
