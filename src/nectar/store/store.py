"""Store: the way in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from nectar.clock import Clock, SystemClock
from nectar.errors import MissingExtraError, SettingError
from nectar.faults import Reach, nowhere
from nectar.model.entry import Entry
from nectar.store import layout
from nectar.store.problem import Damaged, Gone, Problem
from nectar.store.verify import OnDamage, Verified, Verifier, unheard
from nectar.trust.files import PRIVATE, Access

if TYPE_CHECKING:
    from nectar.store.commit import Staging
    from nectar.store.files import Files
    from nectar.store.read import Parts, Result
    from nectar.store.remove import Found


class Store:
    """Results in a folder or behind a URL.

    Args:
        root: A local path, or a URL that fsspec knows. Nothing is created before something is written.
        reach: Hears of each file operation before it happens.
        access: Who may use what is written, where files belong to users and groups.
        clock: Tells the time.
        verified: Which results were verified on this machine; by default remembered as long as the store lives.
        on_damage: Hears of damage, whoever finds it: an opening, or the verifier in its own thread.
        background: Whether opened results are verified in the background.
        in_place: Raises StoreFailure if the home of the store was taken away.
        open_until: When others could write to it last. Who had a file open then could still change what is in it.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        reach: Reach = nowhere,
        access: Access = PRIVATE,
        clock: Clock | None = None,
        verified: Verified | None = None,
        on_damage: OnDamage = unheard,
        background: bool = False,
        open_until: float = 0.0,
        in_place: Callable[[], object] = bool,
    ) -> None:
        self.root = os.fspath(root)
        self.clock = SystemClock() if clock is None else clock
        self.verified = Verified() if verified is None else verified
        self._files = _files_of(self.root, reach, access)
        self._in_place = in_place
        self._reach, self._access, self._on_damage, self._open_until = reach, access, on_damage, open_until
        self._damaged_ones: set[str] = set()  # locations, as far as this process has found out
        self._verifier = Verifier(self._verify) if background else None

    def new_location(self, key: bytes) -> str:
        """A location for a key that was never used before."""
        return layout.new_location(key)

    def stage(self, location: str) -> Staging:
        """A result to be written at a location. A context manager: left without `publish`, nothing stays."""
        from nectar.store.commit import Aside, InPlace, Staging

        self._in_place()
        place = Aside if self._files.renames else InPlace
        return Staging(place(self._files, location))

    def stage_inline(self) -> Staging:
        """A small result to be kept in a row of the index: `publish` gives its bytes."""
        from nectar.store.commit import Inline, Staging

        return Staging(Inline())

    def open(
        self, entry: Entry, *, verify: Literal["length", "before"] = "before", in_part: bool = False
    ) -> Result | Gone | Damaged:
        """The whole result; or Gone; or Damaged, which was reported then.

        Presence, lengths and ends of all parts are always verified. With "before" so is every byte before it is used,
        unless that was done on this machine before; in_part: when it is read, and only what is read. Raises
        StoreFailure if the store, or a part, cannot be read now.
        """
        parts = self._parts(entry)
        if isinstance(parts, Gone):
            return parts
        if isinstance(parts, list):
            return self._damaged(entry, parts)
        if entry.inline is not None:
            return self._result(entry, parts)
        known = self.verified.recall(entry, parts.sources, self.clock.now())
        # What was fetched is in memory: hashing it costs little beside the fetching. What others could have changed is
        # read into memory too, and never believed.
        believed = verify == "length" and not (parts.in_memory and self._files.renames)
        later = known == "aged" or (self._files.renames and (in_part or believed))
        if known == "unknown" and not later:
            problems = self._hash(entry, parts)
            if problems:
                parts.close()
                return self._damaged(entry, problems)
        elif known != "sound" and self._verifier is not None:
            self._verifier.submit(entry)
        if believed:
            parts.believe()
        return self._result(entry, parts)

    def for_looking(self) -> Store:
        """The same store for somebody who only looks: nobody hears of damage, and nothing is verified beside it."""
        return Store(self.root, reach=self._reach, access=self._access, clock=self.clock, open_until=self._open_until)

    def is_sound(self, entry: Entry) -> bool:
        """Whether what was read of an entry was right: damage is reported, and all of it read if it was not verified.

        One that was deleted meanwhile was right if it was not found to be damaged before. Raises StoreFailure if there
        is no telling now.
        """
        if entry.location in self._damaged_ones:
            return False
        if entry.inline is not None or not self._files.renames:
            return True  # verified at each opening, and in memory since
        parts = self._parts(entry)
        if isinstance(parts, Gone):
            return True
        if isinstance(parts, list):
            self._damaged(entry, parts)
            return False
        known = self.verified.recall(entry, parts.sources, self.clock.now())
        read = known != "unknown" or any(any(source.sound) for source in parts.sources)
        problems = [] if read else self._hash(entry, parts)
        parts.close()
        if problems:
            self._damaged(entry, problems)
        return not problems

    def examine(self, entry: Entry, *, thorough: bool) -> list[Problem]:
        """Everything wrong with an entry; thorough: every byte is read, whatever was verified before."""
        parts = self._parts(entry)
        if isinstance(parts, Gone):
            return [Problem("missing", layout.MANIFEST, parts.reason)]
        if isinstance(parts, list):
            return parts
        problems = self._hash(entry, parts) if thorough and entry.inline is None else []
        parts.close()
        return problems

    def delete(self, location: str) -> int:
        """Nothing of the location is left; bytes freed by this call. Readers that have it open keep it.

        Nothing lies at what is no location, as a damaged row may have it.
        """
        from nectar.store.remove import remove

        return remove(self._files, location) if layout.is_location(location) else 0

    def locations(self) -> Iterator[Found]:
        """Everything in the store's folders: published, staged, half deleted, and foreign."""
        from nectar.store.remove import find

        return find(self._files)

    def size_of(self, location: str) -> Found | None:
        """What lies at a location, or None if nothing does."""
        from nectar.store.remove import measure

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

    def _parts(self, entry: Entry) -> Parts | Gone | list[Problem]:
        from nectar.store.read import open_parts

        return open_parts(self._files, entry, copied=entry.created < self._open_until)

    def _verify(self, entry: Entry) -> None:
        parts = self._parts(entry)
        if isinstance(parts, Gone):  # evicted meanwhile is no damage
            return
        if isinstance(parts, list):
            problems = parts
        else:
            problems = self._hash(entry, parts, self._is_closing)
            parts.close()
        if problems:
            self._damaged(entry, problems)

    def _is_closing(self) -> bool:
        return self._verifier is not None and self._verifier.closed

    def _hash(self, entry: Entry, parts: Parts, halted: Callable[[], bool] = bool) -> list[Problem]:
        from nectar.store.read import wrong_digests

        try:
            problems = wrong_digests(parts, halted)
        except BaseException:
            parts.close()
            raise
        if all(source.is_sound for source in parts.sources):
            self.verified.add(entry, parts.sources, self.clock.now())
        return problems

    def _result(self, entry: Entry, parts: Parts) -> Result:
        from nectar.store.read import Result

        if entry.inline is not None:
            return Result(parts, (), "the index", partial(self._found, entry))
        folder = layout.data_folder(entry.location)
        named = () if parts.in_memory and self._files.renames else parts.manifest.parts
        paths = tuple(self._files.show(f"{folder}/{part.name}") for part in named)
        return Result(parts, paths, self._files.show(folder), partial(self._found, entry))

    def _damaged(self, entry: Entry, problems: list[Problem]) -> Damaged:
        for problem in problems:
            self._found(entry, problem)
        return Damaged(problems[0].reason, problems[0].part)

    def _found(self, entry: Entry, problem: Problem) -> None:
        self.verified.doubt(entry)
        if entry.location:
            self._damaged_ones.add(entry.location)
        self._on_damage(entry, problem)


def local_root(root: str) -> str | None:
    """The path that a root means; None if it lies behind a URL."""
    scheme, separator, rest = root.partition("://")
    is_chain = "::" in scheme and "/" not in scheme.partition("::")[0]
    if is_chain or (separator and scheme not in {"file", "local"}):
        return None
    if scheme.startswith(("file:", "local:")):
        raise SettingError(f"nobody knows what kind of store {root} is: two slashes are missing; or name a path")
    return rest if separator else root


def _files_of(root: str, reach: Reach, access: Access) -> Files:
    path = local_root(root)
    if path is not None:
        from nectar.store.local import LocalFiles

        return LocalFiles(path, reach, access)
    from nectar.store.remote import RemoteFiles

    try:
        return RemoteFiles(root, reach)
    except ImportError as error:
        raise MissingExtraError("fsspec, or the package for this kind of URL", "remote") from error
    except ValueError as error:
        raise SettingError(f"nobody knows what kind of store {root} is: {error}") from error
