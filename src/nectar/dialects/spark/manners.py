"""How engines take rows that were computed before, where they differ.

What stands in a plan for a relation must have its columns, down to nullability and metadata. Each engine loses
something of that on its own way, and has another way on which it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Manner:
    """What an engine does with rows that it is handed.

    reads_arrow: it reads Arrow files, with the very types they have. takes_schemas: rows that are sent with a plan may
    come with a schema, and get it; otherwise they have that of their Arrow data. forgets_nulls: columns of files may be
    null, whatever was written. misreads_statistics: what files tell of the values in them is taken for more than it is.
    plan_seconds: about what a plan takes besides what it computes.
    """

    reads_arrow: bool
    takes_schemas: bool
    forgets_nulls: bool
    misreads_statistics: bool
    plan_seconds: float


# What Sail is told of times in another zone is taken for those of the session. It takes a column whose smallest value
# is its largest for a constant, and files do not count NaN among their values.
SAIL: Final = Manner(
    reads_arrow=True, takes_schemas=False, forgets_nulls=False, misreads_statistics=True, plan_seconds=0.01
)
SPARK: Final = Manner(
    reads_arrow=False, takes_schemas=True, forgets_nulls=True, misreads_statistics=False, plan_seconds=0.1
)
