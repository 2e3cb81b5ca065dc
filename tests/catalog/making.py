"""Catalogs, keys and values for tests."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from nectar.catalog import holders
from nectar.catalog.embedded import open_catalog
from nectar.catalog.holders import Presence
from nectar.catalog.process import status_of
from nectar.catalog.service import Catalog
from nectar.clock import ManualClock
from nectar.faults import nowhere
from nectar.model.entry import Entry
from nectar.settings import load_settings

LATER = 10_000.0  # seconds that a manual clock of a test is ahead of the files it looks at


def manual_clock() -> ManualClock:
    """A clock for which everything written during the test is old."""
    return ManualClock(time.time() + LATER)


def opened(home, clock=None, reach=nowhere, **settings) -> Catalog:
    """A catalog in a folder; without a reserve, since the disk of a test may be full."""
    chosen = {"home": home, "reserve": 0, "protect": 0, "inline": 256, **settings}
    return open_catalog(load_settings(chosen, environment={}, folder=Path("/")), clock=clock, reach=reach)


def key(number: int) -> bytes:
    """A key; close numbers are far apart."""
    return (number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "big") * 4


def value(number: int, size: int = 2000) -> bytes:
    """What is kept under a key: so many bytes that no other number has."""
    return (f"{number:08d}".encode() * (size // 8 + 1))[:size]


def entry(number: int = 0, **changes) -> Entry:
    """A row by itself: there are no files."""
    name = f"{key(number).hex()}-{number:016x}"
    given = {
        "key": key(number), "program": key(number % 7), "kind": "object", "location": f"{name[:2]}/{name}",
        "manifest": bytes(32), "size": 1000, "files": 2, "rows": 0, "seconds": 1.0, "created": 0.0, "used": 0.0,
    }  # fmt: skip
    return Entry(**{**given, **changes})


def folder_of(catalog: Catalog, entry: Entry) -> Path:
    """Where the files of an entry lie."""
    return Path(catalog.store.root) / "data" / entry.location


def bytes_on_disk(catalog: Catalog) -> int:
    """Bytes of all files in the store's folder."""
    return sum((Path(place) / name).stat().st_size for place, _, names in os.walk(catalog.store.root) for name in names)


def bytes_of_entries(catalog: Catalog) -> int:
    """Bytes that the entries say are in the store's folder."""
    return sum(each.size for each in catalog.index.entries() if each.location)


def read(catalog: Catalog, number: int, program: int = 0):
    """The value kept under a key, or None if there is none."""
    found = catalog.lookup([key(number)], [key(program)])[0].entry
    if found is None:
        return None
    with catalog.open(found) as result:
        return result.to_object()


class As(Presence):
    """Another process, as it shows in a home."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._other = name

    @property
    def name(self) -> str:
        return self._other


def process_as(number: int, start: str | None = None) -> str:
    """The name of another process of this machine; start: when it was started, if not when it was."""
    here = holders._this_process(os.getpid())
    return str(here._replace(process=number, start=status_of(number).start if start is None else start))


def dead_process() -> str:
    """The name of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process_as(child.pid)
    child.communicate(b"\n")
    return name


def fork_and_die(work, fatal):
    """Runs work(reach) in a fork that is killed at the given step; whether there was such a step."""
    child = os.fork()
    if child == 0:
        seen = 0

        def reach(step):
            nonlocal seen
            seen += 1
            if seen == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

        with suppress(BaseException):
            work(reach)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


# Where processes are killed at each of many steps nothing depends on a disk, and much on how long it takes.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
