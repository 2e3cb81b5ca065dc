"""The lists of kinds and functions are complete: a new version of the client fails here, and not in a program."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

import pyspark.sql.connect
from pyspark.sql.connect.functions import builtin
from pyspark.sql.connect.proto import commands_pb2, expressions_pb2, relations_pb2

from nectar.dialects.spark import kinds
from nectar.dialects.spark.function_names import KNOWN, REFUSED

pytestmark = pytest.mark.small
SOURCE = Path(pyspark.sql.connect.__path__[0])
# Functions of the client that call no function of the server of the same name.
OTHERWISE_NAMED = {
    "approxcountdistinct", "arrow_udtf", "asc", "asc_nulls_first", "asc_nulls_last", "bitwisenot", "bitwise_not",
    "broadcast", "bucket", "call_function", "call_udf", "col", "column", "countdistinct", "count_distinct",
    "create_map", "days", "desc", "desc_nulls_first", "desc_nulls_last", "expr", "hours", "listagg_distinct",
    "lit", "months", "shiftleft", "shiftright", "shiftrightunsigned", "string_agg_distinct", "sumdistinct",
    "sum_distinct", "timestamp_add", "timestamp_diff", "todegrees", "toradians", "udf", "udtf", "years",
}  # fmt: skip
SINCE_4_3 = {"zip"}


def members(message, group):
    return {field.name for field in message.DESCRIPTOR.oneofs_by_name[group].fields}


def test_every_relation_is_known_or_refused():
    listed = kinds.RELATIONS.keys() | kinds.REFUSED_RELATIONS.keys()
    assert listed - SINCE_4_3 <= members(relations_pb2.Relation, "rel_type") <= listed
    assert not kinds.RELATIONS.keys() & kinds.REFUSED_RELATIONS.keys()


def test_every_expression_is_known_or_refused():
    assert members(expressions_pb2.Expression, "expr_type") == kinds.EXPRESSIONS | kinds.REFUSED_EXPRESSIONS.keys()
    assert not kinds.EXPRESSIONS & kinds.REFUSED_EXPRESSIONS.keys()


def test_every_command_is_listed():
    assert members(commands_pb2.Command, "command_type") == kinds.COMMANDS


def test_what_is_not_listed_is_refused():
    assert "not known" in kinds.why_refused("telepathy")
    assert "not known" in kinds.why_refused(None)
    assert "not known" in kinds.why_refused_expression("telepathy")


def test_every_function_of_the_client_is_known_or_refused():
    public = {name.lower() for name in re.findall(r"^def ([a-z]\w*)\(", Path(builtin.__file__).read_text(), re.M)}
    assert public - OTHERWISE_NAMED - KNOWN - REFUSED.keys() == set()
    assert not KNOWN & REFUSED.keys()


@pytest.mark.parametrize("file", ["column.py", "functions/builtin.py", "expressions.py", "group.py"])
def test_every_name_that_the_client_sends_is_known_or_refused(file):
    sent = re.findall(
        r'(?:_bin_op|_unary_op|UnresolvedFunction|_invoke_\w+)\(\s*(?:name=)?"([^"]+)"', (SOURCE / file).read_text()
    )
    assert {name.lower() for name in sent} - KNOWN - REFUSED.keys() == set()


def test_what_differs_between_runs_is_refused():
    assert REFUSED.keys() >= {
        "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "now", "current_timestamp",
        "localtimestamp", "aes_encrypt", "reflect", "java_method", "try_reflect", "current_date", "curdate",
        "current_time", "localtime", "current_user", "user", "session_user", "current_catalog", "current_database",
        "current_schema", "current_path", "current_timezone", "version", "monotonically_increasing_id",
        "spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length",
        "distributed_sequence_id",
    }  # fmt: skip
