"""Named results as files of the system, through FUSE. Read-only: the file system of `nectar://` under a folder."""

from __future__ import annotations

import errno
import itertools
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from nectar.datasets.filesystem import NectarFileSystem
from nectar.errors import EnvironmentFailure, MissingExtraError, NectarError
from nectar.threads import started
from nectar.trust.secrets import logger

_log: Final = logger("nectar.mount")
_T = TypeVar("_T")
_FOLDER: Final = stat.S_IFDIR | 0o555
_FILE: Final = stat.S_IFREG | 0o444


def mount(folder: Path, home: str = "", store: str = "") -> None:
    """The names are files below a folder until it is unmounted, or the process is interrupted; returns then."""
    try:
        import mfusepy
    except ImportError as error:
        raise MissingExtraError("mfusepy", "mount") from error
    except OSError as error:
        raise EnvironmentFailure(f"folders cannot be mounted here: {error}; install libfuse (Debian: fuse3)") from error
    if not folder.is_dir():
        raise EnvironmentFailure(f"{folder} is no folder: make an empty one to mount the names on")
    _pass_interrupts_on()
    try:
        # Not in the background: a process that has used Polars must not fork.
        mfusepy.FUSE(
            MountedNames(NectarFileSystem(home=home, store=store, skip_instance_cache=True)), str(folder),
            foreground=True, ro=True, fsname="nectar", attr_timeout=0,  # sizes are known once a file is open
        )  # fmt: skip
    except RuntimeError as error:
        raise EnvironmentFailure(f"{folder} cannot be mounted: FUSE refuses ({error}); is /dev/fuse there?") from error


def _pass_interrupts_on() -> None:
    """An interrupt ends the mount as a termination does: FUSE loses its handler of interrupts to Polars."""
    mounting = threading.get_ident()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def wait() -> None:
        signal.sigwait({signal.SIGINT})
        signal.pthread_kill(mounting, signal.SIGTERM)

    started(wait, "nectar-mount")


class MountedNames:
    """What FUSE asks of a file system. Errors are numbers there; what they mean is in the log."""

    use_ns = True

    def __init__(self, system: NectarFileSystem) -> None:
        self._system = system
        self._open: dict[int, tuple[Any, threading.Lock]] = {}
        self._numbers = itertools.count(1)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """Size, times and rights of a file or folder; whoever lists a folder makes nothing run."""
        info = _as_number(lambda: self._system.glance(path))
        if info["type"] == "directory":
            return {"st_mode": _FOLDER, "st_nlink": 2}
        moment = int(info["mtime"] * 1e9)
        times = dict.fromkeys(("st_mtime", "st_ctime", "st_atime"), moment)
        return {"st_mode": _FILE, "st_nlink": 1, "st_size": info["size"], **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        """Names in a folder."""
        found = _as_number(lambda: self._system.ls(path, detail=False))
        return [".", "..", *(each.rpartition("/")[2] for each in found)]

    def open(self, path: str, flags: int) -> int:
        """A number for an open file. What was deleted is made again."""
        file = _as_number(lambda: self._system.open(path.strip("/"), "rb"))
        number = next(self._numbers)
        self._open[number] = file, threading.Lock()
        return number

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Bytes of an open file."""
        file, lock = self._open[fh]
        with lock:
            file.seek(offset)
            content: bytes = file.read(size)
        return content

    def release(self, path: str, fh: int) -> int:
        """The file is closed."""
        file, _ = self._open.pop(fh)
        file.close()
        return 0


def _as_number(action: Callable[[], _T]) -> _T:
    """What the action gives; errors as FUSE knows them."""
    try:
        return action()
    except FileNotFoundError as error:
        if isinstance(error, NectarError):  # it has a name, and cannot be made again
            _log.warning("%s", error)
        raise OSError(errno.ENOENT, "") from error
    except IsADirectoryError as error:
        raise OSError(errno.EISDIR, "") from error
    except Exception as error:
        _log.warning("%s: %s", type(error).__name__, error)
        raise OSError(errno.EIO, "") from error
