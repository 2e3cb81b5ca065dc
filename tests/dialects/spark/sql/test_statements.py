import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: make test-sail")

from nectar.dialects.spark.sql.statements import effect_of

pytestmark = pytest.mark.small


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("select 1", "none", ()),
        ("with c as (select 1) select * from c", "none", ()),
        (r"select 'it\'s'", "none", ()),
        ("show tables", "none", ()),
        ("describe t", "none", ()),
        ("insert into t values (1)", "none", ()),
        ("set spark.sql.ansi.enabled = true", "none", ()),
        ("create temp view v as select 1", "view", ("v",)),
        ("CREATE OR REPLACE TEMPORARY VIEW `V w` (a COMMENT 'as', b) AS SELECT 1, 2", "view", ("V w",)),
        ("create global temporary view v as select 1", "forget", ("v",)),
        ("create temp view if not exists v as select 1", "forget", ("v",)),
        ("create view v as select 1", "forget", ("v",)),
        ("create temp view v using parquet options (path 'x')", "table", ("v",)),
        ("create temp view v using parquet options (path 'x') as", "forget", ("v",)),
        ("create temp view v as", "forget", ("v",)),
        ("create table t using parquet location '/data/x'", "table", ("t",)),
        ("create table db.t using parquet options (path '/data/x', mergeSchema 'true');", "table", ("db", "t")),
        ("create table if not exists t using parquet location '/data/x'", "forget", ("t",)),
        ("create table t (a int, b decimal(7, 2)) using parquet location '/data/x'", "table", ("t",)),
        ("create table t (a int using parquet location '/data/x'", "forget", ("t",)),
        ("create table t using parquet partitioned by (a) location '/data/x'", "table", ("t",)),
        ("create table t using parquet clustered by (a) into 3 buckets location '/data/x'", "forget", ("t",)),
        ("create table t using parquet location '/data/x' as select 1", "forget", ("t",)),
        ("create table t as select 1", "forget", ("t",)),
        ("drop view if exists v", "forget", ("v",)),
        ("drop table a.b", "forget", ("a", "b")),
        ("alter view v as select 2", "names", ()),
        ("alter table t rename to u", "names", ()),
        ("use db", "names", ()),
        ("drop database db", "names", ()),
        ("cache table v as select 1", "cache", ()),
        ("with c as (select 1) insert into t select * from c", "names", ()),
        ("from t insert into u select a", "names", ()),
        ("create temporary function f as 'x'", "anything", ()),
        ("create temporary /* x */ function f as 'x'", "anything", ()),
        ("drop temporary function f", "anything", ()),
        ("execute immediate 'create temporary fun' || 'ction f'", "anything", ()),
        ("begin select 1; end", "anything", ()),
        ("declare variable x int", "anything", ()),
        ("set variable x = 1", "anything", ()),
        ("set var x = 1", "anything", ()),
        ("set path = system.session, system.builtin", "anything", ()),
        ("add jar 'x.jar'", "anything", ()),
        ("create temp view v as select 1; create temp view w as select 2", "anything", ()),
        ("create temp view v as select ${x}", "names", ()),
        ("${what} temp view v as select 1", "anything", ()),
    ],
)
def test_effects(text, kind, name):
    effect = effect_of(text)
    assert (effect.kind, effect.name) == (kind, name)


def test_a_view_keeps_its_query_and_what_is_said_about_its_columns():
    effect = effect_of("create temp view v (a, b)\n  as  select 1,  2")
    assert effect.query == "select 1,  2"
    assert effect.head == "(a, b) as"


def test_a_table_keeps_where_its_files_lie():
    effect = effect_of("create table t using CSV options ('header' = 'true') location '/data/x'")
    assert (effect.format, effect.path, effect.options) == ("csv", "/data/x", {"header": "true"})
