"""Reads that may make timestamps of texts."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from nectar.dialects.spark.dated_reads import columns_of_read, parses_times
from nectar.dialects.spark.reads import read_of
from nectar.dialects.spark.texts_and_times import EITHER, TEXT

pytestmark = pytest.mark.small


@pytest.mark.parametrize("form", ["json", "csv", "JSON"])
@pytest.mark.parametrize("option", ["inferSchema", "inferTimestamp", "INFERTIMESTAMP"])
def test_types_that_are_guessed_from_texts_may_be_timestamps(form, option):
    for value, guesses in (("true", True), ("True", True), ("yes", True), ("false", False), ("FALSE", False)):
        read = read_of(form, "rows", {option: value})
        assert parses_times(read) == guesses
        assert columns_of_read(read, ()).rest == (EITHER if guesses else TEXT)


def test_texts_stay_texts_where_nothing_is_guessed():
    assert not parses_times(read_of("csv", "rows", {"header": "true"}))
    assert not parses_times(read_of("parquet", "rows", {"inferSchema": "true"}))
