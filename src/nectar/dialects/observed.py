"""What was seen of a computation, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nectar.observation.effects import Observation

_SHOWN: Final = 3  # observations that are told


def told(observations: Sequence[Observation]) -> tuple[str, bool]:
    """What was seen, in words, and whether it is certain whose doing it was."""
    certain = [each for each in observations if each.certain]
    shown = [each.text for each in certain or observations]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return "; ".join(shown[:_SHOWN]) + more, bool(certain)
