"""Whether a server sees the files that this process sees, under the same names and as they are now.

A server of this machine may be a neighbour, which has the same file system. Otherwise two proofs are wanted. That a
folder is shared: a file with a random content is written to it here, and the server reads it. It is written to
folders that are ours to write to, the temporary one and the store's, never beside the data. That the files of a read
are the same: the server lists them, and names, sizes and times have to be those seen here; once for each state of the
files. Law: what is not shown is not reused.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.connections import Connection, Unreachable
from nectar.dialects.spark.neighbours import is_near, is_neighbour
from nectar.dialects.spark.reads import Listing, Source, read_of
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of

_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_UNFINISHED: Final = (
    "._COPYING_"  # engines of Hadoop leave files out that are called so, and those with a _ or . before
)


def sees(connection: Connection, home: Path) -> bool:
    """Whether the server sees the folder of the store."""
    return is_at_home(connection) or str(home) in _shared_folders(connection, home)


def why_unseen(connection: Connection, source: Source, home: Path) -> str:
    """Why results of a read are not reused, because the server may see other files; empty if it sees the same."""
    if not all(path.startswith(("/", "file:/")) for path in source.paths):
        return f"{source.text}: a path that is not absolute means a folder of the server"
    if is_at_home(connection):
        return ""
    shared = _shared_folders(connection, home)
    if not shared:
        return f"the server at {connection.endpoint} does not see the files of this machine: {_where(home)}"
    for listing in source.listings:
        if not is_near(connection.endpoint) and not any(_on_one_device(listing.root, folder) for folder in shared):
            return (
                f"whether the server at {connection.endpoint} sees {listing.root} is not known: {shared[0]}, "
                "which it sees, is on another device"
            )
        reason = _why_another(connection, listing)
        if reason:
            return reason
    return ""


def why_another_now(connection: Connection, source: Source) -> str:
    """Why the server may have read other files than were seen here; empty if it sees the same, looked at once more."""
    if is_at_home(connection):
        return ""
    reasons = (_why_another(connection, listing, again=True) for listing in source.listings)
    return next(filter(None, reasons), "")


def _where(home: Path) -> str:
    return f"neither {tempfile.gettempdir()} nor {home}, where the store is"


def _on_one_device(path: str, folder: str) -> bool:
    return os.stat(path).st_dev == os.stat(folder).st_dev


def same_files(there: Sequence[str], source: Source) -> bool:
    """Whether files that a server names are those of a read, as far as engines read them."""
    here = {path for listing in source.listings for path in _here(listing)}
    hidden = {
        path
        for listing in source.listings
        for path in listing.files
        if path != listing.root and _is_hidden(os.path.relpath(path, listing.root))
    }
    return here - hidden == {_plain(path) for path in there}


# the same machine


def is_at_home(connection: Connection) -> bool:
    """Whether the server is a process of this machine that sees the files of this one under all their names."""
    try:
        return bool(connection.remembered("at home", lambda: _is_at_home(connection)))
    except Unreachable:  # it is asked again the next time
        return False


def _is_at_home(connection: Connection) -> bool:
    if not is_neighbour(connection.endpoint) or not connection.settings().get("spark.master", "").startswith("local"):
        return False
    try:
        with _written(tempfile.gettempdir()) as (path, _):
            # A path without a scheme may be one of another file system, if the server was set up so.
            found = connection.files(_read("text", path))
    except Unreachable:
        raise
    except (EnvironmentFailure, OSError):
        return False
    return [_plain(each) for each in found] == [path] and found[0].startswith("file:")


# shared folders


def _shared_folders(connection: Connection, home: Path) -> list[str]:
    folders = (tempfile.gettempdir(), str(home))
    try:
        return [
            each for each in folders if connection.remembered(("shared", each), partial(_is_shared, connection, each))
        ]
    except Unreachable:  # it is asked again the next time
        return []


def _is_shared(connection: Connection, folder: str) -> bool:
    try:
        with _written(folder) as (path, content):
            found = connection.rows(_read("text", path))
    except Unreachable:
        raise
    except (EnvironmentFailure, OSError):
        return False
    return bool(found.num_columns) and found.column(0).to_pylist() == [content]


@contextmanager
def _written(folder: str) -> Iterator[tuple[str, str]]:
    """A file with a content that nobody can know, and the content. Afterwards it is gone."""
    content = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="nectar-seen-", dir=folder) as own:
        os.chmod(own, 0o755)  # the server may be another user's; there is nothing to hide from it
        path = os.path.join(own, f"{secrets.token_hex(8)}.txt")
        Path(path).write_text(content, encoding="ascii")
        yield path, content


# files


def _why_another(connection: Connection, listing: Listing, *, again: bool = False) -> str:
    try:
        here = _here(listing)
        compared: set[bytes] = connection.remembered("states of files", set)
        state = digest_of(joined("files", listing.root, repr(sorted(here.items()))))
        if state in compared and not again:
            return ""
        reason = _compared(connection, listing.root, here)
    except (EnvironmentFailure, OSError) as error:
        return f"whether the server at {connection.endpoint} sees {listing.root} cannot be told: {error}"
    if not reason:
        compared.add(state)
    return reason


def _here(listing: Listing) -> dict[str, tuple[int, int]]:
    """Size and milliseconds of each file that is not empty: engines do not list those that are."""
    found = {}
    for path in listing.files:
        status = os.stat(path)
        if status.st_size:
            found[path] = (status.st_size, status.st_mtime_ns // 1_000_000)
    return found


def _compared(connection: Connection, root: str, here: dict[str, tuple[int, int]]) -> str:
    there = _there(connection, root)
    for path in sorted(here.keys() | there.keys()):
        if path not in there and path != root and _is_hidden(os.path.relpath(path, root)):
            continue
        if here.get(path) != there.get(path):
            return f"the server at {connection.endpoint} sees another {path}, or does not see it"
    return ""


def _there(connection: Connection, root: str) -> dict[str, tuple[int, int]]:
    columns = ("path", "length", "modificationTime")
    read = _read("binaryFile", root, recursiveFileLookup="true", nectar=secrets.token_hex(8))
    table = connection.rows(_chosen(read, columns))
    if not table.num_columns:
        return {}
    paths, sizes, times = table.column(0), table.column(1), table.column(2).cast(_MICROSECONDS).cast(pa.int64())
    rows = zip(paths.to_pylist(), sizes.to_pylist(), times.to_pylist(), strict=True)
    return {_plain(path): (size, time // 1000) for path, size, time in rows}


def _plain(path: str) -> str:
    """The path of a local file as this process would write it."""
    for prefix in ("file://", "file:"):
        if path.startswith(prefix):
            return unquote(path[len(prefix) :])
    return path


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) or part.endswith(_UNFINISHED) for part in name.split(os.sep))


# plans


def _read(form: str, path: str, **options: str) -> Any:
    return relations_pb2.Relation(read=read_of(form, path, options))


def _chosen(relation: Any, columns: Sequence[str]) -> Any:
    project = relations_pb2.Project(input=relation)
    for name in columns:
        project.expressions.add().unresolved_attribute.unparsed_identifier = name
    return relations_pb2.Relation(project=project)
