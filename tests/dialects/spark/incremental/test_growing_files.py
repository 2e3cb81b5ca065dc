"""What files do, and what they hold: the answer is that of plain Sail, whichever of them are read."""

import datetime

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.incremental.days import clicks, grown, later, pages, write

import nectar
from nectar import session

# what files do


@pytest.mark.small
def test_several_files_at_once_and_names_in_between(compared, folder):
    grown(compared, folder, pages(folder), (3, 7), (8, 9))
    for day, when in ((5, 20), (4, 21)):
        later(write(folder, day), when)
    assert compared(pages(folder)) == ["day-4.parquet", "day-5.parquet"]


@pytest.mark.small
def test_a_file_that_changed_is_computed_again(compared, folder):
    grown(compared, folder, pages(folder))
    later(write(folder, 2, rows=7), 50)
    assert "day-2.parquet" in compared(pages(folder))


@pytest.mark.small
def test_a_file_that_vanished_is_no_longer_counted(compared, folder):
    grown(compared, folder, pages(folder))
    (folder / "day-2.parquet").unlink()
    compared(pages(folder))
    (folder / "day-1.parquet").unlink()
    compared(pages(folder))


def test_a_window_that_moves(compared, folder):
    read = []
    for day in range(1, 12):
        write(folder, day)
        if day > 4:
            (folder / f"day-{day - 4}.parquet").unlink()
        read.append(compared(pages(folder)))
    assert all(len(files) <= 1 for files in read[-4:])


def test_histories_that_branch(compared, folder):
    grown(compared, folder, pages(folder))
    (folder / "day-5.parquet").unlink()
    write(folder, 6)
    assert compared(pages(folder)) == ["day-6.parquet"]


def test_files_without_rows(compared, folder):
    read = grown(compared, folder, pages(folder), written=lambda folder, day: write(folder, day, 0 if day > 3 else 9))
    assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]
    (folder / "_SUCCESS").write_bytes(b"")
    later(folder / "_SUCCESS", 99)
    assert compared(pages(folder)) == ["_SUCCESS"]


def test_nothing_but_empty_files(compared, folder):
    for program in (pages(folder), lambda spark: clicks(spark, folder).agg(F.sum("n"), F.count("*"), F.max("x"))):
        for path in folder.iterdir():
            path.unlink()
        grown(compared, folder, program, written=lambda folder, day: write(folder, day, 0))


