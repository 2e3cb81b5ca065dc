"""Columns that are never null: a literal of their type says so, and where there is none, they stay as they are."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql import types as T
from pyspark.sql.connect.proto import expressions_pb2
from pyspark.sql.connect.types import pyspark_types_to_proto_types

from nectar.dialects.spark.values import never_null

pytestmark = pytest.mark.small
COLUMN = expressions_pb2.Expression(
    unresolved_attribute=expressions_pb2.Expression.UnresolvedAttribute(unparsed_identifier="c0")
)
KINDS = {
    "boolean": T.BooleanType(), "byte": T.ByteType(), "short": T.ShortType(), "integer": T.IntegerType(),
    "long": T.LongType(), "float": T.FloatType(), "double": T.DoubleType(), "decimal": T.DecimalType(12, 2),
    "string": T.StringType(), "binary": T.BinaryType(), "date": T.DateType(), "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_column_has_a_literal_of_its_type(name):
    call = never_null(COLUMN, pyspark_types_to_proto_types(KINDS[name])).unresolved_function
    assert call.function_name == "coalesce"
    assert call.arguments[0] == COLUMN
    literal = call.arguments[1].literal
    assert literal.WhichOneof("literal_type") == name
    if name == "decimal":
        assert (literal.decimal.precision, literal.decimal.scale) == (12, 2)


@pytest.mark.parametrize("kind", [T.ArrayType(T.LongType()), T.StringType("UTF8_LCASE"), T.StructType([])])
def test_others_stay_as_they_are(kind):
    assert never_null(COLUMN, pyspark_types_to_proto_types(kind)) == COLUMN
