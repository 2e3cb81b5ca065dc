"""Messages written down as lists come back as they were."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql.connect.proto import commands_pb2, relations_pb2

from nectar.dialects.spark.flat import flattened, restored


def deep(levels):
    relation = relations_pb2.Relation()
    relation.range.end = 5
    relation.range.step = 1
    for number in range(levels):
        made = relations_pb2.Relation()
        made.common.plan_id = number
        made.limit.limit = number
        made.limit.input.CopyFrom(relation)
        relation = made
    return relation


@pytest.mark.parametrize("levels", [0, 1, 3, 400])
def test_a_relation_of_any_depth_comes_back(levels):
    relation = deep(levels)
    pieces = flattened(relation)
    assert len(pieces) == levels + 1
    assert restored(relations_pb2.Relation, pieces) == relation
    assert relation == deep(levels)  # and is as it was


def test_relations_side_by_side_keep_their_places():
    relation = relations_pb2.Relation()
    relation.join.left.CopyFrom(deep(2))
    relation.join.right.CopyFrom(deep(1))
    relation.join.join_condition.literal.boolean = True
    outer = relations_pb2.Relation()
    outer.with_relations.root.CopyFrom(relation)
    outer.with_relations.references.add().CopyFrom(deep(1))
    outer.with_relations.references.add().CopyFrom(deep(3))
    assert restored(relations_pb2.Relation, flattened(outer)) == outer


def test_a_relation_that_says_nothing_is_still_there():
    relation = relations_pb2.Relation()
    relation.limit.input.SetInParent()
    back = restored(relations_pb2.Relation, flattened(relation))
    assert back.limit.HasField("input")


def test_a_command_comes_back():
    command = commands_pb2.Command()
    command.create_dataframe_view.name = "v"
    command.create_dataframe_view.input.CopyFrom(deep(120))
    assert restored(commands_pb2.Command, flattened(command)) == command


def test_where_it_was_written_is_left_out():
    relation = relations_pb2.Relation()
    relation.common.plan_id = 7
    relation.common.origin.python_origin.call_site = "secret.py:3"
    expression = relation.project.expressions.add()
    expression.common.origin.python_origin.fragment = "secret"
    expression.literal.integer = 1
    pieces = flattened(relation)
    assert b"secret" not in b"".join(pieces)
    back = restored(relations_pb2.Relation, pieces)
    assert (back.common.plan_id, back.project.expressions[0].literal.integer) == (7, 1)
