"""Delta tables for the tests of growing files."""

import json
import os
import uuid

from pyspark.sql import functions as F


class Table:
    """A table, changed by somebody who knows nothing of Nectar."""

    def __init__(self, plain, path):
        self.plain, self.path, self.day, self._name = plain, path, 0, ""

    def read(self, spark, **options):
        return spark.read.format("delta").options(**options).load(self.path)

    def append(self, rows=60, **options):
        """A day more."""
        start, self.day = self.day * 100, self.day + 1
        made = self.plain.range(start, start + rows).selectExpr(
            "id", "case id % 4 when 0 then 'a' when 1 then 'b' when 2 then 'c' end as page", "id % 17 as n"
        )
        self.write(made, **options)

    def write(self, made, mode="append", by=(), **options):
        made.write.format("delta").mode(mode).options(**options).partitionBy(*by).save(self.path)

    def say(self, text):
        if not self._name:
            self._name = f"t{uuid.uuid4().hex}"
            self.plain.sql(f"create table {self._name} using delta location '{self.path}'")
        return self.plain.sql(text.format(t=self._name)).collect()

    @property
    def files(self):
        """The names of all files with rows, of whatever version."""
        return {name for _, _, names in os.walk(self.path) for name in names if name.startswith("part-")}

    # its log

    def commit(self, version):
        """The file of a version."""
        return f"{self.path}/_delta_log/{version:020}.json"

    def last(self):
        """The number of the last version."""
        return max(int(name[:20]) for name in os.listdir(f"{self.path}/_delta_log") if name.endswith(".json"))

    def lines(self, version):
        with open(self.commit(version)) as file:
            return [json.loads(line) for line in file if line.strip()]

    def put(self, version, lines):
        """A version says this."""
        with open(self.commit(version), "w") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)

    def more(self, *lines):
        """One more version."""
        self.put(self.last() + 1, [{"commitInfo": {"timestamp": 1, "operation": "WRITE"}}, *lines])

    def adds(self, version):
        """What a version says of the files it adds."""
        return [line["add"] for line in self.lines(version) if "add" in line]


def pages(table, **options):
    return lambda spark: (
        table.read(spark, **options).groupBy("page").agg(F.sum("n").alias("s"), F.count("*").alias("c"))
    )


def data_in(read):
    return {name for name in read if name.startswith("part-")}


def grown(compared, table, made, **options):
    """A table whose program has been put together once, so that the next append costs what is new."""
    table.append(**options)
    table.append()
    assert compared(made) is None
    goes_on(compared, table, made)


def goes_on(compared, table, made):
    """After one more day, of which parts are made, another one costs what is new."""
    table.append()
    compared(made)
    before = table.files
    table.append()
    assert data_in(compared(made)) & table.files == table.files - before