@engines.only_sail  # Spark reads no folders within a folder, unless they are partitions
def test_folders_within_the_folder(compared, folder):
    def written(folder, day):
        (folder / f"week {day // 3}").mkdir(exist_ok=True)
        write(folder / f"week {day // 3}", day)

    assert grown(compared, folder, pages(folder), written=written)[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_several_paths_and_patterns(compared, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    later(write(other, 40), -5)

    def program(spark):
        return spark.read.parquet(f"{folder}/day-*.parquet", str(other / "day-40.parquet")).groupBy("page").count()

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]
    (folder / "notes.txt").write_text("not a table")
    later(folder / "notes.txt", 80)
    compared(program)


def test_two_folders_one_behind_the_other(compared, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for day in (1, 2):
        write(other, day)

    def program(spark):
        both = clicks(spark, folder).select("page", "n").union(clicks(spark, other).select("page", "n"))
        return both.groupBy("page").agg(F.sum("n").alias("s"), F.count("*").alias("c"))

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]
    write(other, 6)
    assert compared(program) == ["day-6.parquet"]


# types that are found out from files


def lines(text):
    def written(folder, day):
        path = folder / f"day-{day}.{'json' if text(day).startswith('{') else 'csv'}"
        path.write_text(text(day))
        later(path, day)

    return written


def counted(read):
    return lambda spark: read(spark.read).groupBy("k").agg(F.count("*").alias("c"), F.max("v").alias("v"))


def test_csv_with_a_schema(compared, folder):
    program = counted(lambda read: read.csv(str(folder), header=True, schema="k string, v int"))
    read = grown(compared, folder, program, written=lines(lambda day: f"k,v\na,{day}\nb,{day + 1}\n"))
    assert read[1:] == [["day-4.csv"], ["day-5.csv"]]


@pytest.mark.parametrize("infer", [True, False])
def test_types_of_csv_change_with_a_later_file(compared, folder, infer):
    program = counted(lambda read: read.csv(str(folder), header=True, inferSchema=infer))
    texts = {6: "k,v\na,7.5\n", 7: "k,v\nb,word\n", 8: "k,v\nb,3\n"}
    written = lines(lambda day: texts.get(day, f"k,v\na,{day}\nb,{day + 1}\n"))
    read = grown(compared, folder, program, written=written, then=(3, 4, 5, 6, 7, 8))
    assert read[1:3] == [["day-4.csv"], ["day-5.csv"]]
    if infer:
        assert read[3] is None or "day-1.csv" in read[3]


def test_rows_of_csv_whose_types_change(compared, folder):
    program = lambda spark: spark.read.csv(str(folder), header=True, inferSchema=True).filter("k = 'a'")  # noqa: E731
    texts = {6: "k,v\na,7.5\n", 7: "k,v\na,word\n"}
    written = lines(lambda day: texts.get(day, f"k,v\na,{day}\nb,{day + 1}\n"))
    grown(compared, folder, program, written=written, then=(3, 4, 5, 6, 7, 8))


def test_columns_of_csv_in_another_order(compared, folder):
    program = counted(lambda read: read.csv(str(folder), header=True))
    texts = {6: "v,k\n7,a\n", 8: "k,v,w\nb,8,9\n"}
    written = lines(lambda day: texts.get(day, f"k,v\na,{day}\nb,{day + 1}\n"))
    grown(compared, folder, program, written=written, then=range(3, 11))


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_broken_lines(compared, folder, mode):
    options = {"mode": mode, "columnNameOfCorruptRecord": "broken"}
    program = counted(lambda read: read.options(**options).json(str(folder), schema="k string, v int, broken string"))
    texts = {5: '{"k": "a", "v": 1\n{"k": "b"}\n'}
    written = lines(lambda day: texts.get(day, f'{{"k": "a", "v": {day}}}\n'))
    grown(compared, folder, program, written=written, then=range(3, 8))


@pytest.mark.small
def test_types_and_columns_of_json_change_with_a_later_file(compared, folder):
    program = counted(lambda read: read.json(str(folder)))
    texts = {6: '{"k": "a", "v": 7.5}\n', 7: '{"k": "b", "v": 1, "w": "new"}\n', 8: '{"k": "b", "v": "word"}\n'}
    written = lines(lambda day: texts.get(day, f'{{"k": "a", "v": {day}}}\n{{"k": "b", "v": {day + 1}}}\n'))
    read = grown(compared, folder, program, written=written, then=(3, 4, 5, 6, 7, 8, 9))
    assert read[1:3] == [["day-4.json"], ["day-5.json"]]


def test_lines_of_text(compared, folder):
    def program(spark):
        return spark.read.text(str(folder)).groupBy(F.length("value").alias("long")).count()

    read = grown(compared, folder, program, written=lines(lambda day: "x" * day + "\nyy\n"))
    assert read[1:] == [["day-4.csv"], ["day-5.csv"]]


@pytest.mark.parametrize("merge", [True, False])
def test_columns_that_come_later(compared, folder, merge):
    def program(spark):
        return spark.read.option("mergeSchema", merge).parquet(str(folder)).groupBy("page").agg(F.count("*").alias("c"))

    grown(compared, folder, program)
    write(folder, 6, new=lambda n: n)
    compared(program)
    write(folder, 7, new=lambda n: n)
    compared(program)


def partitioned(folder, day):
    path = folder / f"day={day:02}" if day < 6 else folder / f"day=x{day}"
    path.mkdir(exist_ok=True)
    return write(path, day)


def test_partitions_whose_type_changes(compared, folder):
    def program(spark):
        return clicks(spark, folder).groupBy("day").agg(F.count("*").alias("c"), F.sum("n").alias("s"))

    read = grown(compared, folder, program, written=partitioned, then=(3, 4, 5, 6, 7))
    assert read[1:3] == [["day-4.parquet"], ["day-5.parquet"]]


def test_one_partition_is_no_whole(compared, folder):
    partitioned(folder, 1)
    grown(compared, folder / "day=01", pages(folder / "day=01"), days=(11,), then=(12, 13, 14))


# values


@pytest.mark.small
def test_values_that_are_no_numbers(compared, folder):
    nan = float("nan")
    for name in ("max", "min"):
        for path in folder.iterdir():
            path.unlink()
        program = lambda spark, name=name: clicks(spark, folder).groupBy("page").agg(getattr(F, name)("f").alias("f"))  # noqa: E731
        grown(compared, folder, program, written=lambda folder, day: write(folder, day, f=lambda n: n / 3))
        write(folder, 6, f=lambda n: nan)
        sent = compared(program)
        assert sent is None


def test_keys_that_are_floats(compared, folder):
    odd = [0.0, -0.0, float("nan"), float("inf"), None, 1.5]
    program = lambda spark: clicks(spark, folder).groupBy("f").count()  # noqa: E731
    read = grown(compared, folder, program, written=lambda folder, day: write(folder, day, f=lambda n: odd[n % 6]))
    assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_sums_that_overflow(compared, folder):
    large = 2**62
    program = lambda spark: clicks(spark, folder).agg(F.sum("big").alias("s"))  # noqa: E731
    grown(compared, folder, program, written=lambda folder, day: write(folder, day, 5, big=lambda n: large + n))


def test_decimals_of_all_digits_are_computed_as_a_whole(compared, folder):
    program = lambda spark: clicks(spark, folder).agg(F.sum(F.col("d").cast("decimal(38,2)")).alias("s"))  # noqa: E731
    assert grown(compared, folder, program) == [None] * 3


@pytest.mark.small
def test_exact_floats(plain, enabled, spark, sent, folder, home):
    nectar.disable()
    nectar.enable(home=home, reserve=0, exact_floats=True)
    for day in range(1, 6):
        write(folder, day)
        clicks(spark, folder).agg(F.sum("x")).collect()
        session.current().settle()
    assert sent == []
    for day in range(6, 9):
        write(folder, day)
        clicks(spark, folder).agg(F.sum("n")).collect()
        session.current().settle()
    assert sent[-1] == []
    assert ["day-8.parquet"] in sent


def test_keys_that_are_times(compared, spark, plain, folder):
    zones = "Asia/Tokyo", "America/New_York"
    start = datetime.datetime(2024, 3, 10, 1, tzinfo=datetime.UTC)
    more = {
        "at": lambda n: start + datetime.timedelta(minutes=31 * (n % 200)),
        "there": lambda n: datetime.datetime(1900, 1, 1) + datetime.timedelta(microseconds=n % 9),
    }
    for zone in zones:
        for path in folder.iterdir():
            path.unlink()
        for each in (spark, plain):
            each.conf.set("spark.sql.session.timeZone", zone)

        def program(session):
            keys = F.date_trunc("hour", "at").alias("hour"), F.hour("at").alias("h"), F.col("there")
            made = clicks(session, folder).groupBy(*keys).agg(F.max("at").alias("last"), F.hour(F.min("at")).alias("b"))
            return made.withColumn("c", F.hour("last")).withColumn("d", F.date_format("hour", "yyyy-MM-dd HH"))

        read = grown(compared, folder, program, written=lambda folder, day: write(folder, day, 200, **more))
        assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_keys_that_are_bytes_or_nothing(compared, folder):
    odd = [b"", b"\x00\xff", None, b"a"]
    program = lambda spark: clicks(spark, folder).groupBy("b", F.lit(None).cast("int").alias("none")).count()  # noqa: E731
    read = grown(compared, folder, program, written=lambda folder, day: write(folder, day, b=lambda n: odd[n % 4]))
    assert all(files is None or files[0] in ("day-1.parquet", "day-4.parquet", "day-5.parquet") for files in read)


def test_averages_of_decimals_are_computed_as_a_whole(compared, folder):
    assert grown(compared, folder, lambda spark: clicks(spark, folder).agg(F.avg("d"))) == [None] * 3
