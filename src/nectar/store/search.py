"""Whether a result holds a text: in its columns, whatever compresses them, or in the pickle of an object.

Law: nothing is unpickled to find out. What an object has compressed itself is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nectar.store.read import Result

if TYPE_CHECKING:
    import pyarrow as pa


def holds(result: Result, forms: Sequence[bytes]) -> bool:
    """Whether any of these bytes are in a result. Raises StoreFailure if it cannot be read."""
    if any(_is_in(view, forms) for view in result.contents()):
        return True
    if result.kind == "object":
        return False
    table = result.to_arrow()
    metadata = str(table.schema.metadata or "").encode()
    names = "\n".join(table.column_names).encode()
    return (
        _is_in(metadata, forms)
        or _is_in(names, forms)
        or any(
            _is_in(buffer, forms) for column in table.columns for chunk in column.chunks for buffer in _buffers(chunk)
        )
    )


def _buffers(array: pa.Array) -> Iterator[Any]:
    yield from (buffer for buffer in array.buffers() if buffer is not None)
    if getattr(array, "dictionary", None) is not None:
        yield from _buffers(array.dictionary)


def _is_in(content: Any, forms: Sequence[bytes]) -> bool:
    plain = bytes(memoryview(content))
    return any(form in plain for form in forms)
