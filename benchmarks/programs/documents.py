"""Documents for the programs of words.py: text of words that are about as unevenly frequent as those of a language.

Many sentences occur in several documents; words are what is counted, so nobody notices. Apart from the programs,
which do not need NumPy.
"""

from __future__ import annotations

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
    lengths = random.integers(4, 14, VOCABULARY)
    ends = np.cumsum(lengths)
    letters = "".join(random.choice(LETTERS, int(ends[-1])))
    words = pl.Series([letters[end - length : end] for length, end in zip(lengths, ends, strict=True)])
    ranks = (VOCABULARY ** random.random(SENTENCES * WORDS) - 1).astype(np.int64)  # frequency falls with the rank
    spoken = pl.DataFrame({"sentence": np.repeat(np.arange(SENTENCES), WORDS), "word": words.gather(ranks)})
    return spoken.group_by("sentence", maintain_order=True).agg(col("word").str.join(" "))["word"]


def _mean_bytes(sentences: pl.Series) -> float:
    return float(sentences.str.len_bytes().sum()) / len(sentences)
