"""What the result of a call came from: the functions it reached, and the files it was handed."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from nectar import __version__
from nectar.keys.call import Call
from nectar.keys.sources import functions_of
from nectar.model.lineage import FileRead, Sources
from nectar.store.inputs.identity import Identity


def sources_of(call: Call, identities: Iterable[Identity]) -> Sources:
    """What a call came from. Calls of other remembered functions inside it are not told apart from its own work."""
    files = dict.fromkeys(FileRead(each.url, each.names[0], each.size) for each in identities)
    environment = f"python {platform.python_version()}, nectar {__version__}"
    return Sources(tuple(files), tuple(functions_of(call.walk)), environment=environment)
