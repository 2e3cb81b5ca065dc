"""What keys say besides: the order of rows of texts, and of relations by name; and how files are looked at."""

import os
from dataclasses import replace

import pytest

pytest.importorskip("pyspark.sql.connect.session", reason="Spark is not installed: make test-sail")
pytest.importorskip("sqlglot", reason="sqlglot is not installed: make test-sail")

from pyspark.sql.connect.proto import expressions_pb2, relations_pb2

from nectar.dialects.spark import keying, reads
from nectar.dialects.spark.keying import keyed_steps
from nectar.dialects.spark.relations import steps_of
from nectar.dialects.spark.scope import Scope, View
from nectar.errors import CatalogFailure, InputFailure

pytestmark = pytest.mark.small


def relation(**content):
    return relations_pb2.Relation(**content)


def read(path):
    return relation(read=relations_pb2.Read(data_source={"format": "parquet", "paths": [str(path)]}))


def text(query):
    return relation(sql=relations_pb2.SQL(query=query))


def named(name):
    return relation(read=relations_pb2.Read(named_table={"unparsed_identifier": name}))


def is_open(session, made, scope):
    """Whether nobody could rely on the order of its rows."""
    return keyed_steps(steps_of(made), b"frame", session.inputs, scope).root.order.scrambles


@pytest.fixture
def scope(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    over = expressions_pb2.Expression(unresolved_attribute={"unparsed_identifier": "seconds"})
    order = expressions_pb2.Expression.SortOrder(child=over, direction=1, null_ordering=1)
    made = {
        "files": read(log),
        "by_text": text("select * from files"),
        "sorted": relation(sort=relations_pb2.Sort(input=read(log), order=[order], is_global=True)),
        "sorted_by_text": text("select * from files order by seconds"),
        "of_sorted": relation(filter=relations_pb2.Filter(input=named("sorted"), condition=over)),
        "counted": text("select page, count(*) from sorted group by page"),
    }
    scope = Scope()
    for name, each in made.items():
        scope = scope.with_view((name,), View(tuple(steps_of(each)), scope, folder=str(tmp_path)))
    return scope


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (named("files"), True),
        (named("by_text"), True),
        (named("sorted"), False),
        (named("sorted_by_text"), False),
        (named("of_sorted"), False),
        (text("select page, count(*) from files group by page"), True),
        (text("select * from files order by page"), False),
        (text("select * from sorted"), False),
        (text("select * from of_sorted"), False),
        (text("select 1"), False),
    ],
)
def test_whether_rows_have_an_order(enabled, scope, made, expected):
    assert is_open(enabled, made, scope) == expected


def test_a_text_over_frames_says_something_of_order_too(enabled, scope, log):
    alias = "_pyspark_connect_temp_view_0a"
    frame = relation(subquery_alias=relations_pb2.SubqueryAlias(input=read(log), alias=alias))
    for query, expected in ((f"select page from {alias}", True), (f"select * from {alias} order by page", False)):
        made = relations_pb2.WithRelations(root=text(query), references=[frame])
        assert is_open(enabled, relation(with_relations=made), scope) == expected


# files


class Asked:
    """Inputs that tell how often they were asked, and for what."""

    def __init__(self, inputs):
        self._inputs, self.asked = inputs, []

    def identify(self, files):
        self.asked.append([os.path.basename(file) for file in files])
        return self._inputs.identify(files)


def over(*views):
    return text(" union all ".join(f"select * from {view}" for view in views))


@pytest.fixture
def views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = Scope()
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode())
        scope = scope.with_view((name,), View(tuple(steps_of(read(tmp_path / name))), scope, folder=str(tmp_path)))
    return scope.with_view(("d",), View(tuple(steps_of(over("a", "b"))), scope, folder=str(tmp_path)))


