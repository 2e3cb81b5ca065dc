"""Settings: what people can choose, typed, from four places.

A keyword wins over the environment (NECTAR_BUDGET=20GB), the environment over `[tool.nectar]` in pyproject.toml or over
nectar.toml (the nearest above the working folder), and that over the defaults here. A name nobody knows is an error
that says which ones there are. Law: a file counts only if nobody but the user or root could have written it; and since
it may have come with a repository, what leads elsewhere or weakens anything needs the consent of the user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from nectar.errors import SettingError
from nectar.quantities import parse_duration, parse_size
from nectar.trust.files import read_known
from nectar.trust.places import distrust
from nectar.trust.secrets import logger

_log: Final = logger("nectar")


@dataclass(frozen=True, slots=True)
class Settings:
    """What people can choose.

    home: folder of the catalog and, unless store says otherwise, of the results. store: path or URL of the results.
    budget: bytes all results may take. most_files, most_age: the same for files and for seconds since last use.
    reserve: bytes of the disk that stay free. policy: which results go first. verify: "before" looks at every byte
    before its first use; "length" looks at lengths and ends when a result is opened, and at every byte in the
    background. inline: results up to so many bytes lie in the catalog itself. protect: seconds a new result is spared.
    job_log: how many runs are remembered. read_only: nothing is written. off: everything runs as without Nectar.
    refresh: everything is computed anew, and kept. identity: files are known by where they lie and when they were
    changed ("origin"), or by their bytes ("content"). shared: folders that are the same on every machine. linger:
    seconds the end of a process waits for results that are still being written. patience: seconds that a program waits
    for one answer of the catalog, and four times that in all. exact_floats: sums of floats are never
    merged from parts, because their last bits would depend on how a stream was cut. overhead: the share of a program's
    time that Nectar may take for itself, beyond overhead_floor, which is seconds for each process.
    """

    home: Path
    store: str = ""
    budget: int = 20 * 10**9
    most_files: int = 0
    most_age: float = 0.0
    reserve: int = 2 * 10**9
    policy: str = "cost-benefit"
    verify: Literal["length", "before"] = "before"
    inline: int = 4096
    protect: float = 600.0
    job_log: int = 10_000
    read_only: bool = False
    off: bool = False
    refresh: bool = False
    identity: Literal["origin", "content"] = "origin"
    shared: tuple[str, ...] = ()
    linger: float = 30.0
    patience: float = 0.05
    exact_floats: bool = False
    overhead: float = 0.02
    overhead_floor: float = 0.05


def _share(text: str | float | None) -> float:
    if text is None or text == "unlimited":  # None: how JSON has it
        return inf
    share = float(text.removesuffix("%")) / 100 if isinstance(text, str) and text.endswith("%") else float(text)
    if not share >= 0.0:
        raise SettingError(f"{text!r} is no share of a time: write 2%, or unlimited")
    return share


def _flag(text: str | bool) -> bool:
    if isinstance(text, bool):
        return text
    if not isinstance(text, str):
        raise SettingError(f"{text!r} is neither yes nor no: write true or false")
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise SettingError(f"{text!r} is neither yes nor no: write 1 or 0")


def _choice(*choices: str) -> Callable[[str], str]:
    def choose(text: str) -> str:
        if text not in choices:
            raise SettingError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return choose


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "home": lambda text: Path(text).expanduser(),
    "store": str,
    "budget": parse_size,
    "most_files": int,
    "most_age": parse_duration,
    "reserve": parse_size,
    "policy": str,
    "verify": _choice("length", "before"),
    "inline": parse_size,
    "protect": parse_duration,
    "job_log": int,
    "read_only": _flag,
    "off": _flag,
    "refresh": _flag,
    "identity": _choice("origin", "content"),
    "shared": lambda paths: tuple(paths.split(os.pathsep) if isinstance(paths, str) else map(str, paths)),
    "linger": parse_duration,
    "patience": parse_duration,
    "exact_floats": _flag,
    "overhead": _share,
    "overhead_floor": parse_duration,
}
# What a file may choose by itself. Everything else could lead to the results of others, or to less looking, and takes
# effect from a file only with the consent of the user.
_FREE: Final = frozenset({
    "budget", "most_files", "most_age", "reserve", "policy", "inline", "protect", "job_log", "read_only", "off",
    "refresh", "identity", "linger", "exact_floats", "overhead", "overhead_floor",
})  # fmt: skip
_MOST_BYTES: Final = 1 << 62  # and files, and runs: what the catalog can hold
_MOST_SECONDS: Final = 1e9  # thirty years
_FILES: Final = ("nectar.toml", "pyproject.toml")
_LONGEST: Final = 1 << 18  # bytes of a settings file
_MOST_NAMES: Final = 100  # that dots join to one key: the time to parse it grows with their square
_LONG_KEY: Final = rb"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % _MOST_NAMES
_TOOL: Final = rb"""(?m)^[ \t]*\[?[ \t]*["']?tool["']?[ \t]*[\]=]"""  # the table that has ours in it
_told: Final[set[str]] = set()  # once for each process


class SettingsFile(NamedTuple):
    """The file whose settings count, and what it says."""

    path: Path
    values: Mapping[str, Any]

    @property
    def needing_consent(self) -> dict[str, Any]:
        """What it asks for that counts only if the user has consented to it."""
        return {name: value for name, value in self.values.items() if name in _PARSERS and name not in _FREE}


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force."""
    chosen_by_user = _from_environment(os.environ if environment is None else environment)
    overrides = dict(overrides or {})
    file = settings_file(_working_folder() if folder is None else folder)
    chosen: dict[str, Any] = {}
    for source, values in (
        ("settings file", {} if file is None else _consented(file, chosen_by_user.keys() | overrides.keys())),
        ("environment", chosen_by_user),
        ("keywords", overrides),
    ):
        for name, value in values.items():
            chosen[name] = _parse(name, value, source)
    if "home" not in chosen:
        chosen["home"] = _default_home()
    return Settings(**chosen)


def _parse(name: str, value: Any, source: str) -> Any:
    parser = _PARSERS.get(name)
    if parser is None:
        known = ", ".join(field.name for field in fields(Settings))
        raise SettingError(f"there is no setting {name!r} (in the {source}); there are: {known}")
    try:
        return _bounded(parser(value), name)
    except SettingError as error:
        raise SettingError(f"setting {name} (in the {source}): {error}") from error
    # RuntimeError: nobody knows what ~ stands for
    except (TypeError, ValueError, RuntimeError, AttributeError, OverflowError) as error:
        shown = repr(value)[:80]
        raise SettingError(f"setting {name} (in the {source}) has a value that means nothing: {shown}") from error


def _bounded(value: Any, name: str) -> Any:
    """The value, which is no number that clocks, waits and catalogs cannot take."""
    most = _MOST_SECONDS if isinstance(value, float) else _MOST_BYTES
    if isinstance(value, int | float) and not 0 <= value <= most and (name, value) != ("overhead", inf):
        raise SettingError(f"it must lie between 0 and {most:g}")
    return value


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[key] for name in _PARSERS if (key := f"NECTAR_{name.upper()}") in environment}


def _working_folder() -> Path | None:
    """The folder in which this process works; None if somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def settings_file(path: Path | None) -> SettingsFile | None:
    """The file that counts in a folder, or this file: the nearest above that has settings and is the user's own.

    A file that others could have written, or put there, is passed by.
    """
    if path is None:
        return None
    path = path.absolute()
    if os.path.isfile(path):
        candidates = [path]
    else:
        candidates = [place / name for place in (path, *path.parents) for name in _FILES]
    for each in candidates:
        found = _content(each)
        if found is None:
            continue
        content, used = found
        if reason := distrust(each, used=used):  # asked before anything of it is parsed
            _tell(f"the settings in {each} do not count: {reason}")
        elif values := _values(each, content):
            return SettingsFile(each, values)
    return None


def _consented(file: SettingsFile, chosen: Set[str]) -> dict[str, Any]:
    """What a file may choose, and what the user has consented to. chosen: what other places choose in any case."""
    asked = file.needing_consent
    if asked and not _agreed(file.path, asked):
        withheld = [name for name in asked if name not in chosen]
        if withheld:
            _tell(
                f"{file.path} asks for {', '.join(withheld)}, which does not count without your consent; "
                f"`nectar trust {file.path}` gives it"
            )
        return {name: value for name, value in file.values.items() if name not in asked}
    return dict(file.values)


def _agreed(path: Path, asked: Mapping[str, Any]) -> bool:
    from nectar.trust.consent import Asked  # most files ask for nothing that needs it

    return Asked(path, asked).agreed


def _tell(message: str) -> None:
    if message not in _told:
        _told.add(message)
        _log.warning("%s", message)


def _content(path: Path) -> tuple[bytes, os.stat_result] | None:
    """The text of a file that may have settings, and what was opened; None if there is none, or it says nothing."""
    try:
        content, used = read_known(path, _LONGEST)
    except OSError:
        return None  # there is none, or it is none: a folder, a pipe
    if path.name == "pyproject.toml" and not _names_us(content):
        return None
    return (content, used) if content.strip() else None


def _names_us(content: bytes) -> bool:
    """Whether a project names our table, in one of the ways that TOML has. Parsing takes milliseconds, this none."""
    if any(escape in content for escape in (b"\\u", b"\\U", b"\\x")) or re.search(_TOOL, content):
        return True
    return any(b"nectar" in line.partition(b"tool")[2] for line in content.splitlines())


def _values(path: Path, content: bytes) -> dict[str, Any]:
    """The settings that a file of the user has. Raises SettingError if it is ours and means nothing."""
    try:
        if re.search(_LONG_KEY, content):
            raise ValueError(f"a key has more than {_MOST_NAMES} names")
        import tomllib  # most people have no such file

        found: Any = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        if path.name == "pyproject.toml":
            return {}
        raise SettingError(f"{path} cannot be read: {error}") from error
    if path.name == "pyproject.toml":
        for name in ("tool", "nectar"):
            found = found.get(name) if isinstance(found, dict) else None
    return {name.replace("-", "_"): value for name, value in found.items()} if isinstance(found, dict) else {}


def _default_home() -> Path:
    from platformdirs import user_cache_path

    with suppress(RuntimeError):
        home = user_cache_path("nectar", appauthor=False)
        if home.is_absolute():  # otherwise it would be whatever lies in the folder where a program runs
            return home
    raise SettingError("this user has no folder of their own, and so no home: name one with NECTAR_HOME")
