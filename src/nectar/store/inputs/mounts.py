"""Which file system a file lies on, and so what its times are worth.

A stamp can be trusted only where the system itself notes the moment of each change, and programs cannot set it. That is
so on the file systems in KEEP_CHANGE_TIME. Elsewhere (FAT, images with made-up times such as squashfs, most systems in
user space, shares of Windows, Windows itself, where ctime is the time of creation) a file can be rewritten, its
modification time set back, and nothing shows; files there are read each time. The list names what is known to be good:
a system that is not on it costs time and never gives a wrong answer.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Final, Protocol

OF_THIS_MACHINE: Final = frozenset({  # so that the moment is one of its own clock
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "tmpfs", "overlay", "apfs", "hfs", "ufs",
})  # fmt: skip
KEEP_CHANGE_TIME: Final = OF_THIS_MACHINE | {
    "nfs", "nfs4", "ceph", "lustre", "gpfs", "ocfs2", "gfs2", "virtiofs", "fuse.mergerfs", "fuse.glusterfs",
}  # fmt: skip
ASK_BY_OPENING: Final = frozenset({"nfs", "nfs4"})  # stat() may be a minute behind the server; open() asks it

# Device numbers are used again after an unmount, so what is known of one is looked up again after this time.
_SECONDS_KNOWN: Final = 5.0

Table = list[tuple[str, str]]  # mount point, kind of file system; later ones cover earlier ones


class Mounts(Protocol):
    """Tells kinds of file systems."""

    def kind(self, path: str, device: int, now: float) -> str:
        """The kind of the file system that path, on that device, lies on; empty if there is no telling."""


class SystemMounts:
    """What the system says."""

    def __init__(self, table: Callable[[], Table] | None = None) -> None:
        self._table = table or _TABLES.get(sys.platform, _nothing)
        self._known: dict[int, tuple[str, float]] = {}

    def kind(self, path: str, device: int, now: float) -> str:
        """The kind of the file system, asked again every few seconds."""
        known = self._known.get(device)
        if known is None or not 0 <= now - known[1] < _SECONDS_KNOWN:
            known = self._known[device] = (_kind_at(os.path.realpath(path), self._table()), now)
        return known[0]


def _kind_at(path: str, table: Table) -> str:
    found, longest = "", -1
    for point, kind in table:
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:
            found, longest = kind, len(point)
    return found


def _nothing() -> Table:
    return []


def _linux() -> Table:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return table_of_mountinfo(file.read())
    except OSError:
        return []


def table_of_mountinfo(text: str) -> Table:
    """From the words of /proc/self/mountinfo: the fifth field, and the first after the dash."""
    table = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if dash and len(fields) > 4:
            table.append((_unescaped(fields[4]), after.split(" ")[0]))
    return table


def _unescaped(point: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)


def _macos() -> Table:
    import subprocess  # loads a good deal, which Linux does not need

    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []
    return table_of_mount(done.stdout)


def table_of_mount(text: str) -> Table:
    """From the lines of mount(8) of macOS: `device on point (kind, options)`."""
    return [(match[1], match[2]) for match in re.finditer(r"^.*? on (.+) \(([^,)]+)[^()]*\)$", text, re.MULTILINE)]


_TABLES: Final[dict[str, Callable[[], Table]]] = {"linux": _linux, "darwin": _macos}
