"""Sources of a plan: scans of files, and frames in memory.

A scan is expanded by Polars itself, so that exactly the files are identified that Polars would read, in its order; the
schema it resolves over all of them is part of what the scan is, because a file read alone may have other types.
Credentials are never part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import polars as pl

from nectar.dialects.polars.plan import Plan, Step, traverser_of
from nectar.keys.scheme import digest_of
from nectar.store.inputs.address import without_credentials

_encode: Final = msgspec.msgpack.Encoder().encode
# What of a scan is not in its key, and why; everything else is.
LEFT_OUT: Final = {
    ("sources",): "files are in keys by their identities, and paths where they show in the result",
    ("unified_scan_args", "cloud_options"): "it grants access, or the scan is refused",
    ("unified_scan_args", "cache"): "whether a scan that occurs twice is read once",
    ("unified_scan_args", "rechunk"): "how rows lie in memory",
    ("options", "rechunk"): "how rows lie in memory",
    ("options", "low_memory"): "how much is read at a time",
    ("options", "chunk_size"): "how much is read at a time",
    ("options", "parallel"): "what is read beside each other",
    ("options", "n_threads"): "what is read beside each other",
}
# Storage options that say who asks; others may say whom.
_ACCESS: Final = frozenset(
    {"AccessKeyId", "SecretAccessKey", "Token", "Region", "DefaultRegion", "SkipSignature", "ImdsV1Fallback",
     "AccessKey", "SasKey", "ClientId", "ClientSecret", "AuthorityId", "ServiceAccount", "ServiceAccountKey",
     "ApplicationCredentials", "GoogleServiceAccount", "GoogleServiceAccountKey", "GoogleApplicationCredentials"}
)  # fmt: skip
_COLUMNAR: Final = frozenset({"Parquet", "Ipc"})
_OF_LINES: Final = frozenset({"Csv", "NDJson"})
_KNOWN_FORMATS: Final = _COLUMNAR | _OF_LINES


class Source(msgspec.Struct, frozen=True):
    """canonical: everything about a source but the content of its files. files: what it reads, in order."""

    canonical: bytes
    files: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def frame_source(plan: Plan, step: Step) -> Source:
    """What a frame in memory is."""
    data = plan.frames[step.body["df"]["idx"]]
    return Source(digest_of(_encode(["frame", {**step.body, "df": None}]) + data))


def refusal_of(step: Step) -> str:
    """Why it cannot be known what a scan reads; empty if it can."""
    kind = next(iter(step.body["scan_type"]))
    if kind not in _KNOWN_FORMATS:
        return f"it reads a source of the kind {kind}, which is not known"
    if set(step.body["sources"]) != {"Paths"}:
        return "it reads an open file or bytes in memory, whose content is not known"
    arguments = step.body["unified_scan_args"]
    if arguments.get("deletion_files") or arguments.get("column_mapping"):
        return "it reads a table with deletion files or mapped columns, which is not supported yet"
    if any("://" in path for path in _paths_given(step)) and _chooses_place(arguments.get("cloud_options") or {}):
        return "its storage options say where to look for its files, and nobody else can look there"
    return ""


def _chooses_place(cloud_options: dict[str, Any]) -> bool:
    """Whether storage options say more than who asks, such as another server: its files would not be identified."""
    entries = [entry for each in (cloud_options.get("config") or {}).values() for entry in each]
    return any(not isinstance(entry, list) or entry[0] not in _ACCESS for entry in entries)


def shown_files(step: Step, traverser: Any) -> tuple[str, ...]:
    """The files of a scan, which has been resolved on its own."""
    shown = _like_csv(step) if "Ipc" in step.body["scan_type"] else traverser
    return tuple(str(path) for path in shown.view_current_node().paths)


def scan_source(step: Step, files: tuple[str, ...], resolved: Mapping[str, pl.DataType]) -> Source:
    """What a scan is that reads these files. resolved: its schema over all of them."""
    schema = [(name, repr(dtype)) for name, dtype in resolved.items()]
    shown = _paths_that_show(step.body["unified_scan_args"], _paths_given(step), files)
    return Source(digest_of(_encode(["scan", _without_left_out(step.body), schema, shown])), files)


def _without_left_out(value: Any, keys: tuple[str, ...] = ()) -> Any:
    """A piece of a scan, without what is left out of its key. keys: those that lead to it."""
    if not isinstance(value, dict):
        return value
    pieces = {name: (*keys, name) for name in value}
    return {
        name: _without_left_out(value[name], path)
        for name, path in pieces.items()
        if path not in LEFT_OUT and path[2:] not in LEFT_OUT  # options stand below "scan_type" and the format
    }


def with_files(plan: Plan, number: int, files: Sequence[str]) -> pl.LazyFrame | None:
    """The same scan of exactly these files, whatever comes beside them later; None if that may not be the same."""
    step = plan.steps[number]
    given, arguments = _paths_given(step), step.body["unified_scan_args"]
    hive = dict(arguments.get("hive_options") or {})
    if hive.get("enabled") is None and any("=" in file for file in files):
        folder = len(given) == 1 and given[0] not in files and os.path.isdir(given[0])
        if not folder and any("://" in path for path in given):
            return None  # whether names are read as partitions depends on what is a folder there
        hive["enabled"] = folder
    sources = {"Paths": [{"inner": file} for file in files]}
    changed = {**arguments, "hive_options": hive, "glob": False}
    return plan.with_step(step.kind, {**step.body, "sources": sources, "unified_scan_args": changed})


def is_fixed(plan: Plan, number: int, files: Sequence[str]) -> bool:
    """Whether a scan names exactly these files already."""
    return _paths_given(plan.steps[number]) == tuple(files)


def without_secrets(plan: Plan, number: int) -> pl.LazyFrame | None:
    """The same scan without what grants access; None if it has no such thing."""
    step = plan.steps[number]
    arguments = step.body["unified_scan_args"]
    given = _paths_given(step)
    shown = tuple(path if "://" not in path else without_credentials(path)[0] for path in given)
    if arguments.get("cloud_options") is None and shown == given:
        return None
    sources = {"Paths": [{"inner": path} for path in shown]}
    changed = {**arguments, "cloud_options": None}
    return plan.with_step(step.kind, {**step.body, "sources": sources, "unified_scan_args": changed})


def reads_file_by_file(plan: Plan, number: int, files: Sequence[str]) -> bool:
    """Whether what a scan gives of a file is the same whatever other files it reads, if it is told the types."""
    arguments = plan.steps[number].body["unified_scan_args"]
    if any(arguments.get(name) for name in ("row_index", "pre_slice", "include_file_paths", "deletion_files")):
        return False
    partitioned = (arguments.get("hive_options") or {}).get("enabled") is not False
    return not partitioned or all("=" not in file for file in files)  # partitions may be of other types in the whole


def has_types_of_stream(plan: Plan, number: int, file: str) -> bool:
    """Whether a file has, by itself, the very columns and types that a scan gives; not told of files of lines."""
    step = plan.steps[number]
    (kind, options), *_ = step.body["scan_type"].items()
    if kind not in _COLUMNAR:
        return False
    body = {
        **step.body,
        "scan_type": {kind: _with_schema(options, None)},
        "sources": {"Paths": [{"inner": file}]},
        "unified_scan_args": {**step.body["unified_scan_args"], "schema": None, "glob": False},
    }
    return bool(plan.with_step(step.kind, body).collect_schema() == plan.schema(number))


def segment(plan: Plan, number: int, files: Sequence[str], without_rows: bool = False) -> pl.LazyFrame | None:
    """The scan of some files of a stream, read as they are read within it; None if they cannot be read alone.

    without_rows: it gives none of their rows.
    """
    if not reads_file_by_file(plan, number, files):
        return None
    step = plan.steps[number]
    (kind, options), *_ = step.body["scan_type"].items()
    arguments = step.body["unified_scan_args"]
    schema = plan.schema(number)
    none = {"pre_slice": {"Positive": {"offset": 0, "len": 0}}} if without_rows else {}
    body = {
        **step.body,
        "scan_type": {kind: _with_schema(options, plan.written_schema(number))},
        "sources": {"Paths": [{"inner": file} for file in files]},
        "unified_scan_args": {**arguments, "glob": False, **none},
    }
    frame = plan.with_step(step.kind, body)
    return frame if frame.collect_schema() == schema else None


def _with_schema(options: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The options of a format, where they say a schema, with this one."""
    inner = dict(options.get("options", options))
    if "schema" in inner:
        inner["schema"] = schema
    return {**options, "options": inner} if "options" in options else inner


