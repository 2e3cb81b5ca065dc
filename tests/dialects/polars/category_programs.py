"""Every expression of Polars over categorical columns, run in a process that has met the categories in some order.

Arguments: the categories, with commas between them. Output, as JSON: for each expression why it is refused, and its
rows. Expressions that give their rows in no promised order are left out.
"""

import json
import sys
import warnings

import polars as pl
from tests.dialects.polars.test_content import ARGUMENTS, INPUTS, NO_EXPRESSIONS, _public

from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import Plan

UNORDERED = {"mode", "unique", "unique_counts", "value_counts", "map_batches", "map_elements", "rolling_map", "pipe"}
VALUES = ["x", "y", "z", "x", "w", "v", "y", None]


def frames():
    flat = pl.LazyFrame({"k": VALUES, "a": range(8), "c": [float(at) for at in range(8)]}).with_columns(
        pl.col("k").cast(pl.Categorical), t=pl.col("a").cast(pl.Datetime)
    )
    table = flat.with_columns(l=pl.concat_list("k", "k"), s=pl.struct("k", "a"), r=pl.concat_list("k").list.to_array(1))
    found = {
        "sort": table.sort("k", "a"), "top_k": table.top_k(3, by=["k", "a"]), "filter": table.filter(pl.col("k") < "y"),
        "group_by": table.group_by("k", maintain_order=True).len(),
        "join_asof": table.sort("k").join_asof(table, on="k"),
        "merge_sorted": table.sort("k").merge_sorted(table.sort("k"), "k"), "enum": table.select(
            pl.col("k").cast(pl.Enum(["v", "w", "x", "y", "z"])).to_physical()),
    }  # fmt: skip
    for name in sorted(_public(pl.Expr) - NO_EXPRESSIONS - UNORDERED):
        arguments, options = ARGUMENTS.get(name, ((), {}))
        for column in "kslr":
            try:
                found[f"{column}.{name}"] = table.select(getattr(pl.col(column), name)(*arguments, **options))
            except Exception:  # arguments of one kind of expression mean nothing to another
                continue
    for name in dir(pl.col("k").cat):
        for arguments in ((), ("x",), (0,)) if not name.startswith("_") else ():
            try:
                found[f"cat.{name} {arguments}"] = table.select(getattr(pl.col("k").cat, name)(*arguments))
            except TypeError:
                continue
    return found


def rows(frame):
    try:
        return repr(frame.collect().rows())
    except (Exception, pl.exceptions.PanicException) as error:
        return type(error).__name__


def refusal(frame):
    try:
        return keyed(Plan.of(frame), INPUTS).program.nodes[-1].refusal
    except (Exception, pl.exceptions.PanicException) as error:
        return type(error).__name__


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    met = pl.Series(sys.argv[1].split(","), dtype=pl.Categorical)
    print(json.dumps({name: [refusal(frame), rows(frame)] for name, frame in frames().items()}))
