"""Plans that the client has compressed, as it does with large ones where the server allows it."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.proto import base_pb2, commands_pb2, relations_pb2

from nectar.errors import UserError


def opened(client: Any, plan: Any) -> Any:
    """The plan with its relation or command readable: itself, if it is not compressed. Raises UserError otherwise."""
    if plan.WhichOneof("op_type") != "compressed_operation":
        return plan
    packed = plan.compressed_operation
    if packed.compression_codec != base_pb2.COMPRESSION_CODEC_ZSTD or client._zstd_module is None:
        raise UserError("its plan is compressed in a way that is not known")
    data = client._zstd_module.decompress(packed.data)
    try:
        if packed.op_type == base_pb2.Plan.CompressedOperation.OP_TYPE_RELATION:
            return base_pb2.Plan(root=relations_pb2.Relation.FromString(data))
        return base_pb2.Plan(command=commands_pb2.Command.FromString(data))
    except Exception as error:  # the parser of the client takes a hundred nested messages at most
        raise UserError("its plan is compressed, and nested too deeply to be read") from error


def with_relation(client: Any, request: Any, relation: Any) -> Any:
    """The request with another relation, compressed if the client would compress it."""
    made = type(request)()
    made.CopyFrom(request)
    made.plan.Clear()
    client._set_relation_in_plan(made.plan, relation)
    return made
