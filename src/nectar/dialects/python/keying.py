"""From a call to its keys: the fingerprint of the call, and the identities of the files it declares.

A file may be known by its content, by its origin, or both; so a call may have two keys, and both lead to the same
results. New results are kept under the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nectar.keys.call import Call
from nectar.keys.expansion import joined
from nectar.keys.patience import expect_files
from nectar.keys.scheme import digest_of

if TYPE_CHECKING:
    from nectar.dialects.python.declared_inputs import Folder
    from nectar.session import Session
    from nectar.store.inputs.identify import Inputs
    from nectar.store.inputs.identity import Identity


class Keyed(NamedTuple):
    """The keys of a call, and what they stand for."""

    keys: tuple[bytes, ...]
    identities: tuple[Identity, ...] = ()
    listings: tuple[tuple[Folder, tuple[str, ...]], ...] = ()

    @property
    def key(self) -> bytes:
        """Where a new result is kept."""
        return self.keys[0]


def keyed(call: Call, session: Session) -> Keyed:
    """The keys of a call as its inputs are now.

    Raises InputFailure if one of them cannot be identified, UnreadInputError among these if there is no time for it.
    """
    if not call.inputs:
        return Keyed((call.digest,))
    from nectar.dialects.python.declared_inputs import File, Folder, Fresh  # who has one has loaded them

    listings = tuple((value, tuple(value.paths)) for value in call.inputs if isinstance(value, Folder))
    listed = dict(listings)
    paths: list[str] = []
    periods: list[str] = []
    for value in call.inputs:
        if isinstance(value, File):
            paths.append(value.path)
        elif isinstance(value, Folder):
            paths += listed[value]
        elif isinstance(value, Fresh):
            periods.append(f"{value.period!r} {int(session.clock.now() // value.period)}")
    expect_files(len(paths))
    identities = tuple(session.inputs.identify(paths))
    frame = joined(call.digest, *(text for _, found in listings for text in ("folder", *found)), "now", *periods)
    keys = (digest_of(frame + b"".join(names)) for names in _variants(identities))
    return Keyed(tuple(dict.fromkeys(keys)), identities, listings)


def remembered_as(call: Call) -> bytes:
    """What observations are remembered by: calls that declare inputs are seen to do less."""
    return digest_of(joined("declared", call.program)) if call.inputs else call.program


def _variants(identities: Iterable[Identity]) -> list[list[bytes]]:
    """All by their best name, and all by their last: content before origin."""
    names = [identity.names for identity in identities]
    return [[each[0] for each in names], [each[-1] for each in names]]


def changed_inputs(known: Keyed, inputs: Inputs) -> list[str]:
    """What is no longer as it was when the keys were made, a sentence each."""
    told = [
        f"files came to or went from {folder.path}" for folder, paths in known.listings if tuple(folder.paths) != paths
    ]
    return told + inputs.changed(known.identities) if known.identities else told
