"""Eight processes hammer one store with a budget a tenth of what they write: no error, no wrong byte, no leak."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.catalog.making import bytes_of_entries, bytes_on_disk, key, value
from tests.integration.hammering import BUDGET, KEYS, LARGEST, open_here, size_of

from nectar.catalog.check import check

DEEP = os.environ.get("NECTAR_TEST_PROFILE") == "deep"
SECONDS = 30 if DEEP else 7
PROCESSES = 8
ONE_RESULT = LARGEST + 1000


def start(module, *arguments):
    command = [sys.executable, "-m", f"tests.integration.{module}", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def said(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return json.loads(out.splitlines()[-1])


def test_many_processes_on_one_store(tmp_path):
    home = tmp_path / "home"
    running = [start("hammering", home, seed, SECONDS, 10 * BUDGET // PROCESSES) for seed in range(PROCESSES)]
    open_here(home).close()
    watcher = start("watching", home, SECONDS)
    reports = [said(process) for process in running]
    seen = said(watcher)

    assert [report["wrong"] for report in reports] == [[]] * PROCESSES
    total = {name: sum(report[name] for report in reports) for name in reports[0] if name != "wrong"}
    assert total["written"] >= 10 * BUDGET, total
    assert min(total["kept"], total["read"], total["leased"], total["evicted"]) > 0, total
    assert seen["samples"] > 10
    assert seen["by_rows"] <= BUDGET + ONE_RESULT, seen
    assert seen["on_disk"] <= BUDGET + ONE_RESULT, seen

    catalog = open_here(home)
    catalog.collector.sweep(grace=0.0)
    assert catalog.index.leases() == []
    assert catalog.index.doomed() == []
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog), "something was left over"
    assert check(catalog, thorough=True, grace=0.0) == []
    for number in range(KEYS):
        known = catalog.index.lookup([key(number)]).get(key(number))
        if known is not None:
            with catalog.open(known) as result:
                assert bytes(result.to_object()) == value(number, size_of(number))
    catalog.close()
    print(total, seen)
