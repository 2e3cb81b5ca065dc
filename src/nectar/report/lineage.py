"""Lineage for people: what a result came from, what came from it, in words; and the ways into other forms."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from nectar.model.entry import Name
from nectar.model.lineage import FileRead, FunctionUsed, Lineage, Made
from nectar.report.drawing import dot_of, svg_of
from nectar.report.openlineage import events_of

_SHOWN: Final = 30  # of each kind; more are counted
_T = TypeVar("_T")


class LineageReport:
    """What was asked for, and the part of the graph that answers it. Its text is for people."""

    def __init__(self, subject: str, graph: Lineage, texts: Mapping[bytes, str] | None = None) -> None:
        self.subject = subject
        self.graph = graph
        self._texts = texts or {}

    @property
    def results(self) -> list[Made]:
        """The results, oldest first; in both directions those that were asked for are among them."""
        return list(self.graph.results.values())

    @property
    def files(self) -> list[FileRead]:
        """Files that were read, each content of each once."""
        return sorted(self.graph.files.values())

    @property
    def functions(self) -> list[FunctionUsed]:
        """Functions that were used, each version once, with their texts where they are known."""
        known = self._texts
        functions = (each._replace(text=known.get(each.digest, "")) for each in self.graph.functions.values())
        return sorted(functions, key=lambda each: (each.name, each.digest))

    @property
    def people(self) -> list[str]:
        """Those who made the results."""
        return sorted({made.by for made in self.results if made.by})

    @property
    def names(self) -> list[Name]:
        """Names that point, or pointed, to one of the results."""
        return [name for name, _ in self.graph.names]

    def __str__(self) -> str:
        return "\n".join(self.lines(_SHOWN))

    def lines(self, limit: int, texts: bool = False) -> Iterator[str]:
        """The text, with so many of each kind at most; 0 for all. texts: of functions, as they were."""
        yield f"{self.subject}: {self._summary()}"
        versions = sorted({made.environment for made in self.results if made.environment})
        yield from _section("names", self.names, lambda each: _one_line(_name_line(each)), limit)
        yield from _section("results", self.results, lambda each: _one_line(_made_line(each)), limit)
        yield from _section("files", self.files, lambda each: _one_line(_file_line(each)), limit)
        yield from _section("functions", self.functions, lambda each: _function_lines(each, texts), limit)
        yield from _section("people", self.people, str, limit)
        yield from _section("versions", versions, str, limit)

    def _summary(self) -> str:
        others, asked = len(self.graph.results) - len(self.graph.start), len(self.graph.start)
        if self.graph.direction == "upstream":
            return f"made from {_results(others, 'other ')}"
        return f"{_results(asked)}, and {_results(others, 'other ')} made from there"

    def record(self) -> dict[str, Any]:
        """The same as JSON has it."""
        keys = {number: made.key.hex() for number, made in self.graph.results.items()}
        graph = self.graph
        return {
            "subject": self.subject,
            "direction": graph.direction,
            "start": [keys[number] for number in graph.start],
            "results": [_made_record(made) for made in self.results],
            "made_from": [{"result": keys[result], "source": keys[source]} for result, source in graph.made_from],
            "files": [{"id": number, "url": f.url, "identity": f.identity.hex(), "size": f.size}
                      for number, f in graph.files.items()],
            "reads": [{"result": keys[result], "files": list(graph.streams.get(stream, ()))}
                      for result, stream in graph.reads],
            "functions": [{"id": number, "name": f.name, "place": f.place, "digest": f.digest.hex(),
                           "text": self._texts.get(f.digest, "")}
                          for number, f in graph.functions.items()],
            "uses": [{"result": keys[result], "functions": list(graph.kits.get(kit, ()))}
                     for result, kit in graph.uses],
            "names": [_name_record(name) for name in self.names],
            "people": self.people,
        }  # fmt: skip

    def to_json(self) -> str:
        """The graph as JSON."""
        return json.dumps(self.record())

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        return dot_of(self.graph)

    def to_svg(self) -> str:
        """The graph as a drawing."""
        return svg_of(self.graph)

    def to_openlineage(self) -> str:
        """The graph as OpenLineage events, one for each result, as a JSON array."""
        return json.dumps(events_of(self.graph))

    def _repr_svg_(self) -> str:
        return self.to_svg()


def _results(count: int, which: str = "") -> str:
    return f"{count:,} {which}result" + ("" if count == 1 else "s")


def when(moment: float) -> str:
    """A moment in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if moment else "some time"


def _section(head: str, things: Sequence[_T], put: Callable[[_T], str], limit: int) -> Iterator[str]:
    """The things under their head, so many at most; those left out are not put into words."""
    if not things:
        return
    yield f"{head}:"
    shown = things[:limit] if limit else things
    yield from (f"  {put(thing)}" for thing in shown)
    if len(things) > len(shown):
        yield f"  and {len(things) - len(shown):,} more"


def _one_line(text: str) -> str:
    """The text in one line: the name of a file may hold a line feed, and what follows would look like another file."""
    return text.replace("\n", "\\n")


def _made_line(made: Made) -> str:
    who = f" by {made.by}" if made.by else ""
    site = f", {made.site}" if made.site else ""
    return f"{made.key.hex()[:12]}  {made.about or 'of which nothing is on record'}, {when(made.at)}{who}{site}"


def _function_lines(function: FunctionUsed, texts: bool) -> str:
    head = f"{function.name} ({function.place})"
    if not texts:
        return head
    return f"{head}\n{textwrap.indent(function.text.rstrip() or 'its text is not known', '    ')}"


def _file_line(file: FileRead) -> str:
    return f"{file.url} (content {file.identity.hex()[:12]})"


def _name_line(name: Name) -> str:
    note = f": {name.note}" if name.note else ""
    return f"{name.name}@{name.version} since {when(name.since)} by {name.by or 'somebody'}{note}"


def _made_record(made: Made) -> dict[str, Any]:
    return {
        "key": made.key.hex(), "program": made.program.hex(), "about": made.about, "by": made.by, "at": made.at,
        "seconds": made.seconds, "rows": made.rows, "size": made.size, "checksum": made.checksum.hex(),
        "environment": made.environment, "site": made.site,
    }  # fmt: skip


def _name_record(name: Name) -> dict[str, Any]:
    return {
        "name": name.name, "version": name.version, "key": name.key.hex(), "since": name.since, "by": name.by,
        "note": name.note,
    }  # fmt: skip
