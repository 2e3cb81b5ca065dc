"""`nectar lineage`: what a result came from; what depends on a result, a file or a function."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

import click

from nectar.catalog.service import Catalog
from nectar.cli.failure import Failure
from nectar.cli.opened import common_options, name_meant, opened
from nectar.cli.terminal import echo
from nectar.datasets.pointer import read_pointer
from nectar.datasets.reference import POINTER
from nectar.model.lineage import Direction, Lineage
from nectar.report.lineage import LineageReport
from nectar.store.inputs.address import address_of

_FORMATS: Final = ("text", "json", "dot", "svg", "openlineage")
_LIMIT: Final = 30


@click.command()
@click.argument("what", metavar="NAME|FILE|FUNCTION")
@click.option("--upstream", "direction", flag_value="upstream", help="What it came from; the default for a name.")
@click.option("--downstream", "direction", flag_value="downstream",
              help="What came from it; the default for a file or a function.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--sources", is_flag=True, help="Show the functions as they were.")
@click.option("--limit", type=click.IntRange(min=0), default=_LIMIT, show_default=True, help="0 shows everything.")
@common_options
def lineage(
    what: str, direction: Direction | None, form: str, sources: bool, limit: int, home: Path | None, as_json: bool
) -> None:
    """Show what a result came from, or what depends on it.

    NAME is a name, a version of one (team/top_urls@2), a pointer file or the beginning of a key; FILE a path or URL, or
    the last parts of one; FUNCTION the name of a function, such as etl.clean or etl.py:clean.
    """
    with opened(home, as_json, asked=what) as (catalog, settings):
        if catalog is None:
            raise Failure(f"there is no catalog in {settings.home} yet, so nothing is known of {what!r}")
        found = found_for(catalog, what, direction)
        if found is None:
            raise Failure(f"no name, no key, no file that was read and no function that was used is called {what!r}")
        if as_json or form == "json":
            echo(found.to_json())
        elif form == "text":
            for line in found.lines(limit, sources):
                echo(line)
        else:
            echo({"dot": found.to_dot, "svg": found.to_svg, "openlineage": found.to_openlineage}[form]())


def found_for(catalog: Catalog, what: str, direction: Direction | None) -> LineageReport | None:
    """The lineage of whatever bears a name: a result first, then a file, then a function; None if nothing does."""
    index, key = catalog.index, _key(catalog, what)
    if key is not None:
        graphs = iter([index.trace_results([key], direction or "upstream")])
    else:
        graphs = _of_files_and_functions(catalog, what, direction or "downstream")
    graph = next((graph for graph in graphs if graph.results), None)
    if graph is None:
        return None
    return LineageReport(what, graph, index.function_texts([each.digest for each in graph.functions.values()]))


def _key(catalog: Catalog, what: str) -> bytes | None:
    if what.endswith(POINTER) and os.path.exists(what):
        return bytes.fromhex(read_pointer(Path(what)).key)
    bound = name_meant(catalog, what)
    if bound is not None:
        return bound.key
    found = catalog.index.find_made(what.lower())
    if len(found) > 1:
        raise Failure(f"{len(found)} keys begin with {what!r}: write more digits")
    return found[0] if found else None


def _of_files_and_functions(catalog: Catalog, what: str, direction: Direction) -> Iterator[Lineage]:
    if os.path.exists(what):
        yield catalog.index.trace_input(address_of(what).url, direction)
    yield catalog.index.trace_input(what, direction)
    for name in _function_names(what):
        yield catalog.index.trace_function(name, direction)


def _function_names(what: str) -> Iterator[str]:
    """Names that a function may have: etl.py:clean is etl.clean, or __main__.clean where etl.py is the program."""
    module, colon, function = what.rpartition(":")
    if not colon:
        yield what
        return
    yield f"{PurePath(module).stem if module.endswith('.py') else module}.{function}"
    if module.endswith(".py"):
        yield f"__main__.{function}"
