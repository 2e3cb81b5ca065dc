"""Where in a stream a run of it begins and ends, by the names it was kept under."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from nectar.dialects.polars.incremental.extents import Extent
from nectar.model.entry import Span


class Places:
    """The extents of one stream, by each of their names.

    A file from its beginning up to the end of one of its extents has one name (`names_of`), so a name stands for one
    extent or for several.
    """

    def __init__(self, extents: Sequence[Extent]) -> None:
        self._extents = extents
        self._files: list[int] = []  # where each file begins; one that begins with a stretch is its own
        self._by_name: dict[bytes, list[tuple[int, int]]] = {}
        for at, extent in enumerate(extents):
            before = extents[at - 1] if at else None
            if not extent.follows(before):
                self._files.append(at)
            for name in extent.identity.names:
                self._by_name.setdefault(name, []).append((at, at + 1))
            if extent.start > 0:
                for name in extent.upto.names:
                    self._by_name.setdefault(name, []).append((self._files[-1], at + 1))
        self._files.append(len(extents))

    def runs_of(self, span: Span) -> Iterator[tuple[int, int]]:
        """The runs of extents that may have been found with this span."""
        for first, end in self._by_name.get(span.first, ()):
            for last in self._ends(first, end, span.count):
                if self._ends_with(first, last, span.last):
                    yield first, last

    def _ends(self, first: int, end: int, count: int) -> Sequence[int]:
        """Where a run of so many names may end whose first name stands for these extents."""
        if count == 1:
            return (end,)
        file = bisect_right(self._files, first)  # the number of the file after the one it begins in
        if self._extents[first].start > 0:  # extents of a file that was not read from its beginning: one name each
            if first + count <= self._files[file]:
                return (first + count,)
            count -= self._files[file] - first - 1
        elif end != self._files[file]:
            return ()
        last = file + count - 2
        return range(self._files[last] + 1, self._files[last + 1] + 1) if last + 1 < len(self._files) else ()

    def _ends_with(self, first: int, last: int, name: bytes) -> bool:
        extent = self._extents[last - 1]
        begun = self._files[bisect_right(self._files, last - 1) - 1]
        return name in (extent.upto if first <= begun else extent.identity).names
