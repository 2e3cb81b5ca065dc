import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: make test-sail")

from nectar.dialects.spark.sql.words import canonical, name_of, pieces_of

pytestmark = pytest.mark.small


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select  a\n\tfrom t", "select a from t"),
        ("select a -- the first\nfrom t", "select a from t"),
        ("select a /* 'the' first */from t", "select a from t"),
        ("select /*+ BROADCAST(t) */ a from t", "select /*+ BROADCAST(t) */ a from t"),
        ("select 'two  spaces' from t", "select 'two  spaces' from t"),
        ("select `two  spaces` from t", "select `two  spaces` from t"),
        ("select 'größe' from t", "select 'größe' from t"),
        ("a<=b", "a<=b"),
        ("a < = b", "a < = b"),
        (" a", "a"),
    ],
)
def test_spaces_and_comments_are_one_space(text, found):
    assert canonical(pieces_of(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        r"select 'it\'s' from t",
        "select /* a /* b */ rand() */ 1",
        "select /*+ 'x' */ 1",
        "select ${what}",
        "select @what",
        "select a -- \\\n from t",
        "select 'open",
        "select /* open",
        "select größe",
        "select a\u00a0from t",
        "select {fn now()}",
        "select `a``b`",
        "select #1",
        "select a -- one\rfrom t",
    ],
)
def test_what_engines_read_differently_is_not_cut(text):
    assert isinstance(pieces_of(text), str)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("`a.b`.`c`", ("a.b", "c")),
        (" t ", ("t",)),
        ("", ()),
        ("t.", ()),
        ("t u", ()),
        ("`a``b`", ()),
        ("größe", ()),
    ],
)
def test_names_have_parts(text, name):
    assert name_of(text) == name
