"""`nectar export`: a named result as a file of your own, or a pointer to it."""

from __future__ import annotations

from pathlib import Path

import click

from nectar.catalog.service import Catalog
from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, opened, print_json, result_meant, short
from nectar.cli.terminal import echo
from nectar.datasets.access import result_of
from nectar.datasets.pointer import pointer_to
from nectar.datasets.reference import POINTER
from nectar.model.entry import Entry, Name
from nectar.model.lineage import Made
from nectar.quantities import show_size
from nectar.store.export import export as write_file
from nectar.store.export import format_of, replacing


@click.command()
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--pointer", is_flag=True, help=f"Write a small file that stands for the result; PATH ends with {POINTER}."
)
@common_options
def export(name: str, path: Path, pointer: bool, home: Path | None, as_json: bool) -> None:
    """Write a result to a file.

    NAME is a name, a name with a version (team/top_urls@2), or the beginning of a key. The suffix of PATH says the
    format: .parquet, .arrow, .csv, .ndjson. A file that is there is replaced in one step.
    """
    with opened(home, as_json, asked=name) as (catalog, settings):
        bound, entry = result_meant(catalog, name, settings.home)
        assert catalog is not None  # or nothing would be meant
        label = f"{bound.name}@{bound.version}" if bound else short(entry.key) if entry else name
        key = bound.key if bound else entry.key if entry else b""
        if pointer:
            size = _write_pointer(catalog, path, key, bound, entry)
        else:
            kind = format_of(path)
            with result_of(catalog, key, label) as result:
                size = write_file(result, path, kind)
        if as_json:
            print_json({"name": name, "key": key.hex(), "path": str(path), "size": size, "pointer": pointer})
        else:
            echo(f"{label}: {show_size(size)} in {path}" if not pointer else f"{path} stands for {label}")


def _write_pointer(catalog: Catalog, path: Path, key: bytes, bound: Name | None, entry: Entry | None) -> int:
    if not path.name.endswith(POINTER):
        raise Failure(f"a pointer file has a name that ends with {POINTER}, and {path.name} does not")
    content = pointer_to(_made(catalog, key, entry), bound, _columns(catalog, entry))
    with replacing(path) as file:
        return file.write(content)


def _made(catalog: Catalog, key: bytes, entry: Entry | None) -> Made:
    made = catalog.index.made([key]).get(key)
    if entry is not None:  # made again since it went on record, it may have other bytes
        return Made(key, entry.program, entry.about, "", 0.0, 0.0, entry.rows, entry.size, entry.manifest)
    if made is None:
        raise Failure(f"nothing is known of the result {key.hex()}")
    return made


def _columns(catalog: Catalog, entry: Entry | None) -> list[tuple[str, str]]:
    if entry is None:
        return []
    with result_of(catalog, entry.key, short(entry.key)) as result:
        return [(column.name, column.type) for column in result.schema]
