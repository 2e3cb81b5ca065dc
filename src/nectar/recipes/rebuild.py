"""Rebuilding: the result of a key is there again, made by its recipe in a fresh process.

In: a catalog, its settings and a key. Out: the entry, and what is to be said about it. Law: nothing of the calling
process gets into the result; code and inputs are proven to be what they were before anything is computed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

import nectar
from nectar.catalog.holding import holding
from nectar.catalog.service import Catalog
from nectar.errors import NectarError, NectarWarning, RebuildError
from nectar.model.entry import Entry
from nectar.quantities import show_duration
from nectar.recipes.once import Attempt, once
from nectar.recipes.recipe import Recipe, damage_of, recipes_of
from nectar.settings import Settings
from nectar.trust.secrets import redacted

# Modules of dialects with run(settings, key, allow) -> Answer, which is called in a process of its own.
_RUNNERS: Final = {"polars": "nectar.dialects.polars.rebuild", "spark": "nectar.dialects.spark.rebuild"}
_START: Final = (
    "import sys; sys.argv[1] in sys.path or sys.path.insert(0, sys.argv[1]); "
    "from nectar.recipes.rebuild import work; work()"
)
_ATTEMPTS: Final = 3  # others may delete a result before anybody has read it
_PATIENCE: Final = 2.0  # seconds before people are told what they wait for
_SHOWN: Final = 2000  # characters of what a process that broke down wrote last


class Answer(msgspec.Struct, frozen=True):
    """What came of running a recipe.

    reasons: why nothing did; empty if the result is kept. difference: how it differs from the one that was deleted;
    empty if it does not. expected: the engine does not promise more. changes: of the environment, that were allowed.
    """

    reasons: tuple[str, ...] = ()
    difference: str = ""
    expected: bool = False
    changes: tuple[str, ...] = ()
    seconds: float = 0.0


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.json.Decoder(Answer).decode


class Rebuilt(msgspec.Struct, frozen=True):
    """A result that is there. made: it was made again, and not found; the rest as in Answer."""

    entry: Entry
    made: bool = False
    difference: str = ""
    expected: bool = False
    changes: tuple[str, ...] = ()
    seconds: float = 0.0


def rebuild(catalog: Catalog, key: bytes, settings: Settings, *, allow_environment_change: bool = False) -> Entry:
    """The entry of a key, whose result is made again if it was deleted; a warning tells if it differs from that.

    Raises RebuildError with all reasons if it cannot be.
    """
    done = rebuilt(catalog, key, settings, allow_environment_change=allow_environment_change)
    if done.difference and not done.expected:
        told = redacted(f"{_called(catalog, key)} was rebuilt, and {done.difference}")
        warnings.warn(told, NectarWarning, stacklevel=2)
    return done.entry


def rebuilt(catalog: Catalog, key: bytes, settings: Settings, *, allow_environment_change: bool = False) -> Rebuilt:
    """The same, with everything that is to be said about it."""
    entry = catalog.index.lookup([key]).get(key)
    if entry is not None:
        return Rebuilt(entry)
    found = recipes_of(catalog, key)
    what = _called(catalog, key)
    if not found:
        unknown = "nothing is known about how it was made: run the program that made it"
        raise RebuildError(what, damage_of(catalog, key) or [unknown])
    if catalog.read_only:
        raise RebuildError(what, ["the store may only be read here"])
    recipe = found[0].recipe

    def run() -> Rebuilt:
        for _ in range(_ATTEMPTS):
            with holding(catalog, key):
                answer = _in_fresh_process(recipe, key, settings, allow_environment_change)
                if answer.reasons:
                    raise RebuildError(what, tuple(map(redacted, answer.reasons)))
                made = catalog.index.lookup([key]).get(key)
            if made is not None:
                return Rebuilt(made, True, answer.difference, answer.expected, answer.changes, answer.seconds)
        raise RebuildError(what, ["it was deleted again each time: the budget may be too small"])

    variant = "-allowed" if allow_environment_change else ""
    return once(catalog, Attempt(settings.home, key, variant, run, Rebuilt))


def _called(catalog: Catalog, key: bytes) -> str:
    found = recipes_of(catalog, key)
    about = f" ({found[0].recipe.about})" if found else ""
    return f"the result {key.hex()[:12]}{about}"


# the process that asks


def _in_fresh_process(recipe: Recipe, key: bytes, settings: Settings, allow: bool) -> Answer:
    with tempfile.TemporaryDirectory(prefix="nectar-rebuild-") as folder:
        answer, errors = Path(folder, "answer"), Path(folder, "errors")
        order = msgspec.json.encode(
            {"settings": _plain(settings), "dialect": recipe.dialect, "key": key.hex(), "allow": allow}
        )
        root = str(Path(nectar.__file__).parents[1])
        command = [sys.executable, "-P", "-c", _START, root, str(answer)]
        with errors.open("wb") as written:
            try:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=written)
            except OSError as error:
                return Answer((f"no Python process can be started ({sys.executable}): {error}",))
            try:
                _wait(process, order, recipe)
            except BaseException:
                process.kill()
                process.wait()
                raise
        if process.returncode == 0 and answer.exists():
            return _decode(answer.read_bytes())
        last = errors.read_text(errors="replace").strip()[-_SHOWN:]
        return Answer((f"the process that ran it ended with {process.returncode}{': ' if last else ''}{last}",))


def _wait(process: subprocess.Popen[bytes], order: bytes, recipe: Recipe) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(order)
        process.stdin.close()
    except BrokenPipeError:  # it has ended already, and its code says why
        pass
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        if sys.stderr is not None and sys.stderr.isatty():
            took = show_duration(recipe.seconds)
            print(f"nectar: rebuilding {recipe.about}, which took {took} before", file=sys.stderr, flush=True)
        process.wait()


def _plain(settings: Settings) -> dict[str, Any]:
    """Settings that mean the same in another folder."""
    store = settings.store if "://" in settings.store or not settings.store else os.path.abspath(settings.store)
    return {**asdict(settings), "home": os.path.abspath(settings.home), "store": store}


# the fresh process


def work() -> NoReturn:
    """The fresh process: reads its order, runs the recipe, leaves the answer."""
    order = msgspec.json.decode(sys.stdin.buffer.read())
    target = Path(sys.argv[2])
    given: dict[str, Any] = order["settings"]
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    plain["home"] = Path(given["home"])
    settings = replace(Settings(**plain), off=False, refresh=False)
    runner = import_module(_RUNNERS[order["dialect"]])
    begun = time.perf_counter()
    try:
        answer: Answer = runner.run(settings, bytes.fromhex(order["key"]), order["allow"])
    except NectarError as error:
        answer = Answer((str(error),))
    answer = msgspec.structs.replace(answer, seconds=time.perf_counter() - begun)
    target.write_bytes(msgspec.json.encode(answer))
    sys.exit(0)
