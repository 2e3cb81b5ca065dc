"""One program over documents in a process of its own, once and then with other numbers.

    python -m benchmarks.polars_worker PEER FOLDER DOCUMENTS PROGRAM COUNT...

The last line says how many seconds each run took, from the call to the frame; until everything was kept; and
how many it took before the first, to get the peer ready.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.polars_peers import PEERS

import nectar


def main(peer: str, folder: str, documents: str, program: str, *counts: str) -> None:
    begun = perf_counter()
    place = PEERS[peer](Path(folder))
    ready = perf_counter() - begun
    seconds, kept, reused, answers = [], [], [], []
    for count in counts:
        begun = perf_counter()
        frame = place.run(program, Path(documents), int(count))
        seconds.append(perf_counter() - begun)
        place.settle()
        kept.append(perf_counter() - begun)
        reused.append(len(nectar.last_run().reused))
        answers.append([frame.height, float(frame[frame.columns[-1]].sum())])
    print(json.dumps({"ready": ready, "seconds": seconds, "kept": kept, "reused": reused, "answers": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
