"""A stream as a step of a plan reads it: as a whole, or some of its files with the columns and types of the whole.

Law: what is read of some files has the very types that the whole read gives them, down to the zones of times, in which
Sail shows them; types that it finds in the files come first, and those of the whole are prescribed where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nectar.dialects.spark.incremental.files import Folders
from nectar.dialects.spark.incremental.plans import Plan
from nectar.dialects.spark.incremental.server import NotPutTogether, Server
from nectar.dialects.spark.incremental.streams import Cut
from nectar.dialects.spark.incremental.tables import as_relation, has_zones, type_of, written
from nectar.dialects.spark.keyed import Keyed
from nectar.keys.expansion import joined


@dataclass(frozen=True, slots=True)
class Stream:
    """A step that is computed file by file.

    wholes: for each read that is cut, by its node, what it gives over all files, without rows. folders: for links.
    """

    keyed: Keyed
    plan: Plan
    step: int
    cut: Cut
    wholes: Mapping[int, pa.Table]
    server: Server
    folders: Folders

    @property
    def shape(self) -> bytes:
        """What parts of the stream have in common besides the program: the columns and types of what is read."""
        tables = [self.wholes[node] for node in dict.fromkeys(self.cut.reads.values())]
        return joined("shape", *(text for table in tables for text in (written(type_of(table)), *_types(table))))

    def key(self, start: int, end: int, which: int) -> bytes:
        """The key that the step has over a run of files."""
        return self.keyed.key_over(self.step, self.cut.keys_of(start, end, which), which)

    def reads(self, start: int, end: int) -> dict[int, Any]:
        """What stands for the reads in a plan over a run of files alone; nothing, if these are all.

        Of a table never nothing: an engine may answer from what is written of files, and not from them. Raises
        NotPutTogether if they cannot be read as the whole is.
        """
        if end - start == self.cut.count and not self.cut.has_tables:
            return {}
        folder = self.folders.new()
        made: dict[int, Any] = {}
        for node in dict.fromkeys(self.cut.reads.values()):
            paths = self.cut.paths_of(node, start, end, folder / str(node))
            made |= dict.fromkeys(
                (read for read, its in self.cut.reads.items() if its == node), self._read(node, paths)
            )
        return made

    def relation(self, table: pa.Table) -> Any:
        """A relation that gives the rows of a table. Raises NotPutTogether if they would not come back as they are."""
        return as_relation(table, self.server, self.folders)

    def _read(self, node: int, paths: list[str]) -> Any:
        whole = self.wholes[node]
        for schema in (None,) if self.cut.holdings[node].is_table else (None, written(type_of(whole))):
            read = self.cut.read_of(node, paths, schema)
            if self._is_like(read, whole):
                return read
        raise NotPutTogether("some of the files cannot be read as all of them are")

    def _is_like(self, read: Any, whole: pa.Table) -> bool:
        try:
            if not has_zones(whole):
                return bool(self.server.schema(read) == type_of(whole))
            alone = self.server.empty(read)
        except Exception:  # files without rows may tell nothing of themselves
            return False
        return bool(type_of(alone) == type_of(whole) and alone.schema.types == whole.schema.types)


def _types(table: pa.Table) -> list[str]:
    return [str(kind) for kind in table.schema.types]