class Lines(msgspec.Struct, frozen=True):
    """How a scan reads files of lines.

    header: the first line names columns. comment: what lines begin with that are left out. quoted: a line may end
    within double quotes, and is none then.
    """

    header: bool
    comment: bytes
    quoted: bool


def lines_of(plan: Plan, number: int) -> Lines | None:
    """How a scan reads lines, each by itself; None if it does not, or looks at where in the file they stand."""
    step = plan.steps[number]
    if step.kind != "Scan":
        return None  # a frame in memory, or the result of another program
    (kind, options), *_ = step.body["scan_type"].items()
    inner = (options or {}).get("options") or {}
    if kind not in _OF_LINES or any(dtype.is_temporal() for dtype in plan.schema(number).values()):
        return None  # how dates and times are written is found out from the first of each file, and holds for all of it
    if kind == "NDJson":
        return None if inner.get("ignore_errors") else Lines(header=False, comment=b"", quoted=False)
    parsing = inner.get("parse_options") or {}
    if parsing.get("eol_char") != ord("\n") or parsing.get("quote_char") not in (None, ord('"')):
        return None
    if any(inner.get(name) for name in ("skip_rows", "skip_lines", "skip_rows_after_header", "ignore_errors")):
        return None
    comment = parsing.get("comment_prefix")
    return Lines(bool(inner["has_header"]), _comment(comment), parsing.get("quote_char") is not None)


def _comment(prefix: Any) -> bytes:
    """What comments begin with, as Polars writes it into plans: a number, or a text; empty if there are none."""
    if prefix is None:
        return b""
    ((kind, value),) = prefix.items()
    return bytes([value]) if kind == "Single" else str(value).encode()


def _like_csv(step: Step) -> Any:
    """A scan that finds the same files: those of Arrow files are not shown, and finding them is the same for all."""
    paths = list(_paths_given(step))
    return traverser_of(pl.scan_csv(paths, schema={"": pl.Null}, glob=step.body["unified_scan_args"]["glob"]))


def _paths_given(step: Step) -> tuple[str, ...]:
    """Files, folders and patterns as they were written."""
    return tuple(str(path["inner"]) for path in step.body["sources"]["Paths"])


def _paths_that_show(
    arguments: dict[str, Any], given: tuple[str, ...], files: tuple[str, ...]
) -> tuple[tuple[str, ...], ...] | tuple[str, ...]:
    """Paths, where they get into the result: as a column, or through hive partitions in their names.

    Unless somebody says whether names are read as partitions, a folder is and a list of files is not, also where both
    lead to the same files.
    """
    partitioned = (arguments.get("hive_options") or {}).get("enabled")
    if partitioned is None and any("=" in file for file in files):
        return files, given
    seen = arguments.get("include_file_paths") or partitioned is not False
    return files if seen and (arguments.get("include_file_paths") or any("=" in file for file in files)) else ()
