"""Installed distributions: which one a file belongs to, and whether the file is as it was installed.

In: the path of a file. Out: the Origin of the distribution that lists it. Read straight from RECORD files: the general
reader of package metadata takes a hundred times as long. What is read is remembered until the directory changes.
"""

# Plain os.path, because pathlib takes several times longer and this runs at every first fingerprint.

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Final

import blake3

from nectar.model.origin import APPLICATION, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

NATIVE_SUFFIXES: Final = tuple(EXTENSION_SUFFIXES)
_HASHED_UP_TO: Final = 8 << 20  # larger native files are compared by size and time only: hashing them takes too long
_digests: dict[str, tuple[tuple[int, int, int, int], bytes]] = {}


def digest_of_file(path: str) -> bytes:
    """BLAKE3 of a file, read again only when it has changed."""
    stat = os.stat(path)
    state = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    known = _digests.get(path)
    if known is None or known[0] != state:
        known = _digests[path] = (state, blake3.blake3().update_mmap(path).digest())
    return known[1]


class _Distribution:
    """One .dist-info or .egg-info of a directory on sys.path."""

    __slots__ = ("_identity", "_record", "directory", "name", "version", "written")

    def __init__(self, directory: str, entry: str) -> None:
        self.directory = os.path.join(directory, entry)
        stem = re.sub(r"(-py\d[\d.]*)?\.(dist|egg)-info$", "", entry)
        name, _, version = stem.rpartition("-")
        self.name = _canonical(name or stem)
        self.version = version if name else ""
        self.written = (0, 0)
        self._record: bytes | None = None
        self._identity: str | None = None

    @property
    def record(self) -> bytes:
        """RECORD as it is on disk, with a line end in front; empty where there is none."""
        if self._record is None:
            path = os.path.join(self.directory, "RECORD")
            self._record = _read(path)
            if self._record:
                self._record = b"\n" + self._record
                stat = os.stat(path)
                self.written = (stat.st_mtime_ns, max(stat.st_mtime_ns, stat.st_ctime_ns))
        return self._record

    def forget_record(self) -> None:
        """Frees the text of RECORD; it is read again when needed."""
        self._record = None

    def line(self, path: str) -> list[str] | None:
        """Hash and size RECORD gives for a file, or None if the file is not listed."""
        start = self.record.find(b"\n" + path.encode() + b",")
        if start < 0:
            return None
        end = self.record.find(b"\n", start + 1)
        fields = self.record[start + 1 : end if end >= 0 else None].decode().strip().split(",")
        return fields[-2:]

    def has_top(self, top: str) -> bool:
        """Whether anything of the top-level package or module is listed."""
        found = b"\n" + top.encode() + b"/" in self.record or b"\n" + top.encode() + b"." in self.record
        if not found:
            self.forget_record()
        return found

    @property
    def editable(self) -> bool:
        """Whether the distribution is worked on in place."""
        return b'"editable":true' in _read(os.path.join(self.directory, "direct_url.json")).replace(b" ", b"")

    @property
    def identity(self) -> str:
        """The version, with a digest of the listed files where the version alone does not tell the code.

        What is installed from a directory, a file or a repository does not get a new version with every change.
        """
        if self._identity is None:
            self._identity = self.version
            if _read(os.path.join(self.directory, "direct_url.json")):
                listed = [line for line in self.record.splitlines() if _is_code(line)]
                self._identity += "@" + blake3.blake3(b"\n".join(sorted(listed))).hexdigest()
        return self._identity


def _is_code(line: bytes) -> bool:
    elsewhere = line.startswith((b"..", b"/"))  # scripts, which name the environment they are installed in
    return bool(line) and not elsewhere and b".dist-info/" not in line and b"__pycache__" not in line


class _Directory:
    """What is installed in one directory of sys.path, as of its last change."""

    __slots__ = ("_all_owners", "_owners", "changed", "distributions", "eggs_count", "path")

    def __init__(self, path: str, changed: int) -> None:
        self.path = path
        self.changed = changed
        # in a source checkout an egg-info says nothing about the state of the files beside it
        self.eggs_count = os.path.basename(os.path.dirname(path)) in ("site-packages", "dist-packages")
        self.distributions: dict[str, list[_Distribution]] = {}
        self._owners: dict[str, list[_Distribution]] = {}
        self._all_owners: dict[str, list[_Distribution]] = {}
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        for name in names:
            found = _Distribution(path, name)
            self.distributions.setdefault(found.name, []).append(found)

    def owners(self, top: str) -> list[_Distribution]:
        """The distributions of the first name found to list anything under a top-level name; likely names first."""
        known = self._owners.get(top)
        if known is None:
            known = self._owners[top] = next(filter(None, self._search(top)), [])
        return known

    def all_owners(self, top: str) -> list[_Distribution]:
        """Every distribution that lists anything under a top-level name."""
        known = self._all_owners.get(top)
        if known is None:
            known = self._all_owners[top] = [found for same_name in self._search(top) for found in same_name]
        return known

    def _search(self, top: str) -> Iterator[list[_Distribution]]:
        alike = _canonical(top).strip("-")

        def unlikeliness(name: str) -> tuple[bool, bool, str]:
            return name != alike, alike not in name and name not in alike, name

        for name in sorted(self.distributions, key=unlikeliness):
            yield [found for found in self.distributions[name] if found.has_top(top)]


