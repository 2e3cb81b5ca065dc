"""Who want to see what becomes of every query before it runs. Asked for each query, and so it loads nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nectar.report.explanation import QueryExplanation

watchers: Final[list[Callable[[QueryExplanation], None]]] = []
