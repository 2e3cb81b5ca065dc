"""What reached code observes beside what things compute: names, texts, order and the like, as far as it is known.

In: the features known so far. Out: answers to whoever takes objects apart, and a note of what was asked for. Law: a
walk goes by nothing but these answers, so that a feature found out about during the walk makes another walk necessary
only if it was asked for.
"""

from __future__ import annotations

from typing import Final

REBINDS: Final = "rebinds "  # with a name behind it: a feature of programs that assign to a global or captured variable
MOMENTS: Final = "moments"  # texts are taken for moments in time, some of them for one that depends on the clock
IDENTITIES: Final = "identities"  # arguments are compared with `is`
NUMBERS: Final = "numbers of categories"  # those of Polars, which each process gives anew
HANDED_ON: Final = "numbers of categories, by libraries"  # whose code nobody searches
NUMBERED: Final = frozenset({NUMBERS, HANDED_ON})
MAKES_CATEGORIES: Final = "makes categories"
HOLDS_CACHES: Final = "holds caches"  # objects of libraries remember something to save time
WITHOUT_CACHES: Final = "without caches"  # which is left out then
COPIED: Final = frozenset({str, bytes, int, float, complex, tuple, frozenset})  # equal ones may be one object or two


class Features:
    """The features that count in one walk.

    rebound: names of global and captured variables that reached code assigns to. asked: what answers were given about.
    """

    __slots__ = ("_known", "asked", "rebound")

    def __init__(self, known: frozenset[str] = frozenset()) -> None:
        self._known = known
        self.rebound = frozenset(each.removeprefix(REBINDS) for each in known if each.startswith(REBINDS))
        self.asked: set[str] = set()

    def __contains__(self, feature: str) -> bool:
        """Whether reached code observes a feature."""
        self.asked.add(feature)
        return feature in self._known

    def any_of(self, features: frozenset[str]) -> bool:
        """Whether reached code observes one of several features."""
        self.asked |= features
        return not self._known.isdisjoint(features)

    def lacks(self, noticed: set[str]) -> bool:
        """Whether answers would have been others, had all that was noticed been known."""
        new = noticed - self._known
        return not new.isdisjoint(self.asked) or any(each.startswith(REBINDS) for each in new)

    def extended(self, more: frozenset[str] | set[str]) -> Features:
        """All that is known, and more; nothing has been asked yet."""
        return Features(self.known | more)

    @property
    def known(self) -> frozenset[str]:
        """The features that count."""
        return self._known

    def complete(self, noticed: set[str]) -> None:
        """From now on answers go by all that was noticed, as rechecks have to: what has changed may ask for more."""
        self._known |= noticed
