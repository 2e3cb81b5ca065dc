"""What a computation over a stream is thought to take: as a whole, or put together from known runs and gaps.

In: what is known of runs (bytes of input, bytes of the result, seconds it took), and the rates of this machine. Out:
seconds. Law: estimates choose between ways that give the same answer, and never decide whether a way is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

TOO_CLOSE: Final = 0.02  # seconds: what is less cannot be told by an estimate, and then what is known is used
_CLEARLY: Final = 1.1  # times: what is put together leaves a state that makes the next run cheaper
_LEARNING: Final = 0.3  # weight of the latest observation
_TELLING: Final = 1 << 20  # bytes: how long less takes says more about the engine's start than about its speed


class Rates(Struct, frozen=True):
    """How fast this machine is: seconds to start a plan, to open a result, and for each byte of results put together.

    The first values are those of an ordinary machine; they are replaced by what past runs took.
    """

    starting: float = 2e-3
    opening: float = 2e-4
    merging: float = 3e-9  # states, which are grouped again
    reading: float = 1e-9  # rows, which only stand one after the other

    def learned(self, size: int, seconds: float, states: bool) -> Rates:
        """The same, after so many bytes were put together in so many seconds."""
        if size < _TELLING:
            return self
        observed = max(seconds - self.starting, 0.0) / size
        if states:
            return replace(self, merging=_mixed(self.merging, observed))
        return replace(self, reading=_mixed(self.reading, observed))


def _mixed(before: float, observed: float) -> float:
    return before + _LEARNING * (observed - before)


class Past(Struct, frozen=True):
    """A run that was computed: bytes it read, bytes of its result, and what it took."""

    read: int
    size: int
    seconds: float


class Estimate(Struct, frozen=True):
    """Two ways to the same result, in seconds. computing, using: what the gaps and the known runs of segments take."""

    whole: float
    computing: float
    using: float

    @property
    def segments(self) -> float:
        """Everything that putting together takes."""
        return self.computing + self.using

    @property
    def is_worth_it(self) -> bool:
        """Whether to put together what is known: unless computing everything is clearly faster."""
        return self.segments <= _CLEARLY * self.whole + TOO_CLOSE

    def __str__(self) -> str:
        return (
            f"as a whole about {self.whole:.3g} s; put together about {self.segments:.3g} s, "
            f"of which {self.computing:.3g} s for what is new"
        )


class Prices(Struct, frozen=True):
    """What a stream of so many parts costs: seconds for each byte that is computed, and each that is put together.

    giving: bytes of the result for each byte that is read.
    """

    parts: int
    computing: float
    using: float
    giving: float
    rates: Rates

    def of_use(self, size: int) -> float:
        """Seconds to use a known result."""
        return self.rates.opening + size * self.using

    def of_computing(self, read: int) -> float:
        """Seconds to compute over so many bytes."""
        return self.rates.starting + read * self.computing if read else 0.0

    def worth(self, past: Past, parts: int) -> float:
        """Seconds saved by a known run of so many parts, and its share of what is too close to be told."""
        return past.read * self.computing - self.of_use(past.size) + TOO_CLOSE * parts / max(self.parts, 1)

    def estimate(self, read: int, gaps: Iterable[int], used: Iterable[Past]) -> Estimate:
        """Of a stream of so many bytes. gaps: bytes that are computed. used: runs that are known."""
        gaps = list(gaps)
        using = sum(self.of_use(past.size) for past in used)
        if using:
            using += self.rates.starting + sum(gaps) * self.giving * self.using  # what is new is put together as well
        return Estimate(self.of_computing(read), sum(map(self.of_computing, gaps)), using)


def prices(parts: int, past: Iterable[Past], rates: Rates, states: bool) -> Prices | None:
    """What a stream costs, by what runs of it took; None if nothing can be told.

    Of large runs part of the time went into merging; the smallest by what they read tell best what computing takes.
    """
    known = sorted((each for each in past if each.read and each.seconds > 0), key=lambda each: each.read)
    smallest = known[: max(1, len(known) // 2)]
    if not smallest:
        return None
    seconds = sum(max(each.seconds - rates.starting, 0.0) for each in smallest)
    read = sum(each.read for each in smallest)
    giving = sum(each.size for each in smallest) / read
    return Prices(parts, seconds / read, rates.merging if states else rates.reading, giving, rates)
