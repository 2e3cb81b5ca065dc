"""Operations that the server knows by another name than the program does.

A server takes a name once. A plan over known parts is sent under a name of its own, so that the program's own plan can
still be sent under the program's, should the server not take the first. In and out: requests; what the program says of
its operation is meant for the one that runs.
"""

from __future__ import annotations

import threading
import uuid
from typing import Any


class Operations:
    """The operations of one client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}

    def anew(self, request: Any) -> Any:
        """The request under a name of its own; from now on that is what the program's name stands for."""
        made = type(request)()
        made.CopyFrom(request)
        made.operation_id = str(uuid.uuid4())
        with self._lock:
            self._names[request.operation_id] = made.operation_id
        return made

    def as_known(self, request: Any) -> Any:
        """A request about an operation, as the server has to be told."""
        name = self._names.get(request.operation_id)
        if name is None:
            return request
        made = type(request)()
        made.CopyFrom(request)
        made.operation_id = name
        return made

    def forget(self, operation: str) -> None:
        """The name of the program stands for itself."""
        with self._lock:
            self._names.pop(operation, None)
