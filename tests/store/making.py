"""Stores and entries for tests."""

import uuid
from pathlib import Path

import msgspec

from nectar.model.entry import Entry
from nectar.store.commit import Published
from nectar.store.store import Store

KEY = bytes(range(32))


def entry_of(published: Published) -> Entry:
    return Entry(
        key=KEY,
        program=KEY,
        kind=published.kind,
        location=published.location,
        manifest=published.manifest,
        size=published.size,
        files=published.files,
        rows=published.rows,
        seconds=1.0,
        created=0.0,
        used=0.0,
        inline=published.inline,
    )


def put_table(store: Store, table, **options) -> Entry:
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_table(table, **options)
        return entry_of(staging.publish())


def put_object(store: Store, value) -> Entry:
    with store.stage(store.new_location(KEY)) as staging:
        staging.write_object(value)
        return entry_of(staging.publish())


def folder_of(store: Store, entry: Entry) -> Path:
    return Path(store.root) / "data" / entry.location


def fresh_url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def forgetful(store: Store, **changes) -> Store:
    """A store over the same files that has verified nothing yet."""
    return Store(store.root, **changes)


def with_manifest(entry: Entry, digest: bytes) -> Entry:
    return msgspec.structs.replace(entry, manifest=digest)