_directories: dict[str, _Directory | None] = {}


def distribution_of(path: str) -> Origin | None:
    """The distribution of a file; APPLICATION if it lies loose beside distributions; None if it lies elsewhere."""
    for base in _bases(path):
        directory = _directory(base)
        if directory is None or not (directory.distributions or directory.eggs_count):
            continue
        relative = path[len(base) :].replace(os.sep, "/")
        return _listed(directory, relative, path) or (APPLICATION if directory.eggs_count else None)
    return None


def _bases(path: str) -> list[str]:
    return [base for base in _import_directories(tuple(sys.path)) if path.startswith(base)]


@lru_cache(maxsize=4)
def _import_directories(entries: tuple[object, ...]) -> list[str]:
    named = [entry for entry in entries if type(entry) is str and entry]
    bases = {os.path.join(entry, "") for entry in (*named, *map(os.path.realpath, named))}
    return sorted(bases, key=len, reverse=True)


def _directory(base: str) -> _Directory | None:
    try:
        changed = os.stat(base).st_mtime_ns
        known = _directories.get(base)
        if known is None or known.changed != changed:
            known = _directories[base] = _Directory(base, changed)
    except OSError:  # a zip file, or gone
        return None
    return known


def _listed(directory: _Directory, relative: str, path: str) -> Origin | None:
    top = relative.partition("/")[0].partition(".")[0]
    candidates = directory.owners(top)
    listed = [found for found in candidates if found.line(relative) is not None]
    if not listed:  # a namespace package spans distributions
        listed = [found for found in directory.all_owners(top) if found.line(relative) is not None]
    unchanged = [found for found in listed if not found.editable and _is_as_installed(found, relative, path)]
    if unchanged:
        # the remains of a broken upgrade may list the same file: both versions then name it
        version = "|".join(sorted(found.identity for found in unchanged))
        return Origin("distribution", unchanged[0].name, version, dotted_name(relative))
    if not listed and directory.eggs_count:
        return _without_record(directory, top, relative, path)
    return None


def _is_as_installed(found: _Distribution, relative: str, path: str) -> bool:
    """Whether a listed file is still the one that was installed. Hashed only if it is newer than its RECORD."""
    algorithm, _, expected = (found.line(relative) or ["", ""])[0].partition("=")
    size = (found.line(relative) or ["", ""])[1]
    try:
        stat = os.stat(path)
        if not expected or not size.isdecimal() or stat.st_size != int(size):
            return False
        if path.endswith(NATIVE_SUFFIXES) and stat.st_size > _HASHED_UP_TO:
            return stat.st_mtime_ns <= found.written[0] or _has_hash(path, algorithm, expected)
        newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
        return newest <= found.written[1] or _has_hash(path, algorithm, expected)
    except OSError:
        return False


def _has_hash(path: str, algorithm: str, expected: str) -> bool:
    import base64
    import hashlib

    with open(path, "rb") as file:
        try:
            digest = hashlib.file_digest(file, algorithm).digest()
        except ValueError:  # an algorithm this Python does not have
            return False
    return base64.urlsafe_b64encode(digest).rstrip(b"=") == expected.encode().rstrip(b"=")


def _without_record(directory: _Directory, top: str, relative: str, path: str) -> Origin | None:
    """Packages of the operating system often have no RECORD: what is known is a version, and the file itself."""
    for found in directory.distributions.get(_canonical(top), ()):
        if found.record or not found.version:
            continue
        version = f"{found.version}#{digest_of_file(path).hex()}"
        return Origin("distribution", found.name, version, dotted_name(relative))
    return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def dotted_name(relative: str) -> str:
    """The module a file holds, by its path below a directory of sys.path."""
    folder, _, file = relative.replace(os.sep, "/").rpartition("/")
    name = file.partition(".")[0]
    parts = [part for part in folder.split("/") if part]
    return ".".join(parts if name == "__init__" else [*parts, name])


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