def test_all_files_are_looked_at_together(enabled, views):
    inputs = Asked(enabled.inputs)
    together = keyed_steps(steps_of(over("c", "d")), b"frame", inputs, views)
    assert [sorted(asked) for asked in inputs.asked] == [["a", "b", "c"]]
    assert [os.path.basename(each.url) for each in together.identities] == ["c", "a", "b"]


def test_keys_are_those_of_files_that_are_looked_at_one_by_one(enabled, views, monkeypatch):
    steps = steps_of(over("c", "d", "a"))
    together = keyed_steps(steps, b"frame", enabled.inputs, views)
    monkeypatch.setattr(keying._Keying, "_looked_at", lambda _: {})
    alone = keyed_steps(steps, b"frame", enabled.inputs, views)
    assert [node.keys for node in together.program.nodes] == [node.keys for node in alone.program.nodes]


def test_a_file_that_is_missing_is_told_of(enabled, views, tmp_path):
    (tmp_path / "b").unlink()
    found = keyed_steps(steps_of(over("c", "d")), b"frame", enabled.inputs, views)
    assert f"there is no file {tmp_path / 'b'}" in found.root.refusal
    assert not keyed_steps(steps_of(over("c", "a")), b"frame", enabled.inputs, views).root.refusal


@pytest.mark.parametrize("failure", [InputFailure, CatalogFailure])
def test_a_file_that_cannot_be_read_is_told_of(enabled, views, failure):
    """It is listed, and fails when it is looked at."""

    class Failing(Asked):
        def identify(self, files):
            if any(file.endswith("/b") for file in files):
                raise failure("b cannot be read")
            return super().identify(files)

    found = keyed_steps(steps_of(over("c", "d")), b"frame", Failing(enabled.inputs), views)
    assert "b cannot be read" in found.root.refusal


def test_nothing_is_looked_at_where_nothing_can_be_reused(enabled, views):
    inputs = Asked(enabled.inputs)
    refused = text("select * from a, b, nowhere.to_be_found(1)")
    assert keyed_steps(steps_of(refused), b"frame", inputs, views).root.refusal
    assert not inputs.asked


UNFOLLOWED = {
    "another folder": lambda view: replace(view, folder="elsewhere"),
    "refused": lambda view: replace(view, refusal="it is not read"),
    "an unknown function": lambda view: replace(view, steps=tuple(steps_of(text("select no_such_function(1) from a")))),
    "an unknown scope": lambda view: replace(view, scope=replace(view.scope, unknown="anything may have happened")),
}


@pytest.mark.parametrize("why", UNFOLLOWED)
def test_nothing_is_looked_at_behind_a_view_that_is_not_followed(enabled, views, why):
    inputs = Asked(enabled.inputs)
    other = views.with_view(("d",), UNFOLLOWED[why](views.view(("d",))))
    assert keyed_steps(steps_of(over("c", "d")), b"frame", inputs, other).root.refusal
    assert {name for asked in inputs.asked for name in asked} == {"c"}


def test_folders_are_listed_once(enabled, tmp_path, monkeypatch):
    listed, before = [], reads._listing_of
    monkeypatch.setattr(reads, "_listing_of", lambda *args: listed.append(args[0]) or before(*args))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"a")
    both = relations_pb2.SetOperation(
        left_input=read(tmp_path / "one"), right_input=read(tmp_path / "two"), is_all=True, set_op_type=2
    )
    for made, expected in ((read(tmp_path / "one"), 1), (relation(set_op=both), 2)):
        listed.clear()
        assert not keyed_steps(steps_of(made), b"frame", enabled.inputs, Scope()).root.refusal
        assert len(listed) == expected


def test_a_working_folder_that_is_gone(enabled, views, tmp_path):
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refusal = lambda made: keyed_steps(steps_of(made), b"frame", enabled.inputs, views).root.refusal
    assert "working folder" in refusal(over("a", "b"))
    assert not refusal(read(tmp_path / "a"))
    assert "there is no file a" in refusal(read("a"))
