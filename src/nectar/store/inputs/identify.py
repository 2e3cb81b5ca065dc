"""Which bytes are these? The identities of the files and URLs that a program reads.

In: paths and URLs. Out: an Identity for each, whose names stand for its bytes. A file that has been quiet is known by
what its system says of it, and no byte is read; a file that was changed a moment ago may be changed again without
showing it, so it is read, and known by its content; if that takes longer than looking may take, it has no identity yet.
Law: two contents never share a name; what changed between two looks is found, whatever was done to make it look
unchanged; a file that grows, or changes all the time, holds nobody up.

A file that was once known by its content stays known by it: the hash is remembered under the file's stamp, at first
provisionally, and for certain once it has been read while it was quiet.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from nectar.clock import Clock
from nectar.errors import InputFailure, MissingInputError, UnreadInputError
from nectar.keys.patience import allowance
from nectar.model.entry import Content
from nectar.store.inputs import failures
from nectar.store.inputs.address import Address, address_of
from nectar.store.inputs.identity import Identity, Reading, Remembered, RememberedHere, Seen, Trust
from nectar.store.inputs.local import LocalInputs
from nectar.store.inputs.mounts import Mounts, SystemMounts
from nectar.threads import each

if TYPE_CHECKING:  # most inputs are files of this machine, and have not grown
    from nectar.overhead.allowance import Allowance
    from nectar.store.inputs.growth import Grown, Growth
    from nectar.store.inputs.remote import RemoteInputs
    from nectar.store.inputs.restless import Restless

__all__ = ["Content", "Identity", "Inputs", "Remembered", "RememberedHere"]

# Threads help those who wait for a disk, a network or a large file, and hinder others: they are used once it has taken
# longer than this to take the files one by one.
_PATIENCE: Final = 3e-3
_PATIENCE_PER_FILE: Final = 1e-4
_THREADS: Final = 16  # most of them wait
_SHARE: Final = 64  # files that a thread takes at once at most: one by one, handing over costs more than a small file

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Inputs:
    """Identifies inputs.

    remembered: contents known from before. identity: "origin" reads only what was changed a moment ago; "content" reads
    every file once, and so finds copies and moved files too. host: of this machine, by default its name. shared:
    folders that are the same on all machines that have them. guard: seconds for which a file must have been quiet.
    storage_options: for fsspec.
    """

    def __init__(
        self,
        remembered: Remembered,
        clock: Clock,
        *,
        identity: Literal["origin", "content"] = "origin",
        host: str | None = None,
        shared: Sequence[str] = (),
        guard: float = 2.0,
        storage_options: Mapping[str, Any] | None = None,
        mounts: Mounts | None = None,
    ) -> None:
        self._remembered, self._clock, self._by_content = remembered, clock, identity == "content"
        host = _host() if host is None else host
        self._local = LocalInputs(clock, host, shared, guard, mounts or SystemMounts())
        self._seen_to_change: Restless | None = None
        self._guard, self._options = guard, storage_options or {}
        self._behind_urls: RemoteInputs | None = None
        self._known_to_grow: Growth | None = None
        # What opens a URL whose credentials its identity leaves out; None if several do, and may open different bytes.
        self._given: dict[str, Address | None] = {}

    @property
    def _remote(self) -> RemoteInputs:
        if self._behind_urls is None:
            from nectar.store.inputs.remote import RemoteInputs

            self._behind_urls = RemoteInputs(self._clock, self._guard, self._options)
        return self._behind_urls

    @property
    def _restless(self) -> Restless:
        if self._seen_to_change is None:
            from nectar.store.inputs.restless import Restless

            self._seen_to_change = Restless(self._clock)
        return self._seen_to_change

    @property
    def _growth(self) -> Growth:
        if self._known_to_grow is None:
            from nectar.store.inputs.growth import Growth

            self._known_to_grow = Growth(self._remembered, self._local)
        return self._known_to_grow

    def identify(self, urls: Iterable[str | os.PathLike[str]]) -> list[Identity]:
        """The identity of each, in the same order.

        Raises:
            MissingInputError: if there is no such file.
            UnreadInputError: if it has to be read, and there is no time for that, or it keeps changing.
            InputFailure: if it cannot be read.
        """
        addresses = [self._address(url) for url in urls]
        distinct = list(dict.fromkeys(addresses))
        found = self._identified(distinct)
        if len(distinct) == len(addresses):
            return found
        by_address = dict(zip(distinct, found, strict=True))
        return [by_address[address] for address in addresses]

    def changed(self, identities: Iterable[Identity]) -> list[str]:
        """For each input that is not, or may not have been all the time, what it was: a sentence that says so."""
        before, now = list(identities), self._clock.now()
        local = all("://" not in identity.url for identity in before)
        seen = _each(before, lambda one: _or_failure(lambda: self._look(self._address_again(one), now)), local)
        texts = [_difference(*pair) for pair in zip(before, seen, strict=True)]
        doubtful = [at for at, text in enumerate(texts) if text is None and before[at].origin is None]
        read = [before[at] for at in doubtful]
        readings = _each(read, lambda one: _or_failure(lambda: self._read_again(one)), local)
        self._remember([reading for reading in readings if isinstance(reading, Reading)], {})
        for at, reading in zip(doubtful, readings, strict=True):
            texts[at] = _difference_of_content(before[at], reading)
        for at, text in enumerate(texts):
            if text is not None:
                self._restless.note(before[at].url)
        return [text for text in texts if text is not None]

    def are_older(self, identities: Iterable[Identity], moment: float) -> bool:
        """Whether none of these was touched since a moment in the past, which its system would have noted.

        The folders that lead to a file count: it may have been put where another was.
        """
        return all("://" not in one.url and self._local.is_older(one.url, moment) for one in identities)

    def watch(self, identities: Iterable[Identity]) -> None:
        """These files are known again when they have grown.

        One that has grown before is read, so that next time what it holds now can be proven to stand in it still.
        """
        self._growth.watch([one for one in identities if "://" not in one.url and one.size is not None])

    def grown(self, identities: Sequence[Identity], quoted: bool) -> list[tuple[Grown, ...]]:
        """For each file the stretches it grew by, as far as they are proven; none if it is not known to have grown.

        Each but the last ends with a line. quoted: lines may end within double quotes, and are none then.
        """
        return self._growth.grown(identities, quoted)

    def _address(self, url: str | os.PathLike[str]) -> Address:
        address = address_of(url)
        if not address.local:
            alone = address.plain or self._given.get(address.url, address) == address
            self._given[address.url] = address if alone else None
        return address

    def _address_again(self, identity: Identity) -> Address:
        if identity.url not in self._given:
            return address_of(identity.url)
        address = self._given[identity.url]
        if address is None:
            raise InputFailure(f"{identity.url} was opened with several credentials, and they cannot be told apart")
        return address

    def _identified(self, addresses: Sequence[Address]) -> list[Identity]:
        now = self._clock.now()  # before any look: what is quiet by then stays so while it is looked at
        local = all(address.local for address in addresses)
        seen = _each(addresses, lambda address: self._look(address, now), local)
        known = self._remembered.known([one.stamp for one in seen if one.trust is not Trust.NEVER])
        unread = [at for at, one in enumerate(seen) if self._must_read(one, known.get(one.stamp))]
        limits = self._limits(seen, unread, known)
        unread = list(limits)
        read = _each(unread, lambda at: self._read(addresses[at], limits[at]), local)
        readings = dict(zip(unread, read, strict=True))
        self._remember(readings.values(), known)
        return [
            self._identity(*each, readings.get(at), known) for at, each in enumerate(zip(addresses, seen, strict=True))
        ]

    def _identity(
        self, address: Address, seen: Seen, reading: Reading | None, known: Mapping[bytes, Content]
    ) -> Identity:
        content = known.get(seen.stamp)
        if reading is not None:
            seen, content = reading.seen, reading.content
        elif content is not None and not content.certain:
            content = None
        if content is None:
            return seen.identified(None)
        return seen.identified(content.digest, exposed=self._is_exposed(address))

    def _is_exposed(self, address: Address) -> bool:
        return self._local.is_exposed(address.given) if address.local else self._remote.is_exposed(address)

    def _must_read(self, seen: Seen, known: Content | None) -> bool:
        if seen.trust is not Trust.NOW:
            return True
        return self._by_content if known is None else not known.certain

    def _remember(self, readings: Iterable[Reading], known: Mapping[bytes, Content]) -> None:
        contents = {one.seen.stamp: one.content for one in readings if one.seen.trust is not Trust.NEVER}
        new = {stamp: content for stamp, content in contents.items() if not _is_known(content, known.get(stamp))}
        if new:
            self._remembered.remember(new)

    def _look(self, address: Address, now: float) -> Seen:
        return self._local.look(address.given, now) if address.local else self._remote.look(address, now)

    def _limits(
        self, seen: Sequence[Seen], unread: Sequence[int], known: Mapping[bytes, Content]
    ) -> dict[int, Allowance | None]:
        """What reading each of these files may take; those are left out that are known well enough without.

        Raises UnreadInputError if one has to be read, and there is no time for that. Nothing has been read by then.
        """
        if not unread:
            return {}
        within = allowance()
        must = [at for at in unread if seen[at].trust is not Trust.NOW]
        for at in must:
            if self._restless.is_left_alone(seen[at].url, seen[at].size):
                raise failures.restless(seen[at].url)
        if within is None:
            return dict.fromkeys(unread)
        size = sum(seen[at].size or 0 for at in must)
        if must and not within.grants(size, len(must)):
            raise failures.too_large(seen[max(must, key=lambda at: seen[at].size or 0)].url, len(must) > 1)
        limits: dict[int, Allowance | None] = dict.fromkeys(must, within)
        for at in unread:
            if at in limits:
                continue
            if self._by_content:  # whoever wants that has every file read once
                limits[at] = None
            elif within.grants(size + (seen[at].size or 0), len(limits) + 1):  # else it is known by its origin
                size += seen[at].size or 0
                limits[at] = within
        return limits

    def _read(self, address: Address, limit: Allowance | None) -> Reading:
        try:
            return self._local.read(address.given, limit) if address.local else self._remote.read(address, limit)
        except UnreadInputError:
            self._restless.note_at_once(address.given if address.local else address.url)
            raise

    def _read_again(self, identity: Identity) -> Reading:
        """The content of a file that was the same a moment ago: it took little time to read."""
        address = self._address_again(identity)
        return self._local.read(address.given, most=identity.size) if address.local else self._remote.read(address)


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _each(items: Sequence[_In], function: Callable[[_In], _Out], local: bool) -> list[_Out]:
    """What the function gives for each, in threads where that is faster."""
    if not local:
        return _in_threads(function, items)
    done: list[_Out] = []
    begin = time.perf_counter()
    for item in items:
        done.append(function(item))
        if time.perf_counter() - begin > _PATIENCE + _PATIENCE_PER_FILE * len(done):
            break
    return done if len(done) == len(items) else done + _in_threads(function, items[len(done) :])


def _in_threads(function: Callable[[_In], _Out], items: Sequence[_In]) -> list[_Out]:
    if len(items) < 2:
        return [function(item) for item in items]
    share = max(1, min(_SHARE, len(items) // (4 * _THREADS)))
    shares = [items[at : at + share] for at in range(0, len(items), share)]
    done = each(lambda some: [function(item) for item in some], shares, _THREADS, "nectar-inputs")
    return [out for some in done for out in some]


def _or_failure(function: Callable[[], _Out]) -> _Out | InputFailure:
    try:
        return function()
    except InputFailure as failure:
        return failure


def _is_known(content: Content, known: Content | None) -> bool:
    return known is not None and known.digest == content.digest and (known.certain or not content.certain)


def _difference(before: Identity, now: Seen | InputFailure) -> str | None:
    if isinstance(now, MissingInputError):
        return f"{before.url} was deleted or moved away while it was read"
    if isinstance(now, InputFailure):
        return f"{before.url} could no longer be read after it was read: {now.args[-1]}"
    if now.stamp == before.stamp:
        return None
    if None not in (now.size, before.size) and now.size != before.size:
        return f"{before.url} was rewritten while it was read: it had {before.size} bytes and has {now.size}"
    return f"{before.url} was rewritten, replaced or touched while it was read"


def _difference_of_content(before: Identity, now: Reading | InputFailure) -> str | None:
    if isinstance(now, InputFailure) or now.seen.stamp != before.stamp:
        return _difference(before, now if isinstance(now, InputFailure) else now.seen)
    return None if now.digest == before.content else f"{before.url} was rewritten while it was read"
