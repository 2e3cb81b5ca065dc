"""Four programs that analyse documents, as in the Nectar paper: three of them begin with what the first one computes.

The documents are text of words that are about as unevenly frequent as those of a language. Many sentences occur in
several documents; words are what is counted, so nobody notices.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from polars import col

VOCABULARY = 2_000_000  # of a gigabyte so many words occur that their analysis is about 1 % of it, as in the paper
SENTENCES, WORDS = 160_000, 25  # sentences there are, words in each
LENGTH = 25  # sentences in a document
PARTITIONS = 8
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))


def write_documents(folder: Path, size: int) -> int:
    """Documents of so many bytes in all, in several files; the bytes of the files."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(7)
    sentences = _sentences(random)
    per_file = int(size / (_mean_bytes(sentences) * LENGTH) / PARTITIONS) + 1
    for partition in range(PARTITIONS):
        chosen = [sentences.gather(random.integers(0, SENTENCES, per_file)).alias(str(at)) for at in range(LENGTH)]
        numbers = pl.int_range(partition * per_file, (partition + 1) * per_file, dtype=pl.UInt32, eager=True)
        documents = pl.DataFrame(chosen).select(
            document=numbers,
            url=pl.concat_str(pl.lit("https://documents.example/"), numbers),
            text=pl.concat_str(pl.all(), separator=" "),
        )
        # Not compressed: sentences that occur again would make the files much smaller than what is read from them.
        documents.write_parquet(folder / f"{partition:02}.parquet", compression="uncompressed", row_group_size=4096)
    return sum(path.stat().st_size for path in folder.iterdir())


def _sentences(random: np.random.Generator) -> pl.Series:
    lengths = random.integers(3, 10, VOCABULARY)
    ends = np.cumsum(lengths)
    letters = "".join(random.choice(LETTERS, int(ends[-1])))
    words = pl.Series([letters[end - length : end] for length, end in zip(lengths, ends, strict=True)])
    ranks = (VOCABULARY ** random.random(SENTENCES * WORDS) - 1).astype(np.int64)  # frequency falls with the rank
    spoken = pl.DataFrame({"sentence": np.repeat(np.arange(SENTENCES), WORDS), "word": words.gather(ranks)})
    return spoken.group_by("sentence", maintain_order=True).agg(col("word").str.join(" "))["word"]


def _mean_bytes(sentences: pl.Series) -> float:
    return float(sentences.str.len_bytes().sum()) / len(sentences)


# the programs


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
