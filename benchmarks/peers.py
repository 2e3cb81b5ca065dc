"""Other ways to name a function, as their users call them.

In: the name of a peer. Out: a function from an object to text, or None if the peer is not installed here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable

Namer = Callable[[object], str]


def _cloudpickle() -> Namer:
    import cloudpickle

    return lambda value: hashlib.sha256(cloudpickle.dumps(value)).hexdigest()


def _cloudpickle_by_value() -> Namer:
    """Functions of the application go in whole, as those of a script do; otherwise only their names do."""
    import cloudpickle

    def name(value: object) -> str:
        chosen = [module for key, module in list(sys.modules.items()) if key in _BY_VALUE]
        for module in chosen:
            cloudpickle.register_pickle_by_value(module)
        try:
            return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
        finally:
            for module in chosen:
                cloudpickle.unregister_pickle_by_value(module)

    return name


_BY_VALUE = ("benchmarks.programs.application", "benchmarks.programs.fifty", "program", "helper")


def _dask() -> Namer:
    from dask.tokenize import tokenize

    return tokenize


def _joblib() -> Namer:
    import joblib

    return joblib.hash


def _xorq() -> Namer:
    from xorq.common.utils.dasher import tokenize

    return tokenize


PEERS: dict[str, Callable[[], Namer]] = {
    "cloudpickle": _cloudpickle,
    "cloudpickle by value": _cloudpickle_by_value,
    "dask": _dask,
    "joblib": _joblib,
    "xorq": _xorq,
}


def load(peer: str) -> Namer | None:
    """The peer's function; None if it is not installed."""
    if importlib.util.find_spec(peer.partition(" ")[0]) is None:
        return None
    return PEERS[peer]()
