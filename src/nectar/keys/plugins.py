"""Tables of libraries that plugins of the same library fill when they are first needed.

In: what the plain tables of modules hold, as the walk writes it down. Out: the same without what the library has filled
in by itself. Pillow imports the plugins for its formats when an image is first opened or saved, and each puts names
and endings into tables. Law: what anybody else has put into such a table stays: a format counts as one of the library
if all functions that read and write it are its own.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Final

from nectar.keys.expansion import WalkContext, joined
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES

_HOME: Final = "PIL.Image"
_NAMES: Final = ("ID", "MIME", "EXTENSION")  # by format, or to it
_FUNCTIONS: Final = ("OPEN", "SAVE", "SAVE_ALL")  # of formats
_CODECS: Final = ("DECODERS", "ENCODERS")
_TABLES: Final = tuple(f"{_HOME}.{name}=" for name in (*_NAMES, *_FUNCTIONS, *_CODECS))


def without_plugins(written: list[str], walk: WalkContext) -> list[str]:
    """Plain values of modules, as "module.NAME=bytes", without what plugins fill if only the rest is asked for."""
    home = sys.modules.get(_HOME)
    if home is None or not any(each.startswith(f"{_HOME}.") for each in written):
        return written
    walk.observe(HOLDS_CACHES)
    if WITHOUT_CACHES not in walk.observed:
        return written
    return [*(each for each in written if not each.startswith(_TABLES)), f"{_HOME}={_rest_of(home).hex()}"]


def _rest_of(home: types.ModuleType) -> bytes:
    """What lies in the tables of Pillow and does not belong to a format of its own."""
    tables = [vars(home).get(name) for name in _FUNCTIONS]
    own = {each for each in _formats(tables) if all(_is_own(table, each) for table in tables)}
    names, types_of, formats = (vars(home).get(name) for name in _NAMES)
    rest = [str(each) for each in [*(names or ()), *sorted(_formats(tables))] if each not in own]
    codecs = [vars(home).get(name) for name in _CODECS]
    rest += [each for table in codecs for each in sorted(table or ()) if not _is_own(table, each)]
    rest += [f"{each} {found}" for each, found in sorted((types_of or {}).items()) if each not in own]
    rest += [f"{ending} {each}" for ending, each in sorted((formats or {}).items()) if each not in own]
    return joined(*rest)


def _formats(tables: list[Any]) -> set[str]:
    return {each for table in tables for each in table or ()}


def _is_own(table: Any, name: str) -> bool:
    """Whether what reads or writes a format, if anything does, is of the library."""
    found = (table or {}).get(name, ())
    functions = [each for each in (found if isinstance(found, tuple) else (found,)) if each is not None]
    return all(str(getattr(each, "__module__", "")).partition(".")[0] == _HOME.partition(".")[0] for each in functions)
