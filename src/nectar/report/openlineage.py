"""A lineage as OpenLineage run events, for catalogs that know that standard: one COMPLETE event for each result."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any, Final

from nectar.model.lineage import Lineage, Made

_SCHEMA: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_PRODUCER: Final = "nectar-data"
_NAMESPACE: Final = "nectar"


def events_of(graph: Lineage) -> list[dict[str, Any]]:
    """The events, in the order in which the results were made."""
    above: dict[int, list[dict[str, str]]] = {number: [] for number in graph.results}
    for result, source in graph.made_from:
        above[result].append(_dataset(graph.results[source]))
    for result, stream in graph.reads:
        above[result] += [_file(graph.files[file].url) for file in graph.streams.get(stream, ())]
    return [_event(made, above[number]) for number, made in graph.results.items()]


def _event(made: Made, inputs: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "eventType": "COMPLETE",
        "eventTime": datetime.fromtimestamp(made.at, UTC).isoformat(),
        "producer": _PRODUCER,
        "schemaURL": _SCHEMA,
        "run": {"runId": str(uuid.UUID(bytes=made.key[:16], version=4))},
        "job": {"namespace": _NAMESPACE, "name": made.about or made.key.hex()[:12]},
        "inputs": inputs,
        "outputs": [_dataset(made)],
    }


def _dataset(made: Made) -> dict[str, str]:
    return {"namespace": _NAMESPACE, "name": made.key.hex()}


def _file(url: str) -> dict[str, str]:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return {"namespace": "file", "name": url}
    host, _, path = rest.partition("/")
    return {"namespace": f"{scheme}://{host}", "name": path or "/"}
