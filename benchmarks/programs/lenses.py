"""A query of four steps with a join of three tables, each step with a Python function that is debugged in turn.

After the one in the Nectar paper, which looks for gravitational lenses: pairs of neighbours in the sky of nearly equal
colours. Every step has a function of three versions: one that fails, one that works, one that was changed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from polars import col

BANDS = ("u", "g", "r", "i", "z")
STEPS = (1, 2, 3, 4)
Version = str
Versions = Sequence[Version]
Function = Callable[[pl.Series], pl.Series]


def write_sky(folder: Path, objects: int) -> None:
    """Objects with their brightness in five bands, and which are neighbours of which."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(18)
    brightness = {band: random.normal(20, 2, objects) for band in BANDS}
    pl.DataFrame({"object": np.arange(objects), **brightness, "kind": random.integers(0, 6, objects)}).write_parquet(
        folder / "objects.parquet"
    )
    pairs = objects * 2
    pl.DataFrame(
        {
            "object": random.integers(0, objects, pairs),
            "neighbour": random.integers(0, objects, pairs),
            "distance": random.exponential(0.4, pairs),
        }
    ).write_parquet(folder / "neighbours.parquet")


# the functions that are debugged


def no_flux(magnitude: pl.Series) -> pl.Series:
    raise ValueError("the magnitudes are not calibrated")


def flux(magnitude: pl.Series) -> pl.Series:
    return 10 ** (-0.4 * (magnitude - 22.5))


def corrected_flux(magnitude: pl.Series) -> pl.Series:
    return 10 ** (-0.4 * (magnitude - 22.46))


def no_weight(distance: pl.Series) -> pl.Series:
    raise ValueError("the distance has no unit")


def weight(distance: pl.Series) -> pl.Series:
    return 1 / (1 + distance**2)


def steeper_weight(distance: pl.Series) -> pl.Series:
    return 1 / (1 + distance**3)


def no_difference(ratio: pl.Series) -> pl.Series:
    raise ValueError("a ratio of colours is not a number")


def difference(ratio: pl.Series) -> pl.Series:
    return ratio.log().abs()


def scaled_difference(ratio: pl.Series) -> pl.Series:
    return ratio.log().abs() * 1.086


def no_score(badness: pl.Series) -> pl.Series:
    raise ValueError("there is no score for this")


def score(badness: pl.Series) -> pl.Series:
    return (-badness).exp()


def sharper_score(badness: pl.Series) -> pl.Series:
    return (-2 * badness).exp()


FUNCTIONS: dict[int, dict[Version, Function]] = {
    1: {"fails": no_flux, "works": flux, "changed": corrected_flux},
    2: {"fails": no_weight, "works": weight, "changed": steeper_weight},
    3: {"fails": no_difference, "works": difference, "changed": scaled_difference},
    4: {"fails": no_score, "works": score, "changed": sharper_score},
}


def applied(column: pl.Expr, function: Function) -> pl.Expr:
    return column.map_batches(function, return_dtype=pl.Float64)


# the steps


def step_1(folder: Path, function: Function) -> pl.LazyFrame:
    """Galaxies with the logarithm of what they give off in each band."""
    objects = pl.scan_parquet(folder / "objects.parquet").filter(col("kind") != 3)
    fluxes = objects.select("object", *(applied(col(band), function).log().alias(band) for band in BANDS))
    return fluxes.filter(pl.all_horizontal(col(band).is_finite() for band in BANDS)).sort("object", maintain_order=True)


def step_2(folder: Path, function: Function, galaxies: pl.LazyFrame) -> pl.LazyFrame:
    """Pairs of neighbours that are near enough, with the colours of the first."""
    pairs = pl.scan_parquet(folder / "neighbours.parquet").filter(col("distance") < 0.5)
    weighted = pairs.with_columns(weight=applied(col("distance"), function)).filter(col("object") < col("neighbour"))
    return weighted.join(galaxies, on="object")


def step_3(folder: Path, function: Function, pairs: pl.LazyFrame, galaxies: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs with the colours of the second too, and how much they differ."""
    both = pairs.join(galaxies, left_on="neighbour", right_on="object", suffix="_2")
    differences = [applied((col(band) - col(f"{band}_2")).exp(), function) for band in BANDS]
    return both.select("object", "neighbour", "weight", badness=pl.sum_horizontal(differences))


def step_4(folder: Path, function: Function, compared: pl.LazyFrame) -> pl.LazyFrame:
    """The objects with the best candidates for a lens."""
    scored = compared.with_columns(score=applied(col("badness"), function) * col("weight"))
    best = scored.group_by("object").agg(col("score").max(), candidates=pl.len(), nearest=col("badness").min())
    return best.sort("score", "object", descending=[True, False], nulls_last=True).head(1_000)


def query(folder: Path, versions: Versions) -> pl.LazyFrame:
    """The first steps of the query, as many as versions are given, each with that version of its function."""
    return continued(folder, versions, {})


def continued(folder: Path, versions: Versions, known: dict[int, pl.LazyFrame]) -> pl.LazyFrame:
    """The same, but some steps' results are there already."""
    results = dict(known)
    for number, version in zip(STEPS, versions, strict=False):
        if number not in results:
            results[number] = _step(folder, number, FUNCTIONS[number][version], results)
    return results[len(versions)]


def _step(folder: Path, number: int, function: Function, results: dict[int, pl.LazyFrame]) -> pl.LazyFrame:
    if number == 1:
        return step_1(folder, function)
    if number == 2:
        return step_2(folder, function, results[1])
    if number == 3:
        return step_3(folder, function, results[2], results[1])
    return step_4(folder, function, results[3])
