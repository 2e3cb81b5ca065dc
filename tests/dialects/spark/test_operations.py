"""Names of operations: what the program says of its own is meant for the one that runs."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.operations import Operations

pytestmark = pytest.mark.small


def test_a_plan_of_our_own_has_a_name_of_its_own():
    operations = Operations()
    given = base_pb2.ExecutePlanRequest(session_id="s", operation_id="given")
    sent = operations.anew(given)
    assert (given.operation_id, sent.session_id) == ("given", "s")
    assert sent.operation_id not in ("", "given")
    for kind in (base_pb2.ReattachExecuteRequest, base_pb2.ReleaseExecuteRequest, base_pb2.InterruptRequest):
        about = kind(session_id="s", operation_id="given")
        assert operations.as_known(about).operation_id == sent.operation_id
        assert about.operation_id == "given"
    assert operations.anew(given).operation_id != sent.operation_id


def test_other_names_are_left_alone():
    operations = Operations()
    operations.anew(base_pb2.ExecutePlanRequest(operation_id="given"))
    other = base_pb2.ReleaseExecuteRequest(operation_id="other")
    assert operations.as_known(other) is other
    everything = base_pb2.InterruptRequest(interrupt_type=base_pb2.InterruptRequest.INTERRUPT_TYPE_ALL)
    assert operations.as_known(everything) is everything
    operations.forget("given")
    given = base_pb2.ReleaseExecuteRequest(operation_id="given")
    assert operations.as_known(given) is given
    operations.forget("given")
