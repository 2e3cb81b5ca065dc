"""Store: the way in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from nectar.clock import Clock, SystemClock
from nectar.errors import MissingExtraError
from nectar.faults import Reach, nowhere
from nectar.model.entry import Entry
from nectar.store import layout
from nectar.store.commit import Aside, Inline, InPlace, Staging
from nectar.store.files import Files
from nectar.store.local import LocalFiles
from nectar.store.read import Damaged, Gone, Parts, Problem, Result, open_parts, wrong_digests
from nectar.store.remote import RemoteFiles
from nectar.store.remove import Found, find, measure, remove
from nectar.store.verify import OnDamage, Verified, Verifier, unheard


class Store:
    """Results in a folder or behind a URL.

    Args:
        root: A local path, or a URL that fsspec knows. Nothing is created before something is written.
        reach: Hears of each file operation before it happens.
        clock: Tells the time.
        verified: Which results were verified on this machine; by default remembered as long as the store lives.
        on_damage: Hears of damage, whoever finds it: an opening, or the verifier in its own thread.
        background: Whether opened results are verified in the background.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        reach: Reach = nowhere,
        clock: Clock | None = None,
        verified: Verified | None = None,
        on_damage: OnDamage = unheard,
        background: bool = False,
    ) -> None:
        self.root = os.fspath(root)
        self.clock = SystemClock() if clock is None else clock
        self.verified = Verified() if verified is None else verified
        self._files = _files_of(self.root, reach)
        self._on_damage = on_damage
        self._verifier = Verifier(self._verify) if background else None

    def new_location(self, key: bytes) -> str:
        """A location for a key that was never used before."""
        return layout.new_location(key)

    def stage(self, location: str) -> Staging:
        """A result to be written at a location. A context manager: left without `publish`, nothing stays."""
        place = Aside if self._files.renames else InPlace
        return Staging(place(self._files, location))

    def stage_inline(self) -> Staging:
        """A small result to be kept in a row of the index: `publish` gives its bytes."""
        return Staging(Inline())

    def open(self, entry: Entry, *, verify: Literal["length", "before"] = "length") -> Result | Gone | Damaged:
        """The whole result; or Gone; or Damaged, which was reported then.

        Presence, lengths and ends of all parts are always verified. With "before" so is every byte, unless that was
        done on this machine before. Raises StoreFailure if the store itself cannot be read.
        """
        parts = open_parts(self._files, entry)
        if isinstance(parts, Gone):
            return parts
        if isinstance(parts, list):
            return self._damaged(entry, parts)
        if entry.inline is None and entry not in self.verified:
            # What was fetched is in memory: hashing it costs little beside the fetching.
            if verify == "before" or not self._files.renames:
                problems = self._hash(entry, parts)
                if problems:
                    parts.close()
                    return self._damaged(entry, problems)
            elif self._verifier is not None:
                self._verifier.submit(entry)
        return self._result(entry, parts)

    def examine(self, entry: Entry, *, thorough: bool) -> list[Problem]:
        """Everything wrong with an entry; thorough: every byte is read, whatever was verified before."""
        parts = open_parts(self._files, entry)
        if isinstance(parts, Gone):
            return [Problem("missing", layout.MANIFEST, parts.reason)]
        if isinstance(parts, Parts):
            problems = self._hash(entry, parts) if thorough and entry.inline is None else []
            parts.close()
        else:
            problems = parts
        return problems

    def delete(self, location: str) -> int:
        """Nothing of the location is left; bytes freed by this call. Readers that have it open keep it."""
        return remove(self._files, location)

    def locations(self) -> Iterator[Found]:
        """Everything in the store's folders: published, staged, half deleted, and foreign."""
        return find(self._files)

    def size_of(self, location: str) -> Found | None:
        """What lies at a location, or None if nothing does."""
        return measure(self._files, location)

    def free_space(self) -> int | None:
        """Bytes free on the device, None if there is no telling."""
        return self._files.free_space()

    def settle(self) -> None:
        """Everything that waits for verification is verified."""
        if self._verifier is not None:
            self._verifier.drain()

    def close(self) -> None:
        """The background is quiet; results that are open stay open."""
        if self._verifier is not None:
            self._verifier.close()

    def _verify(self, entry: Entry) -> None:
        parts = open_parts(self._files, entry)
        if isinstance(parts, Parts):
            problems = self._hash(entry, parts)
            parts.close()
        else:
            problems = [] if isinstance(parts, Gone) else parts  # evicted meanwhile is no damage
        if problems:
            self._damaged(entry, problems)

    def _hash(self, entry: Entry, parts: Parts) -> list[Problem]:
        problems = wrong_digests(parts)
        if not problems:
            self.verified.add(entry)
        return problems

    def _result(self, entry: Entry, parts: Parts) -> Result:
        if entry.inline is not None:
            return Result(parts, (), "the index", lambda problem: self._on_damage(entry, problem))
        folder = layout.data_folder(entry.location)
        paths = tuple(self._files.show(f"{folder}/{part.name}") for part in parts.manifest.parts)
        return Result(parts, paths, self._files.show(folder), lambda problem: self._on_damage(entry, problem))

    def _damaged(self, entry: Entry, problems: list[Problem]) -> Damaged:
        for problem in problems:
            self._on_damage(entry, problem)
        return Damaged(problems[0].reason, problems[0].part)


def _files_of(root: str, reach: Reach) -> Files:
    scheme, separator, rest = root.partition("://")
    if not separator or scheme in {"file", "local"}:
        return LocalFiles(rest if separator else root, reach)
    try:
        return RemoteFiles(root, reach)
    except ImportError as error:
        raise MissingExtraError("fsspec, or the package for this kind of URL", "remote") from error
