"""Functions of Spark programs are edited, two modules deep or in the main file, and the program is run again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines

import nectar

pytestmark = engines.only_sail  # functions of modules run as they are on Spark: test_spark_server.py
SOURCE = str(Path(nectar.__file__).parents[1])

FILES = {
    "main.py": """
from pyspark.sql import SparkSession, functions as F
import pandas as pd
import scores

BONUS = 100
UNUSED = 1
spark = SparkSession.builder.getOrCreate()
numbers = spark.range(4)

def with_one(n):
    return scores.score(n) + 1

def bonus(n):
    return n + BONUS

def with_bonus(n):
    return bonus(n)

@F.pandas_udf("long")
def scored(n: pd.Series) -> pd.Series:
    return n.map(scores.score)

def batches_scored(batches):
    for batch in batches:
        yield batch.assign(id=batch["id"].map(scores.score))

def shown(frame):
    print(sorted(row[0] for row in frame.collect()))

shown(numbers.select(F.udf(scores.score, "long")("id")))
shown(numbers.select(F.udf(with_one, "long")("id")))
shown(numbers.select(scored("id")))
shown(numbers.mapInPandas(batches_scored, "id long"))
shown(numbers.groupBy((F.col("id") % 2).alias("k")).applyInPandas(
    lambda group: pd.DataFrame({"n": [int(group["id"].map(scores.score).sum())]}), "n long"))
spark.udf.register("score", scores.score, "long")
shown(numbers.selectExpr("score(id)"))
shown(numbers.select(F.udf(with_bonus, "long")("id")))
shown(numbers.select(F.udf(lambda n: n * 2, "long")("id")))
shown(numbers.select(F.col("id") + 7))
""",
    "scores.py": """
import weights

def score(n):
    return weights.weigh(n)
""",
    "weights.py": """
import rates

def weigh(n, offset=0):
    return rates.rated(n) + offset
""",
    "rates.py": """
RATE = 3
OTHER = 5
TABLE = {"all": 0}

def rounded(n):
    return n

def other(n):
    return n * OTHER

def rated(n):
    return rounded(n * RATE + TABLE["all"])
""",
}
QUERIES = 9
SCORED = 6  # queries that call rates.rated, two modules deep

# file, what is written instead of what, and the score of a number from then on
DEEP = {
    "a constant": ("rates.py", "RATE = 3", "RATE = 4", lambda n: 4 * n),
    "within a dictionary": ("rates.py", '{"all": 0}', '{"all": 2}', lambda n: 3 * n + 2),
    "the function": ("rates.py", "n * RATE +", "n * RATE + 1 +", lambda n: 3 * n + 1),
    "what the function calls": ("rates.py", "    return n\n", "    return -n\n", lambda n: -3 * n),
    "a default on the way": ("weights.py", "offset=0", "offset=9", lambda n: 3 * n + 9),
    "which function is called": ("weights.py", "rates.rated(n)", "rates.other(n)", lambda n: 5 * n),
}
UNUSED = {
    "a constant that nobody reads": ("rates.py", "OTHER = 5", "OTHER = 6"),
    "a function that nobody calls": ("rates.py", "return n * OTHER", "return n - OTHER"),
    "a comment": ("rates.py", "def rated", "# by the rate\ndef rated"),
    "a constant of the main file": ("main.py", "UNUSED = 1", "UNUSED = 2"),
    "a line before functions of the main file": ("main.py", "BONUS = 100", "MORE = [1, 2]\n\n\nBONUS = 100"),
}
IN_MAIN = {
    "a constant": ("BONUS = 100", "BONUS = 200", 6, [200, 201, 202, 203]),
    "a function": ("return bonus(n)", "return bonus(n) * 2", 6, [200, 202, 204, 206]),
    "what a function calls": ("return n + BONUS", "return n - BONUS", 6, [-100, -99, -98, -97]),
    "a lambda": ("lambda n: n * 2", "lambda n: n * 5", 7, [0, 5, 10, 15]),
    "a function that calls a module": ("score(n) + 1", "score(n) + 2", 1, [2, 5, 8, 11]),
}


def run(folder, home, edited=None, old="", new=""):
    """The lines that the program prints, and how many of its queries were reused."""
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        if name == edited:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / name).write_text(text)
    environment = {
        **os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    environment.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        [sys.executable, "-m", "nectar.cli", "run", "main.py"], cwd=folder, env=environment, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reused, of = re.search(r"^nectar: (\d+) of (\d+) queries from cache", done.stderr, re.M).groups()
    assert int(of) == QUERIES
    return done.stdout.splitlines(), int(reused)


def expected(score):
    scores = [score(n) for n in range(4)]
    return [
        str(each)
        for each in (
            sorted(scores), sorted(n + 1 for n in scores), sorted(scores), sorted(scores),
            sorted([scores[0] + scores[2], scores[1] + scores[3]]), sorted(scores),
            [100, 101, 102, 103], [0, 2, 4, 6], [7, 8, 9, 10],
        )
    ]  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A store in which the results of the program are, as it was before any edit."""
    home = tmp_path_factory.mktemp("known") / "home"
    printed, reused = run(home.parent / "program", home)
    assert (printed, reused) == (expected(lambda n: 3 * n), 0)
    return home


@pytest.mark.parametrize("name", DEEP)
def test_an_edit_two_modules_deep_is_noticed_in_all_kinds_of_functions(tmp_path, known, name):
    edited, old, new, score = DEEP[name]
    assert run(tmp_path, known, edited, old, new) == (expected(score), QUERIES - SCORED)


@pytest.mark.parametrize("name", UNUSED)
def test_an_edit_of_what_is_not_used_changes_nothing(tmp_path, known, name):
    assert run(tmp_path, known, *UNUSED[name]) == (expected(lambda n: 3 * n), QUERIES)


@pytest.mark.parametrize("name", IN_MAIN)
def test_an_edit_in_the_main_file_is_noticed_where_it_counts(tmp_path, known, name):
    old, new, line, rows = IN_MAIN[name]
    printed = expected(lambda n: 3 * n)
    printed[line] = str(rows)
    assert run(tmp_path, known, "main.py", old, new) == (printed, QUERIES - 1)
