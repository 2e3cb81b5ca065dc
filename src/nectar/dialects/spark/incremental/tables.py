"""Tables between two plans: the result of one as a relation of the next, and as what the program expects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.connect.proto import relations_pb2
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructType

from nectar.dialects.spark.incremental.messages import Relation
from nectar.dialects.spark.incremental.server import NotPutTogether
from nectar.dialects.spark.results import told_schema, with_told_schema


def schema_of(table: pa.Table) -> StructType:
    """The schema of a table as Spark knows it."""
    found: StructType = proto_schema_to_pyspark_data_type(told_schema(table))
    return found


def written(schema: StructType) -> str:
    """A schema as a server reads it. Metadata without anything in it is left out, since Sail would keep it."""
    return json.dumps(_without_empty_metadata(schema.jsonValue()))


def _without_empty_metadata(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_empty_metadata(value) for name, value in part.items() if name != "metadata" or value}
    return [_without_empty_metadata(each) for each in part] if isinstance(part, list) else part


def as_relation(table: pa.Table) -> Any:
    """A relation that gives the rows of a table."""
    plain = table.replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    local = relations_pb2.LocalRelation(data=sink.getvalue().to_pybytes(), schema=written(schema_of(table)))
    return Relation(local_relation=local)


def without_rows(schema: StructType) -> Any:
    """A relation of a schema that has no rows."""
    return Relation(local_relation=relations_pb2.LocalRelation(schema=written(schema)))


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema. Raises NotPutTogether if they have several."""
    if any(not table.schema.equals(tables[0].schema, check_metadata=True) for table in tables):
        raise NotPutTogether("parts have different schemas")
    return pa.concat_tables(tables)


def with_nulls(table: pa.Table) -> pa.Table:
    """The same rows in columns that may all be null: which of them are depends on the rows of a part."""
    told = told_schema(table)
    for field in told.struct.fields:
        field.nullable = True
    return with_told_schema(table, told)


def as_expected(table: pa.Table, expected: StructType) -> pa.Table:
    """The same rows with the schema that the engine gives them over everything. Raises NotPutTogether if they differ."""
    told, found = told_schema(table), schema_of(table)
    if found.names != expected.names:
        raise NotPutTogether("parts give other columns than the whole")
    for at, (one, other) in enumerate(zip(found.fields, expected.fields, strict=True)):
        if one.dataType != other.dataType or (one.metadata or {}) != (other.metadata or {}):
            raise NotPutTogether(f"parts give {one.name} as {one.dataType.simpleString()}")
        if not other.nullable and table.column(at).null_count:
            raise NotPutTogether(f"parts give nulls in {one.name}")
        told.struct.fields[at].nullable = other.nullable
    return with_told_schema(table, told)
