import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: make test-sail")

from nectar.dialects.spark.text import calls_in

pytestmark = pytest.mark.small


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("n > 1", set()),
        ("upper(name) = 'A' and (n + 1) % 2 = 0", {"upper", "and"}),
        ("cast(n as decimal(10, 2))", {"cast", "decimal"}),
        ("case when n in (1, 2) then 'x' else 'it is now' end", {"in"}),
        ("`odd (name` = 1", set()),
        ("transform(list, x -> x + 1) as t", {"transform"}),
        ("sum(n) over (partition by k)", {"sum", "over"}),
        ("n::int", set()),
        ("d + interval 1 day", set()),
        ("d + INTERVAL '2' months > date_add(d, 3)", {"date_add"}),
        ("t - interval '1-2' year to month", set()),
        ("interval", set()),
    ],
)
def test_calls_are_found(text, called):
    assert calls_in(text).called == called
    assert calls_in(text).unknown == set()


def test_functions_that_the_engine_does_not_have_are_told():
    assert calls_in("mine(n) > upper(k)").unknown == {"mine"}
    assert calls_in("`mine`(n) > 1").unknown == {"mine"}
    assert calls_in("interval(n)").unknown == {"interval"}


@pytest.mark.parametrize(
    "text",
    [
        "rand() > 0.5",
        "RAND ( ) > 0.5",
        "`rand`() > 0.5",
        "n > 1 or uuid() = 'x'",
        '"rand"() > 0.5',
        'n = "current_user"',
        "current_date > d",
        "user = 'me'",
        "to_timestamp('now') > t",
        "t > ' Today '",
        "main.default.f(n)",
        "n = (select max(n) from other)",
        "exists (select 1)",
        "d + interval 'now' day",
        "n > ${limit}",
        "name = '${limit}'",
        "`${limit}` = 1",
        "n > :limit",
        "n > ?",
        "n > @limit",
        "n /* rand() */ > 1",
        "n > 1 -- rand()",
        r"name = 'it\'s' or rand() > 0.5 or name = ''",
        "name = 'open",
        "timestamp'now' < t",
        "date 'today' < t",
        "r'x' = name",
        "identifier('rand')()",
        "_metadata.file_path = 'x'",
        "c._metadata.file_path = 'x'",
        "c.`_METADATA`.file_path = 'x'",
        "unix_timestamp() > t",
        "näme > 1",
    ],
)
def test_what_is_not_certain_is_refused(text):
    assert isinstance(calls_in(text), str)


def test_two_quotes_hide_no_call():
    assert isinstance(calls_in("name = 'it''s' or rand() > 0.5"), str)
