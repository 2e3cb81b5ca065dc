"""Tables between two plans: the result of one as a relation of the next, and as what the program expects."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructType

from nectar.dialects.spark.incremental.messages import arrow_file, renamed
from nectar.dialects.spark.incremental.server import NotPutTogether, Server
from nectar.dialects.spark.incremental.streams import Folders
from nectar.dialects.spark.manners import SPARK
from nectar.dialects.spark.results import schema_of, with_told_schema, without_schema
from nectar.dialects.spark.stored import MOST_SENT, local_relation, read_relation, why_not_sent

_ZONE: Final = re.compile(r"tz=[^\],]*")


def type_of(table: pa.Table) -> StructType:
    """The schema of a table as Spark knows it."""
    found: StructType = proto_schema_to_pyspark_data_type(schema_of(table))
    return found


def written(schema: StructType) -> str:
    """A schema as a server reads it. Metadata without anything in it is left out, since Sail would keep it."""
    return json.dumps(_without_empty_metadata(schema.jsonValue()))


def _without_empty_metadata(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_empty_metadata(value) for name, value in part.items() if name != "metadata" or value}
    return [_without_empty_metadata(each) for each in part] if isinstance(part, list) else part


def has_zones(table: pa.Table) -> bool:
    """Whether a table has times of a zone: which one is no part of a schema of Spark, and Sail shows times in it."""
    return any(_zones(table))


def _zones(table: pa.Table) -> list[list[str]]:
    """For each column the zones of the times in it."""
    return [_ZONE.findall(str(kind)) for kind in table.schema.types]


def as_relation(table: pa.Table, server: Server, folders: Folders) -> Any:
    """A relation that gives the rows of a table: the rows themselves, or, if they are many, a file of them.

    Raises NotPutTogether if they would not come back as they are.
    """
    if not server.manner.reads_arrow:
        return _by_parquet(table, folders) if table.nbytes > MOST_SENT else _sent(table, server)
    return _by_arrow(table, server, folders) if table.nbytes > MOST_SENT or has_zones(table) else _sent(table, server)


def _sent(table: pa.Table, server: Server) -> Any:
    relation = local_relation(table, manner=server.manner)
    if isinstance(relation, str):
        raise NotPutTogether(relation)
    return relation


def _by_arrow(table: pa.Table, server: Server, folders: Folders) -> Any:
    path = folders.new() / "rows.arrow"
    numbered = _numbered(table)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, numbered.schema) as writer:
        writer.write_table(numbered)
    relation = renamed(arrow_file(str(path)), table.column_names)
    if has_zones(table) and _zones(server.empty(relation)) != _zones(table):
        raise NotPutTogether("times would come back in another zone")
    return relation


def _by_parquet(table: pa.Table, folders: Folders) -> Any:
    why_not = why_not_sent(table)
    if why_not:
        raise NotPutTogether(why_not)
    path = str(folders.new() / "rows.parquet")
    pyarrow.parquet.write_table(_numbered(table), path)
    return read_relation([path], schema_of(table), manner=SPARK)


def _numbered(table: pa.Table) -> pa.Table:
    return without_schema(table).rename_columns([f"c{at}" for at in range(table.num_columns)])


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema. Raises NotPutTogether if they have several."""
    if any(not table.schema.equals(tables[0].schema, check_metadata=True) for table in tables):
        raise NotPutTogether("parts have different schemas")
    return pa.concat_tables(tables)


def as_state(table: pa.Table) -> pa.Table:
    """The same rows in columns that may all be null, and have no metadata: neither is the same for all parts."""
    told = schema_of(table)
    for field in told.struct.fields:
        field.nullable = True
        field.ClearField("metadata")
    fields = [field.with_nullable(True).remove_metadata() for field in table.schema]
    return with_told_schema(pa.Table.from_arrays(table.columns, schema=pa.schema(fields)), told)


def chosen(table: pa.Table, columns: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Some columns of a table under other names; a column may be chosen twice."""
    places = [table.column_names.index(name) for name in columns]
    told = schema_of(table)
    fields = [told.struct.fields[at] for at in places]
    picked = type(told)()
    for field, name in zip(fields, names, strict=True):
        picked.struct.fields.add().CopyFrom(field)
        picked.struct.fields[-1].name = name
    made = pa.Table.from_arrays([table.column(at) for at in places], names=list(names))
    return with_told_schema(made, picked)


def as_expected(table: pa.Table, expected: pa.Table) -> pa.Table:
    """The same rows with the schema that the engine gives them over everything, which is that of another table.

    Raises NotPutTogether if they have other columns or types.
    """
    found, wanted = type_of(table), type_of(expected)
    if found.names != wanted.names or table.schema.types != expected.schema.types:
        raise NotPutTogether("parts give other columns than the whole")
    for at, (one, other) in enumerate(zip(found.fields, wanted.fields, strict=True)):
        if one.dataType != other.dataType or (one.metadata or {}) != (other.metadata or {}):
            raise NotPutTogether(f"parts give {one.name} as {one.dataType.simpleString()}")
        if not other.nullable and table.column(at).null_count:
            raise NotPutTogether(f"parts give nulls in {one.name}")
    return pa.Table.from_arrays(table.columns, schema=expected.schema)
