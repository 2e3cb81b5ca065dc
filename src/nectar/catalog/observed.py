"""What programs were seen to do that their keys do not show, so that nobody tries to reuse them again.

It is remembered by the fingerprint of the program: another version of the code is another program, of which nothing
has been seen. Each program is asked for once in a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nectar.errors import CatalogUnavailableError, EnvironmentFailure
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index

_log: Final = logger("nectar.catalog")


class Observed:
    """Programs whose results are not kept because of what they did when they ran."""

    def __init__(self, index: Index, read_only: bool = False) -> None:
        self._index, self._read_only = index, read_only
        self._known: dict[bytes, str] = {}

    def told_of(self, program: bytes) -> str:
        """What a program was seen to do, by any process so far; empty if nothing."""
        known = self._known.get(program)
        if known is None:
            try:
                known = self._index.observed([program]).get(program, "")
            except CatalogUnavailableError:
                return ""  # then nothing is reused either, and what runs is watched
            self._known[program] = known
        return known

    def add(self, program: bytes, told: str, now: float) -> None:
        """Remembers what a program was seen to do, for this process and for others."""
        self._known[program] = told
        if not self._read_only:
            try:
                self._index.add_observed(program, told, now)
            except EnvironmentFailure as failure:
                _log.info("only this process knows that a function %s: %s", told, failure)
