"""Tables of a server's catalog: what a name stands for there, by the definition and the files that the server tells.

In: a name. Out: a Table. Others may alter tables at any time, so that the server is asked for every query. What a
session has once read of a table (where its files lie, which they are, of what format) it remembers as long as it lasts;
to make it forget would make the server forget what other sessions have cached, too. Law: what the server does not tell
is refused, such as where its catalog says that partitions lie; and so are tables that were made, and files that
changed, since the session began.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.connections import Connection
from nectar.dialects.spark.reads import FILES, Source, read_of
from nectar.dialects.spark.sight import same_files
from nectar.dialects.spark.sql.words import quoted
from nectar.errors import EnvironmentFailure, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.store.inputs import failures
from nectar.store.inputs.mounts import OF_THIS_MACHINE, SystemMounts

_KINDS: Final = frozenset({"MANAGED", "EXTERNAL"})
_PASSING: Final = frozenset({"created_time", "last_access", "created_by", "owner", "statistics"})
_HIDDEN: Final = "(redacted)"  # what stands in the place of what may be secret
_GUARD: Final = 2.0  # seconds by which the times of files may be off
_mounts: Final = SystemMounts()


@dataclass(frozen=True, slots=True)
class Table:
    """A table. name: as it is asked for. told: what the server says of it. definition: that, and what its columns are.

    read: of its files. files: those that the session would read.
    """

    name: tuple[str, ...]
    told: bytes
    definition: bytes
    read: Any = field(compare=False)
    files: tuple[str, ...] = field(compare=False)

    def why_other_files(self, source: Source) -> str:
        """Why the session may read a table where it was before, or otherwise than it says; empty if it reads these."""
        if any("=" in os.path.dirname(each) for listing in source.listings for each in listing.names):
            return f"the table {'.'.join(self.name)} lies in folders that may be partitions, which are not followed"
        if same_files(self.files, source):
            return ""
        return f"the server reads the table {'.'.join(self.name)} from other files than its definition says"


def table_of(connection: Connection, name: Sequence[str]) -> Table:
    """What a name stands for now. Raises UserError if that is not known; EnvironmentFailure if the server fails."""
    described = _described(connection, name)
    text = ".".join(name)
    kind, form, location = (str(described.get(key, "")) for key in ("type", "provider", "location"))
    if kind not in _KINDS or described.get("catalog_name") != "spark_catalog":
        raise UserError(f"{text} is neither a view that this session was seen to make, nor a table of the server's own")
    if form.lower() not in FILES:
        raise UserError(f"the table {text} is made of {form or 'something that is not told'}, and not of plain files")
    if described.get("partition_columns") or described.get("partition_provider"):
        raise UserError(f"where the partitions of {text} lie is known to the server only: read its files by their path")
    if _created(described) > connection.began - _GUARD:
        raise UserError(f"the table {text} was made after the session began, and the server may know an older one")
    read = named_read(name)
    if f"filescan {form.lower()} " not in connection.shown(read).lower():
        raise UserError(f"the server does not read the table {text} from files, or from those of another format")
    told = _told(described)
    definition = digest_of(joined("table", told, connection.schema(read)))
    options = described.get("storage_properties") or {}
    return Table(tuple(name), told, definition, read_of(form, location, options), tuple(connection.files(read)))


def why_remembered(source: Source, connection: Connection) -> str:
    """Why a server may remember files as they were before; empty if none has changed since its session began.

    A file is another one, too, if a folder above it was put in the place of another.
    """
    if connection.clock_was_set:
        return "the clock was set since the session began: whether files have changed since is not known"
    since = connection.began - _GUARD
    for listing in source.listings:
        for place in (*listing.files, *listing.folders):
            with failures.telling(place):
                status = os.stat(place)
            local = _mounts.kind(place, status.st_dev, time.time()) in OF_THIS_MACHINE
            if not local or max(status.st_mtime, status.st_ctime) > since:
                return f"{place} may have changed since the session began, and the server may know it as it was"
        moved = _moved(listing.root, since)
        if moved:
            return f"{moved} may be another folder than when the session began, which the server may know"
    return ""


def _moved(root: str, since: float) -> str:
    """A folder or link on the way to a place that may have been put there since a moment; empty if there is none."""
    for place in (root, os.path.realpath(root)):
        while place != os.path.dirname(place):
            with failures.telling(place):
                itself, above = os.lstat(place), os.stat(os.path.dirname(place))
            if itself.st_ctime > since and max(above.st_mtime, above.st_ctime) > since:
                return place
            place = os.path.dirname(place)
    return ""


def why_altered(connection: Connection, tables: Iterable[Table]) -> str:
    """Why tables may be others now than they were; empty if they are the same.

    Nothing is asked by which the session would look at their files: the program may have told it to forget them.
    """
    for table in tables:
        try:
            same = _told(_described(connection, table.name)) == table.told
        except (UserError, EnvironmentFailure) as error:
            return f"whether the table {'.'.join(table.name)} is the same is not known: {error}"
        if not same:
            return f"the table {'.'.join(table.name)} was altered while it ran"
    return ""


def named_read(name: Sequence[str]) -> Any:
    """The relation that reads a table by its name."""
    table = relations_pb2.Read.NamedTable(unparsed_identifier=quoted(name))
    return relations_pb2.Relation(read=relations_pb2.Read(named_table=table))


def _described(connection: Connection, name: Sequence[str]) -> dict[str, Any]:
    query = f"DESCRIBE TABLE EXTENDED {quoted(name)} AS JSON"
    rows = connection.rows(relations_pb2.Relation(sql=relations_pb2.SQL(query=query)))
    try:
        text = str(rows.column(0)[0].as_py())
        found = json.loads(text)
    except (ValueError, IndexError, TypeError) as error:
        raise UserError(f"what the server tells of {'.'.join(name)} is not understood: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"what the server tells of {'.'.join(name)} is not understood")
    if _HIDDEN in text:
        raise UserError(f"the server does not tell everything of {'.'.join(name)}: it may hold a secret")
    return found


def _told(described: dict[str, Any]) -> bytes:
    """What a server says of a table, but for what changes by itself."""
    lasting = {key: described[key] for key in described.keys() - _PASSING}
    return digest_of(joined("told", json.dumps(lasting, sort_keys=True)))


def _created(described: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(described.get("created_time"))).timestamp()
    except ValueError:
        return math.inf
