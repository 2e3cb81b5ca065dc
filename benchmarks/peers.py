"""Other ways to name a function, as their users call them.

In: the name of a peer. Out: a function from an object to text, or None if the peer is not installed here. As a script
it measures one peer in an environment of its own, which need not have Nectar.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import functions, timed

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


def measure_peer(peer: str, repeats: int) -> dict[str, dict[str, float | None]]:
    """Microseconds by function for one peer; nothing if it is not installed."""
    call = load(peer)
    if call is None:
        return {}
    result = {}
    for name, function in functions().items():
        timed(call, function, 1)
        result[name] = timed(call, function, repeats)
    return {peer: result}


def name_of_program(tool: str, folder: str) -> str:
    """What a tool, or Nectar, calls the function `program` of the module of that name in a folder."""
    sys.path.insert(0, folder)
    program = importlib.import_module("program").program
    if tool == "nectar":
        import nectar

        return str(nectar.fingerprint(program))
    call = load(tool)
    assert call is not None, f"{tool} is not installed"
    return call(program)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--program", help="a folder with program.py: print the name of its function instead")
    chosen = parser.parse_args()
    if chosen.program:
        print(name_of_program(chosen.tool, chosen.program))
    else:
        print(json.dumps(measure_peer(chosen.tool, chosen.repeats)[chosen.tool]))


if __name__ == "__main__":
    main()
