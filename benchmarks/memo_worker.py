"""One process, or many, that ask a peer for values: what benchmarks/memo.py starts.

    python benchmarks/memo_worker.py PEER FOLDER first
    python benchmarks/memo_worker.py PEER FOLDER swarm [--processes N] [--at-once N] [--values N] [--walks N]

`first` makes one call in a process that has not used the peer before. `swarm` starts processes that all ask for the
same values, each in an order of its own. Both print one line of JSON. The functions' own libraries are loaded before
anything is measured; `swarm` has loaded the peer as well, but each of its processes opens it for itself.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.memo_peers import PEERS
from benchmarks.programs import remembered

FIRST_CALL = (100_000.0, 3.5, 12)


def first(peer: str, folder: Path) -> dict[str, float]:
    """Seconds until the peer is there and until the call has its value, one after the other."""
    begun = perf_counter()
    place = PEERS[peer](folder)
    function = place.remember(remembered.repayment)
    opened = perf_counter()
    function(*FIRST_CALL)
    answered = perf_counter()
    place.close()
    return {"open": opened - begun, "call": answered - opened}


def swarm(peer: str, folder: Path, processes: int, at_once: int, values: int, walks: int) -> dict[str, Any]:
    """Seconds for all processes together, seconds each spent asking, and how many did not come to their end."""
    only_loaded = PEERS[peer](folder / "only loaded")
    only_loaded.remember(remembered.ruin)
    only_loaded.close()
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    told: SimpleQueue[float] = context.SimpleQueue()
    begun = perf_counter()
    waiting = [
        context.Process(target=_ask, args=(peer, folder, number, values, walks, remembered.LOG, told))
        for number in range(processes)
    ]
    running: list[Any] = []
    ended: list[Any] = []
    spent: list[float] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(waiting.pop())
            running[-1].start()
        sleep(0.002)
        while not told.empty():
            spent.append(told.get())
        ended += [process for process in running if not process.is_alive()]
        running = [process for process in running if process.is_alive()]
    seconds = perf_counter() - begun
    while not told.empty():
        spent.append(told.get())
    return {"seconds": seconds, "asking": spent, "failed": sum(process.exitcode != 0 for process in ended)}


def _ask(peer: str, folder: Path, number: int, values: int, walks: int, log: str, told: SimpleQueue[float]) -> None:
    remembered.LOG = log
    order = random.Random(number).sample(range(values), values)
    begun = perf_counter()
    place = PEERS[peer](folder)
    function = place.remember(remembered.ruin)
    for seed in order:
        function(seed, walks)
    told.put(perf_counter() - begun)
    place.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", choices=("first", "swarm"))
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--walks", type=int, default=4000)
    chosen = parser.parse_args()
    remembered.LOG = str(chosen.folder / "computations")
    if chosen.task == "first":
        found = first(chosen.peer, chosen.folder / "kept")
    else:
        found = swarm(
            chosen.peer, chosen.folder / "kept", chosen.processes, chosen.at_once, chosen.values, chosen.walks
        )
    print(json.dumps({**found, "computed": remembered.times_computed()}))


if __name__ == "__main__":
    main()
