"""Sources of a plan: scans of files, and frames in memory.

A scan is expanded by Polars itself, so that exactly the files are identified that Polars would read, in its order; the
schema it resolves over all of them is part of what the scan is, because a file read alone may have other types.
Credentials are never part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nectar.dialects.polars.plan import Plan, Step
from nectar.keys.scheme import digest_of

_encode: Final = msgspec.msgpack.Encoder().encode
# Arguments of a scan that say how it is done, and not what it gives.
_WITHOUT_EFFECT: Final = frozenset(
    {"cloud_options", "cache", "rechunk", "source_sizes", "resolve_heavy_sources", "table_statistics"}
)
_OPTIONS_WITHOUT_EFFECT: Final = frozenset(
    {"low_memory", "parallel", "use_statistics", "chunk_size", "n_threads", "rechunk", "path"}
)
_KNOWN_FORMATS: Final = frozenset({"Parquet", "Csv", "Ipc", "NDJson"})


@dataclass(frozen=True, slots=True)
class Source:
    """canonical: everything about a source but the content of its files. files: what it reads, in order."""

    canonical: bytes
    files: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def source_of(plan: Plan, number: int) -> Source:
    """What a source step reads."""
    step = plan.steps[number]
    if step.kind == "DataFrameScan":
        return _frame(plan, step)
    if step.kind == "Scan":
        return _scan(plan, number, step)
    raise AssertionError(step.kind)


def _frame(plan: Plan, step: Step) -> Source:
    data = plan.frames[step.body["df"]["idx"]]
    return Source(digest_of(_encode(["frame", step.body["schema"]]) + data))


def _scan(plan: Plan, number: int, step: Step) -> Source:
    (kind, options), *_ = step.body["scan_type"].items()
    if kind not in _KNOWN_FORMATS:
        return Source(b"", (), (f"it reads a source of the kind {kind}, which is not known",))
    if set(step.body["sources"]) != {"Paths"}:
        return Source(b"", (), ("it reads an open file or bytes in memory, whose content is not known",))
    arguments = {name: value for name, value in step.body["unified_scan_args"].items() if name not in _WITHOUT_EFFECT}
    if arguments.get("deletion_files") or arguments.get("column_mapping"):
        return Source(b"", (), ("it reads a table with deletion files or mapped columns, which is not supported yet",))
    traverser = plan.frame(number)._ldf.visit()
    files = tuple(str(path) for path in traverser.view_current_node().paths)
    schema = [(name, repr(dtype)) for name, dtype in traverser.get_schema().items()]
    inner = {
        name: value
        for name, value in (options or {}).get("options", options or {}).items()
        if name not in _OPTIONS_WITHOUT_EFFECT
    }
    shown = _paths_that_show(arguments, files)
    return Source(digest_of(_encode(["scan", kind, inner, arguments, schema, shown])), files)


def _paths_that_show(arguments: dict[str, Any], files: tuple[str, ...]) -> tuple[str, ...]:
    """Paths, where they get into the result: as a column, or through hive partitions in their names."""
    hive = arguments.get("hive_options") or {}
    seen = arguments.get("include_file_paths") or hive.get("enabled") is not False
    return files if seen and (arguments.get("include_file_paths") or any("=" in file for file in files)) else ()
