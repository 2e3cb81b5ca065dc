"""Questions to a server, beside the calls of the program."""

import types

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.connections import Connection, connection_of
from nectar.errors import EnvironmentFailure


def test_questions_change_nothing_in_the_client(spark):
    connection = connection_of(spark.client)
    assert connection.version() == spark.version
    assert isinstance(connection.settings(), dict)
    assert connection.session
    fresh = type(spark)(f"sc://{connection.endpoint}")
    connection_of(fresh.client).settings()
    assert fresh.client._server_session_id is None
    assert fresh.range(3).count() == 3
    fresh.client.close()


def test_a_session_whose_first_answer_was_known_goes_on(spark, outcome, new_session):
    outcome(spark.range(3).count)
    other = new_session()
    assert outcome(other.range(3).count)[:2] == (3, "reused")
    assert outcome(other.range(4).count)[:2] == (4, "computed")
    assert other.conf.get("spark.sql.session.timeZone") is not None


class Failed(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "nobody is there\nand more"


class Client:
    """As much of a client as questions take."""

    _server_session_id = None
    _builder = types.SimpleNamespace(endpoint="127.0.0.1:1", metadata=lambda: ())

    def _config_request_with_metadata(self):
        return base_pb2.ConfigRequest()

    def _analyze_plan_request_with_metadata(self):
        return base_pb2.AnalyzePlanRequest()


class Server:
    """A server that says which session it has, or is gone."""

    session, calls = "one", 0

    def Config(self, request, **_):
        self.calls += 1
        if self.session is None:
            raise Failed
        return base_pb2.ConfigResponse(server_side_session_id=self.session)

    def AnalyzePlan(self, request, **_):
        response = base_pb2.AnalyzePlanResponse(server_side_session_id=self.session)
        response.spark_version.version = f"version of {self.session}"
        return response


def test_a_question_is_asked_once_and_fails():
    client, server = Client(), Server()
    server.session = None
    with pytest.raises(EnvironmentFailure, match="cannot be asked: UNAVAILABLE nobody is there$"):
        Connection(client, server).settings()
    assert server.calls == 1


def test_what_was_found_out_is_forgotten_with_the_session():
    client, server = Client(), Server()
    connection = Connection(client, server)
    assert connection.version() == "version of one"
    server.session = "two"
    assert connection.version() == "version of one"
    with pytest.raises(EnvironmentFailure, match="was restarted"):
        connection.settings()
    assert connection.version() == "version of two"


def test_a_session_that_the_client_does_not_know_is_a_failure():
    client, server = Client(), Server()
    client._server_session_id = "one"
    connection = Connection(client, server)
    connection.settings()
    server.session = "two"
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match="was restarted"):
            connection.settings()


def test_settings_so_far_are_asked_for_again_once_they_may_have_changed():
    client, server = Client(), Server()
    connection = Connection(client, server)
    for _ in range(3):
        connection.settings_so_far()
    assert server.calls == 1
    connection.forget_settings()
    for _ in range(2):
        connection.settings_so_far()
    assert server.calls == 2
    connection.forget_settings(always=True)
    for _ in range(3):
        connection.settings_so_far()
    assert server.calls == 5


def test_a_client_that_is_gone_is_a_failure():
    connection = Connection(Client(), Server())
    with pytest.raises(EnvironmentFailure, match="gone"):
        connection.settings()


def test_only_settings_that_are_missing_are_asked_for_by_name():
    client, server = Client(), Server()
    Connection(client, server).settings("a", "b")
    assert server.calls == 2
