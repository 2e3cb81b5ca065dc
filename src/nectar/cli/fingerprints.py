"""`nectar fingerprint` and `nectar why`: what a function is, and what makes two functions differ."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nectar.cli.failure import Failure, reported
from nectar.cli.target import Target, loaded
from nectar.cli.terminal import echo
from nectar.keys import api


@click.command()
@click.argument("target", type=Target())
@click.option("--trace", "with_trace", is_flag=True, help="Show everything that went into the fingerprint.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fingerprint(target: str, with_trace: bool, as_json: bool) -> None:
    """Print the fingerprint of a function.

    TARGET is module:function or path/to/file.py:function; modules are also looked for in the current folder.
    """
    with reported(as_json, target=target), loaded(target) as function:
        result = api.fingerprint(function)
        tree = api.trace(function) if with_trace else None
        if as_json:
            record: dict[str, object] = {"target": target, "fingerprint": str(result), "scheme": result.scheme}
            if tree is not None:
                record["trace"] = json.loads(tree.to_json())
            echo(json.dumps(record))
            return
        echo(str(result))
        if tree is not None:
            echo(str(tree))


@click.command()
@click.argument("first", type=Target())
@click.argument("second", type=Target(), required=False)
@click.option("--home", type=click.Path(path_type=Path), help="Folder of the catalog, instead of NECTAR_HOME.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(first: str, second: str | None, home: Path | None, as_json: bool) -> None:
    """Say what makes two functions differ; or what changed in one since its results were kept.

    FIRST and SECOND are module:function or path/to/file.py:function. They may be two versions of one file in two
    folders: each is loaded with the modules beside it. Without SECOND, FIRST is a memoised function.
    """
    with reported(as_json, first=first, second=second):
        record = {"target": first, "explanation": _since_kept(first, home)} if second is None else _both(first, second)
        echo(json.dumps(record) if as_json else record["explanation"])


def _both(first: str, second: str) -> dict[str, object]:
    """What makes two functions differ."""
    with loaded(first) as function:
        before, tree_before = api.fingerprint(function), api.trace(function)
    with loaded(second) as function:
        after, tree_after = api.fingerprint(function), api.trace(function)
    return {
        "first": {"target": first, "fingerprint": str(before)},
        "second": {"target": second, "fingerprint": str(after)},
        "same": before == after,
        "explanation": str(api.why(tree_before, tree_after)),
    }


def _since_kept(target: str, home: Path | None) -> str:
    """What changed in a memoised function since its results were kept."""
    from nectar.cli.opened import opened
    from nectar.dialects.python.explain import changes_since_kept
    from nectar.dialects.python.memo import Memoized

    with loaded(target) as function:
        if not isinstance(function, Memoized):
            raise Failure(f"{target} is not memoised: put @nectar.memo above it, or name a second function")
        with opened(home, False) as (catalog, settings):
            if catalog is None:
                return f"nothing is kept yet: there is no catalog in {settings.home}"
            return changes_since_kept(function, catalog)
