"""Every query of TPC-DS that Sail can do gives the same under Nectar, computed and from the store."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import tpcds

import nectar
from nectar import session

SCALE = 0.1
missing = tpcds.why_missing()
pytestmark = pytest.mark.skipif(bool(missing), reason=missing)
# What Sail cannot do: it says so without Nectar too.
UNABLE: dict[int, str] = {}
# What Nectar does not reuse, and why.
REFUSED: dict[int, str] = {}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return tpcds.generate(tmp_path_factory.mktemp("tpcds"), SCALE)


def answer(spark, text):
    """The rows in any order, and the columns."""
    found = spark.sql(text).toArrow()
    return sorted(map(repr, found.to_pylist())), found.schema


def is_open(plain_session, text, known, rows):
    """Whether the engine itself gives other rows from run to run, as where ties are cut off; these may be ours too."""
    others = [answer(plain_session, text)[0] for _ in range(10)]
    return rows in others or (any(other != known for other in others) and len(rows) == len(known))


def test_every_query(spark, new_session, tables, home):
    nectar.disable()
    plain_session = new_session()
    tpcds.make_views(plain_session, tables)
    texts = tpcds.queries()
    plain = {}
    for number, text in texts.items():
        if number in UNABLE:
            with pytest.raises(Exception, match=UNABLE[number]):
                answer(plain_session, text)
        else:
            plain[number] = answer(plain_session, text)
    nectar.enable(home=home, reserve=0)
    tpcds.make_views(spark, tables)
    computed = {}
    for number, known in plain.items():
        computed[number] = rows, schema = answer(spark, texts[number])
        part = nectar.last_run().parts[-1]
        assert part.outcome == ("uncacheable" if number in REFUSED else "computed"), f"query {number}: {part.reason}"
        assert REFUSED.get(number, "") in part.reason
        assert schema.equals(known[1], check_metadata=True), f"query {number}"
        assert rows == known[0] or is_open(plain_session, texts[number], known[0], rows), f"query {number}"
    assert session.current().settle(60)
    for number in plain.keys() - REFUSED.keys():
        assert answer(spark, texts[number]) == computed[number], f"query {number} from the store"
        assert nectar.last_run().parts[-1].outcome == "reused"
    assert plain.keys() | UNABLE.keys() == set(range(1, 100))
