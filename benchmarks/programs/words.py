"""Four programs that analyse documents, as in the Nectar paper: three begin with what the first one computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
from polars import col


def documents_in(folder: Path) -> pl.LazyFrame:
    """The documents of all files."""
    return pl.scan_parquet(folder / "*.parquet")


def word_analysis(documents: pl.LazyFrame) -> pl.LazyFrame:
    """Of each word, how often it occurs, and in how many documents."""
    words = documents.select("document", word=col("text").str.split(" ")).explode("word")
    return words.group_by("word").agg(occurrences=pl.len(), documents=col("document").n_unique())


def top_word(analysis: pl.LazyFrame, count: int = 10) -> pl.LazyFrame:
    """The words that occur most."""
    return analysis.select("word", "occurrences").top_k(count, by="occurrences")


def most_doc(analysis: pl.LazyFrame, count: int = 10) -> pl.LazyFrame:
    """The words that are in most documents."""
    return analysis.select("word", "documents").top_k(count, by="documents")


def top_ratio(analysis: pl.LazyFrame, count: int = 10) -> pl.LazyFrame:
    """How many percent of all words in the documents are one of those that occur most."""
    occurrences = col("occurrences")
    return analysis.select(percent=100 * occurrences.top_k(count).sum() / occurrences.sum())


Program = Callable[[pl.LazyFrame, int], pl.LazyFrame]

# What each program does with the analysis; its number is how many words count as the top.
PROGRAMS: dict[str, Program] = {
    "WordAnalysis": lambda analysis, _: analysis,
    "TopWord": top_word,
    "MostDoc": most_doc,
    "TopRatio": top_ratio,
}
