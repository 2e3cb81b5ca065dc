"""Reads as they are sent to a server that remembers: Spark looks at the files again if it was told that they changed.

Spark keeps the list of files that it found for a plan, and the content of frames that any session has cached, and
answers equal plans from them. In: a request and what its files hold now. Out: a request whose reads have one option
more, a digest of that, which makes plans over other files other plans. Engines hand the option to readers that do not
know it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nectar.dialects.spark.messages import messages_in, named
from nectar.dialects.spark.reads import FILES, Source
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.store.inputs import failures
from nectar.store.inputs.identify import Identity

OPTION: Final = "nectar.files"


def state_of(source: Source, identities: Sequence[Identity]) -> bytes:
    """A digest of what a read finds: another one whenever a file comes, goes, or is written to.

    Also when everything is afterwards as it was: a server may have looked in between. Raises InputFailure.
    """
    places = [place for listing in source.listings for place in (*listing.files, *listing.folders)]
    # The first name of a file stays its first name as long as nobody writes to it.
    names = [each.names[0] for each in identities]
    return digest_of(joined("state", source.content, source.layout, *names, *map(_stamp, places)))


def _stamp(path: str) -> str:
    with failures.telling(path):
        status = os.stat(path)
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def as_sent(read: Any) -> bytes:
    """What tells one read of a plan from another."""
    return bytes(read.SerializeToString(deterministic=True))


def refreshed(relation: Any, states: Mapping[bytes, bytes]) -> Any:
    """A copy of a relation, each of whose reads holds the state of its files, or something new if that is not known."""
    copy = with_states(relation, states)
    for read in _reads_in(copy):
        if OPTION not in read.data_source.options:
            read.data_source.options[OPTION] = secrets.token_hex(16)
    return copy


def with_states(message: Any, states: Mapping[bytes, bytes]) -> Any:
    """A copy of a message, whose reads hold the state of their files where it is known."""
    copy = type(message)()
    copy.CopyFrom(message)
    put_states(copy, states)
    return copy


def put_states(message: Any, states: Mapping[bytes, bytes]) -> None:
    """The reads of a message hold the state of their files where it is known."""
    for read in _reads_in(message):
        state = states.get(as_sent(read))
        if state is not None:
            read.data_source.options[OPTION] = state.hex()


def reads_in(relation: Any) -> list[bytes]:
    """The reads of files in a relation, as they are told apart."""
    return [as_sent(each) for each in _reads_in(relation)]


def _reads_in(relation: Any) -> list[Any]:
    """Reads of files; a database, or a table format, may not take an option that it does not know."""
    return [each for each in messages_in(relation) if named(each, "Read") and _is_of_files(each)]


def _is_of_files(read: Any) -> bool:
    return read.HasField("data_source") and read.data_source.format.lower() in FILES
