"""Reads that are sent to a server that remembers: each says what its files hold."""

import time

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import commands_pb2, expressions_pb2, relations_pb2

from nectar.dialects.spark.fresh import OPTION, as_sent, reads_in, refreshed, state_of, with_states


def read(path, **options):
    source = relations_pb2.Read.DataSource(format="parquet", paths=[path], options=options)
    return relations_pb2.Relation(read=relations_pb2.Read(data_source=source))


def options_of(relation):
    return dict(relation.read.data_source.options)


def test_reads_get_the_state_of_their_files_wherever_they_stand():
    one, two, other = read("/one"), read("/two", header="1"), read("/other")
    condition = expressions_pb2.Expression()
    condition.subquery_expression.plan_id = 3
    joined = relations_pb2.Join(
        left=relations_pb2.Relation(filter=relations_pb2.Filter(input=one, condition=condition)), right=two
    )
    root = relations_pb2.Relation(
        with_relations=relations_pb2.WithRelations(root=relations_pb2.Relation(join=joined), references=[other, one])
    )
    before = root.SerializeToString(deterministic=True)
    states = {as_sent(one.read): b"\x01", as_sent(two.read): b"\x02"}
    made = refreshed(root, states).with_relations
    assert options_of(made.root.join.left.filter.input) == {OPTION: "01"}
    assert options_of(made.root.join.right) == {OPTION: "02", "header": "1"}
    assert options_of(made.references[0]).keys() == {OPTION}
    assert options_of(refreshed(other, {})) != options_of(refreshed(other, {}))  # always another one
    assert options_of(made.references[1]) == {OPTION: "01"}
    assert root.SerializeToString(deterministic=True) == before


def test_other_options_make_another_read():
    assert as_sent(read("/one", a="1", b="2").read) == as_sent(read("/one", b="2", a="1").read)
    assert as_sent(read("/one", a="1").read) != as_sent(read("/one", a="2").read)


@pytest.mark.parametrize("kind", ["jdbc", "delta", "iceberg"])
def test_what_is_more_than_files_gets_no_option_that_it_may_not_know(kind):
    other = read("/one")
    other.read.data_source.format = kind
    assert options_of(refreshed(other, {})) == {}


def test_only_reads_of_files_count():
    named = relations_pb2.Relation(read=relations_pb2.Read(named_table={"unparsed_identifier": "v"}))
    assert reads_in(named) == []
    assert refreshed(named, {}) == named


def test_states_may_be_put_where_they_are_known_and_nowhere_else():
    one, other = read("/one"), read("/other")
    command = commands_pb2.Command(write_operation=commands_pb2.WriteOperation(input=one, path="/out"))
    assert with_states(command, {as_sent(other.read): b"\x01"}) == command
    assert options_of(with_states(command, {as_sent(one.read): b"\x01"}).write_operation.input) == {OPTION: "01"}


def test_a_state_is_another_one_whenever_files_are(tmp_path):
    from nectar import session
    from nectar.dialects.spark.reads import source_of
    from nectar.settings import Settings

    folder = tmp_path / "data"
    folder.mkdir()
    inputs = session.Session(Settings(home=tmp_path / "home", reserve=0)).inputs

    def state():
        source = source_of(read(str(folder)).read)
        return state_of(source, inputs.identify(source.files))

    seen = []
    for change in (
        lambda: (folder / "a").write_text("1"),
        lambda: (folder / "a").write_text("2"),
        lambda: (folder / "b").write_text("2"),
        lambda: (folder / "b").rename(folder / "c"),
        lambda: (folder / "d").write_text("3"),
        lambda: (folder / "d").unlink(),  # as it was before, but a server may have looked
        lambda: (folder / "e").mkdir(),
        lambda: ((folder / "e" / "f").write_text("4"), (folder / "e" / "f").unlink()),
        lambda: (folder / "a").write_text("2"),  # the same once more
    ):
        time.sleep(0.02)  # more than a clock of files takes to move on
        change()
        assert state() == state()
        seen.append(state())
    assert len(set(seen)) == len(seen)
