"""Ways to run the programs over documents a second time: Polars alone, Nectar, and what people do by hand.

Each peer runs a program of programs/words.py over a folder of documents, with a folder of its own for what it keeps.
Nectar runs the program as it is. The others need the shared part to be a function or a file, and somebody who sees to
it that a result is thrown away when the code or the documents change.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import polars as pl
from benchmarks.programs import words

import nectar
from nectar.session import current

PLAIN, NECTAR, BY_HAND, JOBLIB = "plain Polars", "nectar", "Parquet by hand", "joblib"


class Peer(Protocol):
    """Runs programs in one process."""

    def run(self, program: str, documents: Path, count: int) -> pl.DataFrame:
        """The result of a program over a folder of documents."""

    def settle(self) -> None:
        """Everything that is to be kept is kept."""


class Plain:
    def __init__(self, folder: Path) -> None:
        pass

    def run(self, program: str, documents: Path, count: int) -> pl.DataFrame:
        analysis = words.word_analysis(words.documents_in(documents))
        return words.PROGRAMS[program](analysis, count).collect()

    def settle(self) -> None:
        pass


class Nectar(Plain):
    def __init__(self, folder: Path) -> None:
        nectar.enable(home=folder)

    def settle(self) -> None:
        session = current()
        assert session is not None
        assert session.settle(120)


class ByHand:
    """The analysis as a Parquet file that is used if it is there."""

    def __init__(self, folder: Path) -> None:
        self._file = self.file_in(folder)

    @staticmethod
    def file_in(folder: Path) -> Path:
        return folder / "analysis.parquet"

    def run(self, program: str, documents: Path, count: int) -> pl.DataFrame:
        if not self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            words.word_analysis(words.documents_in(documents)).collect().write_parquet(self._file)
        return words.PROGRAMS[program](pl.scan_parquet(self._file), count).collect()

    def settle(self) -> None:
        pass


class Joblib:
    """The analysis as a function that joblib remembers."""

    def __init__(self, folder: Path) -> None:
        import joblib

        self._analysed = joblib.Memory(str(folder), verbose=0).cache(analysed)

    def run(self, program: str, documents: Path, count: int) -> pl.DataFrame:
        return words.PROGRAMS[program](self._analysed(str(documents)).lazy(), count).collect()

    def settle(self) -> None:
        pass


def analysed(documents: str) -> pl.DataFrame:
    return words.word_analysis(words.documents_in(Path(documents))).collect()


PEERS: dict[str, Callable[[Path], Peer]] = {PLAIN: Plain, NECTAR: Nectar, BY_HAND: ByHand, JOBLIB: Joblib}


def is_installed(peer: str) -> bool:
    return peer != JOBLIB or find_spec("joblib") is not None


def why_no_xorq() -> str:
    """What is to be said of xorq."""
    if find_spec("xorq") is not None:
        return "xorq is installed, but has no part here: its expressions are Ibis and DataFusion, not Polars."
    return (
        "xorq is not measured: it needs pyarrow below 22 and pandas below 3, older ones than are pinned here, and its "
        "programs are Ibis expressions, so that these ones would have to be written anew."
    )
