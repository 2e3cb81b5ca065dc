"""Settings: what people can choose, typed, from four places.

A keyword wins over the environment (NECTAR_BUDGET=20GB), the environment over `[tool.nectar]` in pyproject.toml or over
nectar.toml (the nearest above the working folder), and that over the defaults here. A name nobody knows is an error
that says which ones there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any, Final, Literal

from nectar.errors import SettingError
from nectar.quantities import parse_duration, parse_size


@dataclass(frozen=True, slots=True)
class Settings:
    """What people can choose.

    home: folder of the catalog and, unless store says otherwise, of the results. store: path or URL of the results.
    budget: bytes all results may take. most_files, most_age: the same for files and for seconds since last use.
    reserve: bytes of the disk that stay free. policy: which results go first. verify: "length" looks at lengths and
    ends when a result is opened, and at every byte in the background; "before" looks at every byte before the first
    use. inline: results up to so many bytes lie in the catalog itself. protect: seconds a new result is spared.
    job_log: how many runs are remembered. read_only: nothing is written. off: everything runs as without Nectar.
    refresh: everything is computed anew, and kept. identity: files are known by where they lie and when they were
    changed ("origin"), or by their bytes ("content"). shared: folders that are the same on every machine. linger:
    seconds the end of a process waits for results that are still being written. exact_floats: sums of floats are never
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
    verify: Literal["length", "before"] = "length"
    inline: int = 4096
    protect: float = 600.0
    job_log: int = 10_000
    read_only: bool = False
    off: bool = False
    refresh: bool = False
    identity: Literal["origin", "content"] = "origin"
    shared: tuple[str, ...] = ()
    linger: float = 30.0
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
    "exact_floats": _flag,
    "overhead": _share,
    "overhead_floor": parse_duration,
}
_FILES: Final = ("nectar.toml", "pyproject.toml")


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force."""
    environment = os.environ if environment is None else environment
    chosen: dict[str, Any] = {}
    for source, values in (
        ("settings file", _from_files(_working_folder() if folder is None else folder)),
        ("environment", _from_environment(environment)),
        ("keywords", dict(overrides or {})),
    ):
        for name, value in values.items():
            chosen[name] = _parse(name, value, source)
    return replace(Settings(home=_default_home()), **chosen)


def _parse(name: str, value: Any, source: str) -> Any:
    parser = _PARSERS.get(name)
    if parser is None:
        known = ", ".join(field.name for field in fields(Settings))
        raise SettingError(f"there is no setting {name!r} (in the {source}); there are: {known}")
    try:
        return parser(value)
    except SettingError as error:
        raise SettingError(f"setting {name} (in the {source}): {error}") from error
    except (TypeError, ValueError) as error:
        raise SettingError(f"setting {name} (in the {source}) has a value that means nothing: {value!r}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[key] for name in _PARSERS if (key := f"NECTAR_{name.upper()}") in environment}


def _working_folder() -> Path | None:
    """The folder in which this process works; None if somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _from_files(folder: Path | None) -> dict[str, Any]:
    """Settings of the nearest file that has any."""
    if folder is None:
        return {}
    for place in (folder, *folder.parents):
        for name in _FILES:
            path = place / name
            if path.is_file():
                found = _read(path)
                if found:
                    return found
    return {}


def _read(path: Path) -> dict[str, Any]:
    try:
        import tomllib  # most people have no such file

        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if path.name == "pyproject.toml":
            return {}  # not ours to complain about
        raise SettingError(f"{path} cannot be read: {error}") from error
    if path.name == "pyproject.toml":
        content = content.get("tool", {}).get("nectar", {})
    return {name.replace("-", "_"): value for name, value in content.items()}


def _default_home() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("nectar", appauthor=False)
