"""Plans that the client has compressed."""

import types

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")
pytest.importorskip("zstandard", reason="without it the client compresses nothing")

import zstandard
from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.proto import base_pb2, commands_pb2, relations_pb2

from nectar.dialects.spark.compressed import opened, with_relation
from nectar.errors import UserError


class Client:
    """As much of a client as compressing takes."""

    _zstd_module = zstandard
    _plan_compression_threshold = 10
    _plan_compression_algorithm = "ZSTD"
    _set_relation_in_plan = SparkConnectClient._set_relation_in_plan
    _set_command_in_plan = SparkConnectClient._set_command_in_plan
    _try_compress_and_set_plan = SparkConnectClient._try_compress_and_set_plan
    _get_plan_compression_threshold_and_algorithm = SparkConnectClient._get_plan_compression_threshold_and_algorithm


RELATION = relations_pb2.Relation(local_relation=relations_pb2.LocalRelation(data=b"x" * 1000))


def test_relations_and_commands_are_opened():
    plan = base_pb2.Plan()
    Client()._set_relation_in_plan(plan, RELATION)
    assert plan.WhichOneof("op_type") == "compressed_operation"
    assert opened(Client(), plan) == base_pb2.Plan(root=RELATION)
    command = commands_pb2.Command(sql_command=commands_pb2.SqlCommand(sql="select " + "1" * 1000))
    Client()._set_command_in_plan(plan, command)
    assert opened(Client(), plan) == base_pb2.Plan(command=command)


def test_a_plan_that_is_not_compressed_is_itself():
    plan = base_pb2.Plan(root=RELATION)
    assert opened(Client(), plan) is plan


def test_what_cannot_be_opened_is_refused():
    plan = base_pb2.Plan()
    Client()._set_relation_in_plan(plan, RELATION)
    with pytest.raises(UserError, match="not known"):
        opened(types.SimpleNamespace(_zstd_module=None), plan)
    deep = relations_pb2.Relation(range=relations_pb2.Range(end=1))
    for _ in range(200):
        around = relations_pb2.Relation()
        around.limit.input.CopyFrom(deep)
        deep = around
    Client()._set_relation_in_plan(plan, deep)
    with pytest.raises(UserError, match="nested too deeply"):
        opened(Client(), plan)


def test_another_relation_is_compressed_in_its_turn():
    request = base_pb2.ExecutePlanRequest(session_id="s", operation_id="o")
    Client()._set_relation_in_plan(request.plan, relations_pb2.Relation(range=relations_pb2.Range(end=1)))
    made = with_relation(Client(), request, RELATION)
    assert made.plan.WhichOneof("op_type") == "compressed_operation"
    assert opened(Client(), made.plan).root == RELATION
    assert (made.session_id, made.operation_id) == ("s", "o")
    assert request.plan.WhichOneof("op_type") == "root"
