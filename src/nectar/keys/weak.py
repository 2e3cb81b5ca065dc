"""What is known of classes, by id, for as long as they are there: a metaclass may have an equality of its own."""

from __future__ import annotations

import weakref
from typing import Any


def reference_in(table: dict[int, Any], cls: type) -> weakref.ref[type]:
    """A reference that does not hold the class; when the class goes, what a table has under its id goes too."""
    number = id(cls)
    return weakref.ref(cls, lambda _: table.pop(number, None))
