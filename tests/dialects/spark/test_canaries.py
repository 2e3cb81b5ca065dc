"""Spark programs hold credentials wherever they can; none is found in any byte of the home, or in what is printed."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.test_rebuild import SparkProject
from tests.integration.test_canaries import found_in, places_of, unpacked

pytestmark = engines.only_sail

PROGRAM = """
    import logging, sys
    import nectar
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    logging.getLogger("pyspark").setLevel(logging.ERROR)
    def canary(number):
        return "hunter2" + f"canary{number}x"
    TOKEN = canary(60)
    @F.udf("long")
    def captured(value):
        return value + len(TOKEN)
    def given(value, password=canary(61)):
        return value + len(password)
    spark.conf.set("spark.hadoop.fs.s3a.secret.key", canary(62))
    show(spark.read.option("password", canary(63)).parquet(FOLDER).agg(F.sum("a")))
    df = spark.read.parquet(FOLDER)
    df.createOrReplaceTempView("t")
    show(df.select(captured("a").alias("n")).agg(F.sum("n")))
    show(df.select(F.udf(given, "long")("a").alias("n")).agg(F.sum("n")))
    plain = df.withColumn("token", F.lit(canary(64))).where(F.col("token") == canary(65))
    show(plain.select(F.sum("a"), (F.lit(f"https://u:{canary(66)}@h/x") != "x").alias("b")))
    show(spark.sql(f"SELECT SUM(a) AS n FROM t WHERE 'https://x/y?sig={canary(67)}' <> 'password={canary(68)}'"))
    nectar.save(df.groupBy("g").agg(F.sum("a")), "team/a", note=f"from postgresql://bob:{canary(69)}@db/x")
    print(nectar.last_run().details(), file=sys.stderr)
    url = f"jdbc:postgresql://bob:{canary(70)}@db/x"
    source = spark.read.format("jdbc").options(url=url, dbtable="t", password=canary(71))
    try:
        nectar.valid_for(source.load(), "1h").collect()
    except Exception:
        print("there is no such database", file=sys.stderr)
"""


def test_no_credential_is_in_any_byte_of_the_home_or_printed(tmp_path):
    project = SparkProject(tmp_path)
    project.file()
    project.main(PROGRAM.replace("FOLDER", repr(str(project.data))))
    done = [project.nectar("run", "main.py") for _ in range(2)]
    listed = project.nectar("ls").stdout + project.nectar("lineage", "team/a", "--sources").stdout
    assert places_of(project.settings.home) == {}
    assert found_in("".join([listed, *(each.stdout + each.stderr for each in done)]).encode()) == set()
    tables = {place.partition(".")[0] for place, content in unpacked(project.settings.home) if content}
    assert {"entries", "results", "recipes", "names"} <= tables, "what ran was kept"
