"""`nectar fingerprint` and `nectar why`: what a function is, and what makes two functions differ."""

from __future__ import annotations

import json

import click

from nectar.cli.failure import reported
from nectar.cli.target import Target, loaded
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
            click.echo(json.dumps(record))
            return
        click.echo(str(result))
        if tree is not None:
            click.echo(str(tree))


@click.command()
@click.argument("first", type=Target())
@click.argument("second", type=Target())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(first: str, second: str, as_json: bool) -> None:
    """Say what makes the fingerprints of two functions differ.

    FIRST and SECOND are module:function or path/to/file.py:function. They may be two versions of one file in two
    folders: each is loaded with the modules beside it.
    """
    with reported(as_json, first=first, second=second):
        with loaded(first) as function:
            before, tree_before = api.fingerprint(function), api.trace(function)
        with loaded(second) as function:
            after, tree_after = api.fingerprint(function), api.trace(function)
        explanation = str(api.why(tree_before, tree_after))
        if as_json:
            sides = {"first": {"target": first, "fingerprint": str(before)}}
            sides["second"] = {"target": second, "fingerprint": str(after)}
            click.echo(json.dumps({**sides, "same": before == after, "explanation": explanation}))
            return
        click.echo(explanation)
