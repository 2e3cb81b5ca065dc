"""Ways to ask for what is in a table."""

from pyspark.sql import functions as F

import nectar


def sums(spark, table):
    return spark.table(table).agg(F.sum("seconds").alias("s"), F.count("*").alias("n"))


def in_words(spark, table):
    return spark.sql(f"select sum(seconds) as s, count(*) as n from {table}")


def plainly(new_session, home, action):
    """What a program without Nectar gives, in a session of its own."""
    nectar.disable()
    try:
        return action(new_session())
    finally:
        nectar.enable(home=home, reserve=0)


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def refused(outcome, action):
    """Why an action runs as it is, each time."""
    for _ in range(2):
        _, what, why = outcome(action)
        assert what == "uncacheable", why
    return why


def keeping():
    """What became of the latest result."""
    return nectar.last_run().parts[-1].keeping
