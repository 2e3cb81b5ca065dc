"""Running the recipe of a Spark result, in a process of its own: whether it can be, before Spark is loaded.

In: a key. Out: its result in the catalog, and an answer for whoever asked. What is not installed here is told as such.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version

import msgspec

from nectar.dialects.rebuilding import Order, because, run_first
from nectar.dialects.spark.prescription import Prescription, decoded
from nectar.recipes.environment import environment_here
from nectar.recipes.rebuild import Answer
from nectar.recipes.recipe import Environment
from nectar.settings import Settings


def run(settings: Settings, key: bytes, allow: bool) -> Answer:
    """The result of a key is in the catalog again; or the answer says why not. allow: in another environment, too."""
    return run_first(settings, key, allow, _answer)


def _answer(order: Order) -> Answer:
    try:
        prescription = decoded(order.written.plan)
    except msgspec.DecodeError:
        raise because("its recipe is of another version of Nectar") from None
    then = order.recipe.environment
    if order.recipe.refusals:
        raise because(*order.recipe.refusals)
    changes = order.checked(_here(then), _changed(prescription))
    if then.engine == "Spark" and "SPARK_REMOTE" not in os.environ:
        raise because(
            f"it was computed by a server of Spark {then.engine_version}: name one with SPARK_REMOTE=sc://HOST:PORT"
        )
    with _a_main_file():
        from nectar.dialects.spark.replay import replayed
    return replayed(order, prescription, changes)


def _here(then: Environment) -> Environment:
    """The environment of this process. Which Spark a server is, and what is not installed, is told by others."""
    here = then.engine_version
    if then.engine == "Sail":
        with suppress(PackageNotFoundError):
            here = version("pysail")
    return environment_here(then.engine, here, "")


def _changed(prescription: Prescription) -> Iterator[str]:
    here = platform.python_version()
    if prescription.python.rpartition(".")[0] == here.rpartition(".")[0] and prescription.python != here:
        yield f"it was made by Python {prescription.python}, and this is Python {here}"


@contextmanager
def _a_main_file() -> Iterator[None]:
    """PySpark takes a process without a main file for a run of its own tests, and ends it."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = __file__
    try:
        yield
    finally:
        del main.__file__
