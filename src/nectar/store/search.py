"""Whether a result holds a text: in its columns, whatever compresses them, or in the pickle of an object.

Law: nothing is unpickled to find out. What an object has compressed itself is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nectar.model.wanted import Wanted
from nectar.store.read import Result

if TYPE_CHECKING:
    import pyarrow as pa


def holds(result: Result, wanted: Wanted) -> bool:
    """Whether one of these is named in a result. Raises StoreFailure if it cannot be read."""
    if any(wanted.in_bytes(bytes(memoryview(view))) for view in result.contents()):
        return True
    if result.kind == "object":
        return False
    table = result.to_arrow()
    metadata = str(table.schema.metadata or "")
    return wanted.in_text("\n".join([metadata, *table.column_names])) or any(
        wanted.in_bytes(bytes(memoryview(buffer)))
        for column in table.columns
        for chunk in column.chunks
        for buffer in _buffers(chunk)
    )


def _buffers(array: pa.Array) -> Iterator[Any]:
    yield from (buffer for buffer in array.buffers() if buffer is not None)
    if getattr(array, "dictionary", None) is not None:
        yield from _buffers(array.dictionary)
