"""Requests as they are sent to a server that remembers files; the program's own are never changed."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import base_pb2, commands_pb2, relations_pb2

from nectar.dialects.spark.fresh import OPTION, as_sent
from nectar.dialects.spark.sending import Sending
from nectar.errors import UserError


class Client:
    """As much of a client as sending takes."""

    def _set_relation_in_plan(self, plan, relation):
        plan.root.CopyFrom(relation)


def read(path="/data"):
    source = relations_pb2.Read.DataSource(format="parquet", paths=[path])
    return relations_pb2.Relation(read=relations_pb2.Read(data_source=source))


def execute(relation):
    return base_pb2.ExecutePlanRequest(session_id="s", operation_id="o", plan=base_pb2.Plan(root=relation))


def about(kind, relation):
    request = base_pb2.AnalyzePlanRequest(session_id="s")
    getattr(request, kind).relation.CopyFrom(relation)
    return request


def told(relation):
    return relation.read.data_source.options.get(OPTION)


THEN, NOW = {as_sent(read().read): b"\x01"}, {as_sent(read().read): b"\x02"}


@pytest.fixture
def sending():
    return Sending(Client())


def test_a_recorded_request_tells_the_state_of_its_files(sending):
    request = execute(read())
    sent = sending.recorded(request, NOW)
    assert told(sent.plan.root) == "02"
    assert told(request.plan.root) is None
    assert (sent.session_id, sent.operation_id) == ("s", "o")
    assert sending.recorded(request, {}) is request


def test_without_cached_frames_requests_are_sent_as_they_are(sending):
    request = execute(read())
    assert sending.plain(request) is request
    sending.expect_unchanged(NOW)


def test_a_cached_frame_is_asked_for_as_it_was_cached(sending):
    request = about("persist", read())
    sent = sending.analysed(request, lambda relation: THEN)
    assert told(sent.persist.relation) == "01"
    assert told(request.persist.relation) is None
    assert told(sending.plain(execute(read())).plan.root) == "01"
    assert told(sending.plain(execute(read("/other"))).plan.root) is None
    assert told(sending.analysed(about("get_storage_level", read()), None).get_storage_level.relation) == "01"
    command = commands_pb2.Command(write_operation=commands_pb2.WriteOperation(input=read(), path="/out"))
    written = sending.plain(base_pb2.ExecutePlanRequest(plan=base_pb2.Plan(command=command)))
    assert told(written.plan.command.write_operation.input) == "01"


def test_a_view_is_made_with_the_state_of_its_files(sending):
    def made(states):
        view = commands_pb2.CreateDataFrameViewCommand(input=read(), name="v")
        plan = base_pb2.Plan(command=commands_pb2.Command(create_dataframe_view=view))
        request = base_pb2.ExecutePlanRequest(session_id="s", operation_id="o", plan=plan)
        sent = sending.taught(request, states)
        assert told(request.plan.command.create_dataframe_view.input) is None
        assert (sent.session_id, sent.operation_id) == ("s", "o")
        return told(sent.plan.command.create_dataframe_view.input)

    assert made({}) is None
    assert made(NOW) == "02"
    sending.analysed(about("persist", read()), lambda relation: THEN)
    assert made({}) == "01"


def test_files_of_a_cached_frame_that_have_changed_are_noticed(sending):
    sending.analysed(about("persist", read()), lambda relation: THEN)
    sending.expect_unchanged(THEN)
    sending.expect_unchanged({as_sent(read("/other").read): b"\x09"})
    with pytest.raises(UserError, match="cached a frame"):
        sending.expect_unchanged(NOW)
    assert told(sending.analysed(about("persist", read()), lambda relation: NOW).persist.relation) == "01"


def test_a_frame_that_is_let_go_is_forgotten(sending):
    sending.analysed(about("persist", read()), lambda relation: THEN)
    assert told(sending.analysed(about("unpersist", read()), None).unpersist.relation) == "01"
    sending.expect_unchanged(NOW)
    request = execute(read())
    assert sending.plain(request) is request
    assert told(sending.analysed(about("unpersist", read()), None).unpersist.relation) is None


def test_other_questions_are_sent_as_they_are(sending):
    request = base_pb2.AnalyzePlanRequest()
    request.spark_version.SetInParent()
    assert sending.analysed(request, None) is request
    unseen = about("persist", read())
    assert told(sending.analysed(unseen, lambda relation: {}).persist.relation) is None
    sending.expect_unchanged(NOW)
