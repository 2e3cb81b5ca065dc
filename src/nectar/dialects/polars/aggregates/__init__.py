"""Aggregates as states: partial results of parts of a stream that can be merged, and finished when all are there.

In: the aggregates of a group-by, or of a selection, as Polars serialises them, such as `a.sum() / len()`; and the
schema of the rows. Out: the states they need, how each is merged, and expressions over the merged states that give what
the aggregates would have given; or why they cannot be taken apart. Law: merging and finishing give the value and the
type that aggregating everything at once gives, but for the last bits of floats, within the bound that
docs/reference/aggregates.md states; or they fail, and everything is computed at once.
"""

from nectar.dialects.polars.aggregates.apart import Apart, finished, taken_apart
from nectar.dialects.polars.aggregates.expressions import expression_of
from nectar.dialects.polars.aggregates.states import LAYOUT, States

__all__ = ["LAYOUT", "Apart", "States", "expression_of", "finished", "taken_apart"]
