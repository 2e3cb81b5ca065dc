"""Inputs that a function declares by what it is handed: files, folders, and sources that stay good for a while.

A function that opens whatever it likes cannot be cached: nobody knows what it read. One that reads a `File` it was
given has said what it reads. Expanding such an object gives its place only; its content is added when the key of a call
is made (keying.py), because it may be known under several names.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final, Literal, overload

from nectar.errors import UserError
from nectar.keys import registry
from nectar.keys.expansion import Expansion, WalkContext, always, joined
from nectar.quantities import parse_duration
from nectar.store.inputs.expand import expand

_FORMS: Final = ("r", "rt", "rb")


@dataclass(frozen=True, slots=True)
class File:
    """A file, or a URL that fsspec knows, whose content a function may read.

    Hand it to a memoised function, which reads it through `open()`, or gives `path` to a reader of its choice.

    >>> import nectar
    >>> nectar.File("sales.csv")  # doctest: +ELLIPSIS
    File('.../sales.csv')
    """

    path: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", _absolute(path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @overload
    def open(
        self, mode: Literal["r", "rt"] = "r", *, encoding: str = "utf-8", newline: str | None = None
    ) -> IO[str]: ...
    @overload
    def open(self, mode: Literal["rb"]) -> IO[bytes]: ...
    def open(self, mode: str = "r", *, encoding: str = "utf-8", newline: str | None = None) -> IO[Any]:
        """The file, opened for reading; as text in UTF-8 unless another encoding is named."""
        if mode not in _FORMS:
            raise UserError(f"{self!r} is an input: it can be opened with mode {', '.join(_FORMS)}, not {mode!r}")
        content: Any = _opened(self.path)
        return content if mode == "rb" else io.TextIOWrapper(content, encoding=encoding, newline=newline)

    def read_bytes(self) -> bytes:
        """All its bytes."""
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """All its text."""
        with self.open(encoding=encoding) as file:
            return file.read()

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"File({self.path!r})"


@dataclass(frozen=True, slots=True)
class Folder:
    """All files of a folder, or those that a pattern such as "*.csv" or "**/*.parquet" names, in the order of names."""

    path: str
    pattern: str

    def __init__(self, path: str | os.PathLike[str], pattern: str = "") -> None:
        object.__setattr__(self, "path", _absolute(path))
        object.__setattr__(self, "pattern", pattern)

    @property
    def paths(self) -> list[str]:
        """Paths of the files as they are now."""
        return expand(f"{self.path}/{self.pattern}" if self.pattern else self.path)

    @property
    def files(self) -> list[File]:
        """The files as they are now."""
        return [File(path) for path in self.paths]

    def __iter__(self) -> Iterator[File]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.paths)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Folder({self.path!r}, {self.pattern!r})" if self.pattern else f"Folder({self.path!r})"


@dataclass(frozen=True, slots=True)
class Fresh:
    """A source that says nothing about its last change, and whose content is good enough for a while.

    source: what a function reads, such as a URL or the text of a query. period: seconds.
    """

    source: Any
    period: float

    @property
    def path(self) -> Any:
        """The source; so that functions need not know whether they were given a file."""
        return self.source


def valid_for(source: Any, period: str | float) -> Fresh:
    """The source, declared to be good for a period such as "1d" or "15 min".

    Results computed from it are reused until the period is over. Periods are counted from a fixed moment (days begin at
    midnight UTC), so that everybody agrees on them and a result is never older than one period.
    """
    seconds = parse_duration(period) if isinstance(period, str) else float(period)
    if not seconds > 0:
        raise UserError(f"{source!r} cannot be valid for {period!r}: name a time such as '1d' or '15 min'")
    return Fresh(source, seconds)


Declared = File | Folder | Fresh


def _absolute(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise UserError(f"{path!r} is no path: paths are text")
    if "://" in text:
        return text
    return os.path.abspath(os.path.expanduser(text))


def _opened(path: str) -> Any:
    if "://" not in path:
        return open(path, "rb")
    import fsspec

    return fsspec.open(path, "rb").open()


# how they are taken apart


def _expand_file(value: File, walk: WalkContext) -> Expansion:
    walk.need(value)
    return Expansion("file", joined(value.path), still=always)


def _expand_folder(value: Folder, walk: WalkContext) -> Expansion:
    walk.need(value)
    return Expansion("folder", joined(value.path, value.pattern), still=always)


def _expand_fresh(value: Fresh, walk: WalkContext) -> Expansion:
    walk.need(value)
    return Expansion("fresh", b"", (value.source, value.period), ("source", "period"), still=always)


_EXPANDERS: Final[Sequence[tuple[type, Any]]] = (
    (File, _expand_file), (Folder, _expand_folder), (Fresh, _expand_fresh),
)  # fmt: skip
for _kind, _expander in _EXPANDERS:
    registry.add(_kind, _expander)
