"""Runs the 22 queries of TPC-H under Nectar: python -m tests.integration.tpch_run TABLES SCALE HOME ANSWERS.

Every answer is written to the folder ANSWERS as an Arrow file. The last line says of each query what became of its
parts, as JSON.
"""

import json
import sys
from pathlib import Path

from tests.integration import tpch

import nectar


def main(folder: str, scale: str, home: str, answers: str) -> None:
    """One query after the other, in the order of their numbers."""
    tables = tpch.Tables(Path(folder), float(scale))
    nectar.enable(home=home)
    runs = {}
    for number, query in tpch.QUERIES.items():
        answer = query(tables).collect()
        runs[number] = nectar.last_run()
        answer.write_ipc(Path(answers) / f"{number}.arrow")
    nectar.disable()  # everything is written, so that the reports are complete
    print(
        json.dumps(
            {number: [[part.name, part.outcome, part.kept] for part in run.parts] for number, run in runs.items()}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
