"""Is this the environment a result was made in? Asked before a recipe is run.

In: a recipe. Out: sentences. What is missing makes a rebuild impossible; what differs could change the result, and
needs the word of a person.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Collection
from importlib.util import find_spec

from msgspec import Struct

from nectar.keys.distributions import distribution_of
from nectar.keys.scheme import SCHEME
from nectar.recipes.recipe import Environment, Package, Recipe


class Differences(Struct, frozen=True):
    """missing: without it nothing can run. changed: it would run, and might give something else."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def environment_here(engine: str, version: str, folder: str) -> Environment:
    """The environment of this process."""
    return Environment(
        f"{sys.version_info[0]}.{sys.version_info[1]}", sys.implementation.name, engine, version, folder, SCHEME,
        sys.platform, platform.machine(),
    )  # fmt: skip


def differences(recipe: Recipe, here: Environment, captured: Collection[str]) -> Differences:
    """What is not as it was. captured: modules that come with the recipe, and need not be found here."""
    then = recipe.environment
    missing, changed = [], []
    if (then.python, then.implementation) != (here.python, here.implementation):
        sentence = f"it was made by {_python(then)}, and this is {_python(here)}"
        by_value = any(package.name == "cloudpickle" for package in recipe.packages)
        if by_value:
            missing.append(f"{sentence}: functions of the script are kept as bytecode, which only the former can run")
        else:
            changed.append(sentence)
    if (then.engine, then.engine_version) != (here.engine, here.engine_version):
        changed.append(
            f"it was made by {then.engine} {then.engine_version}, and this is {here.engine} {here.engine_version}"
        )
    if then.scheme != here.scheme:
        changed.append(f"its fingerprints are of scheme {then.scheme}, and this Nectar makes those of {here.scheme}")
    if (then.system, then.machine) != (here.system, here.machine):
        changed.append(f"it was made on {then.system} {then.machine}, and this is {here.system} {here.machine}")
    for package in recipe.packages:
        found = None if package.module.partition(".")[0] in captured else version_here(package)
        needs = f"{package.used_by} needs {_called(package)}"
        if found is None:
            missing.append(f"{needs}, which is not installed: pip install '{_requirement(package)}'")
        elif package.version and _plain(found) != _plain(package.version):
            changed.append(f"{needs}, and {found or 'another one, that is not installed but worked on,'} is here")
    return Differences(tuple(missing), tuple(changed))


def version_here(package: Package) -> str | None:
    """The version of an installed package; empty if it is here without having been installed, None if it is not."""
    try:
        spec = find_spec(package.module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    folders = [os.path.join(each, "") for each in spec.submodule_search_locations or ()]
    places = [spec.origin] if spec.origin else folders
    found = distribution_of(places[0]) if places else None
    return found.version if found is not None else ""


def _plain(version: str) -> str:
    """A version without the digest of a single file, which differs from module to module."""
    return version.partition("#")[0]


def _python(environment: Environment) -> str:
    return f"Python {environment.python} ({environment.implementation})"


def _called(package: Package) -> str:
    shown = package.version.partition("@")[0].partition("#")[0]
    return f"{package.name} {shown}".rstrip()


def _requirement(package: Package) -> str:
    shown = package.version.partition("@")[0].partition("#")[0]
    return f"{package.name}=={shown}" if shown else package.name
