"""A program whose catalog falls sick while it runs: what benchmarks/sick.py starts.

    python -P benchmarks/sick_worker.py calls|queries FAULT FOLDER [--number N] [--size N] [--plain] [--recover]

FAULT: none, lock, slow, forwards, back, full, readonly or stopped; it comes after a tenth of the calls. Prints one
line of JSON: the seconds until the program has ended, with everything that Nectar does at its end, and the warnings.
With --recover the catalog is well again after the last call; then it says how many results were pending, and how many
of all are kept. Answers are compared with what they have to be.
"""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LATENCY = 5.0  # seconds that each operation takes on a slow disk
HEALTHY = 0.1  # share of the calls after which the catalog falls sick
HOLDER = """
import sqlite3, sys
catalog = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
for line in sys.stdin:
    catalog.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
"""
RESERVING = """
import json, sys
from pathlib import Path
from nectar.catalog.embedded import open_catalog
from nectar.settings import load_settings
catalog = open_catalog(load_settings({"home": Path(sys.argv[1])}))
for key in json.loads(sys.stdin.readline()):
    catalog.reserve(bytes.fromhex(key), 3600.0)
print("reserved", flush=True)
sys.stdin.readline()
"""
_PATHS = ("open", "stat", "lstat", "mkdir", "unlink", "rename", "replace", "scandir", "listdir", "statvfs", "access")
_CREATING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Disk:
    """The disk under a folder, with a fault that comes and goes. Only what Nectar does there meets it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.fault = str(folder), ""

    def operation(self, path: object, writes: bool) -> None:
        """Takes as long as it takes, or fails."""
        if not self.fault or not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(self._folder):
            return
        if self.fault == "slow":
            time.sleep(LATENCY)
        elif writes:
            number = errno.ENOSPC if self.fault == "full" else errno.EROFS
            raise OSError(number, os.strerror(number), str(path))

    def statement(self, text: str) -> None:
        """The same for a statement of SQLite."""
        if self.fault == "slow":
            time.sleep(LATENCY)
        elif self.fault and text.split(None, 1)[0] in ("INSERT", "UPDATE", "DELETE", "COMMIT"):
            full = self.fault == "full"
            raise sqlite3.OperationalError(
                "database or disk is full" if full else "attempt to write a readonly database"
            )

    def put_under_everything(self) -> None:
        """From now on files and SQLite are used through this."""
        for name in _PATHS:
            setattr(os, name, self._slowed(getattr(os, name)))
        builtins.open = io.open = self._slowed(io.open)  # type: ignore[assignment]
        fsync = os.fsync
        os.fsync = lambda fd: (self.operation(self._folder, True), fsync(fd))[1]
        disk, connect = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            def execute(self, text: str, *values: Any) -> Any:
                disk.statement(text)
                return super().execute(text, *values)

            def executemany(self, text: str, *values: Any) -> Any:
                disk.statement(text)
                return super().executemany(text, *values)

        sqlite3.connect = lambda *given, **options: connect(*given, **{"factory": Connection, **options})

    def _slowed(self, function: Any) -> Any:
        def call(path: Any, *given: Any, **options: Any) -> Any:
            name = getattr(function, "__name__", "")
            flags = given[0] if given else options.get("flags", options.get("mode", 0))
            creates = bool(flags & _CREATING) if isinstance(flags, int) else not set(flags).isdisjoint("wax+")
            self.operation(path, creates if name == "open" else name in ("mkdir", "rename", "replace"))
            return function(path, *given, **options)

        return call


class Fault:
    """What happens to the catalog after a tenth of the calls, and what ends it."""

    def __init__(self, kind: str, folder: Path, disk: Disk) -> None:
        self._kind, self._folder, self._disk = kind, folder, disk
        self._child: subprocess.Popen[str] | None = None
        self._shift = 0.0

    def prepare(self, keys: list[str]) -> None:
        """Everything is there that takes long. keys: that another process says it computes."""
        if self._kind in ("lock", "stopped"):
            code, path = (HOLDER, self._folder / "catalog.db") if self._kind == "lock" else (RESERVING, self._folder)
            self._child = subprocess.Popen(
                [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        if self._kind == "stopped":
            self._tell(json.dumps(keys))
        if self._kind in ("forwards", "back"):
            for name, unit in (("time", 1), ("time_ns", 10**9)):
                setattr(time, name, self._shifted(getattr(time, name), unit))

    def _shifted(self, clock: Any, unit: int) -> Any:
        return lambda: clock() + int(self._shift * unit)

    def _tell(self, line: str) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()
        self._child.stdout.readline()

    def begin(self) -> None:
        """The catalog is sick."""
        if self._kind == "lock":
            self._tell("now")
        elif self._kind == "stopped" and self._child is not None:
            os.kill(self._child.pid, signal.SIGSTOP)
        elif self._kind in ("forwards", "back"):
            self._shift = 3600.0 if self._kind == "forwards" else -300.0
        elif self._kind != "none":
            self._disk.fault = self._kind

    def end(self) -> None:
        """It is well again."""
        self._disk.fault = ""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()


def made(kind: str, number: int, size: int, folder: Path) -> tuple[list[Any], list[Any]]:
    """Calls that take no argument, and what they have to give."""
    if kind == "calls":
        from benchmarks.programs.sick import worked

        import nectar

        function = nectar.memo(worked)
        calls = [(lambda n=n: function(n, size)) for n in range(number)]
        return calls, [n * size * (size - 1) // 2 for n in range(number)]
    import polars as pl

    path = folder.parent / "numbers.parquet"
    if not path.exists():
        frame = pl.select(a=pl.int_range(size)).with_columns(g=pl.col("a") % 1000)
        frame.write_parquet(path)
    query = pl.scan_parquet(path).group_by("g").agg(pl.col("a").sum()).select(pl.col("a").sum())
    return [(lambda n=n: query.select(pl.col("a") + n).collect().item()) for n in range(number)], [
        size * (size - 1) // 2 + n for n in range(number)
    ]


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The program, and what it has to say of itself."""
    folder = Path(options.folder)
    disk = Disk(folder)
    fault = Fault("none" if options.plain else options.fault, folder, disk)
    if options.fault in ("slow", "full", "readonly") and not options.plain:
        disk.put_under_everything()
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("nectar").addHandler(handler)
    import nectar
    from nectar import session

    if options.plain:
        nectar.disable()
    else:
        nectar.enable(home=folder, reserve=0)
    calls, expected = made(options.kind, options.number, options.size, folder)
    current = session.current()
    if current is not None:
        assert current.catalog is not None
        calls[0]()
        current.settle()
    fault.prepare(_keys(options, current))
    before = [calls[0]() for _ in range(3)]  # everything is loaded
    assert before == expected[:1] * 3
    begun, worked = time.perf_counter(), time.process_time()
    found = []
    for number, call in enumerate(calls):
        if number == int(options.number * HEALTHY):
            fault.begin()
        found.append(call())
    result: dict[str, Any] = {"right": found == expected, "warnings": warnings}
    if options.recover and current is not None:
        fault.end()
        result["pending"] = len(current.keeper._waiting)
        result["settled"] = current.settle(60.0)
        result["kept"] = sum(1 for _ in current.catalog.index.entries()) if current.catalog else 0
        result["well"] = current.health.is_well
    nectar.disable()
    result["seconds"], result["cpu"] = time.perf_counter() - begun, time.process_time() - worked
    fault.end()
    return result


def _keys(options: argparse.Namespace, current: Any) -> list[str]:
    """The keys of all calls."""
    if current is None or options.fault != "stopped" or options.kind != "calls":
        return []
    from benchmarks.programs.sick import worked

    import nectar

    function = nectar.memo(worked)
    return [function._peek((n, options.size), {}).keyed.key.hex() for n in range(1, options.number)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("calls", "queries"))
    parser.add_argument("fault")
    parser.add_argument("folder")
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--recover", action="store_true")
    result = run(parser.parse_args())
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # threads that wait for a slow disk would be waited for by nobody, but the disk is slow for Python too


if __name__ == "__main__":
    main()
