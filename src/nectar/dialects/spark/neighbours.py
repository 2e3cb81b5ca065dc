"""Whether the server behind a port of this machine is a Spark process that has the file system of this process.

On Linux the system tells which process listens, what it runs, and which mounts it sees; where it does not tell, or
anything else listens (a forwarded port, a container), the answer is no, and `sight.py` looks for other proofs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_SYSTEM: Final = Path("/proc")
_LISTENS: Final = "0A"
_RUNS: Final = b"org.apache.spark.deploy.SparkSubmit"


def is_near(endpoint: str) -> bool:
    """Whether an address is one of this machine by itself, whatever it is called on networks."""
    host = endpoint.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def is_neighbour(endpoint: str, system: Path = _SYSTEM) -> bool:
    """Whether everything that listens at an address is Spark, and sees the files of this process."""
    port = endpoint.rpartition(":")[2]
    if not is_near(endpoint) or not port.isdigit():
        return False
    try:
        wanted = {f"socket:[{inode}]" for inode in _listening(int(port), system)}
        listeners = {process: held for process in _processes(system) if (held := wanted & set(_open(process)))}
        found = set().union(*listeners.values())
        return bool(wanted) and found == wanted and all(_is_like_this(each, system) for each in listeners)
    except OSError:
        return False


def _listening(port: int, system: Path) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in (system / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _processes(system: Path) -> Iterator[Path]:
    return (system / name for name in os.listdir(system) if name.isdigit())


def _open(process: Path) -> Iterator[str]:
    """What a process has open; nothing if it is another user's."""
    with suppress(OSError):
        for name in os.listdir(process / "fd"):
            with suppress(OSError):
                yield os.readlink(process / "fd" / name)


def _is_like_this(process: Path, system: Path) -> bool:
    here = system / "self"
    return (
        _RUNS in (process / "cmdline").read_bytes().split(b"\0")
        and process.stat().st_uid == here.stat().st_uid  # another user may not read what this one keeps
        and os.readlink(process / "ns" / "mnt") == os.readlink(here / "ns" / "mnt")
        and os.path.samefile(process / "root", here / "root")
    )
