"""Files and folders that only those see who may: made with their modes whatever the umask, and never through a link.

Law: a name that is to be made is made new or refused; a name that is read is a plain file of bounded size, and neither
a link nor a pipe that nobody writes to. A link on the way to them is a matter of `places.py`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Final, NamedTuple

from nectar.trust import held, people

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_USUAL: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # a pipe is opened, and then refused
_PIECE: Final = 1 << 16
_MOST: Final = 64 << 20  # bytes of a file of notes; more is not one of ours


class Access(NamedTuple):
    """Who may use what is made: its owner, and if a group is given, its members. writing: they may write as well."""

    group: int | None = None
    writing: bool = False

    @property
    def of_files(self) -> int:
        """The mode of files."""
        return 0o600 if self.group is None else 0o660 if self.writing else 0o640

    @property
    def of_folders(self) -> int:
        """The mode of folders; what is made in a shared one belongs to the group."""
        return 0o700 if self.group is None else 0o2770 if self.writing else 0o2750


PRIVATE: Final = Access()


def create(path: str | os.PathLike[str], access: Access = PRIVATE, flags: int = os.O_WRONLY) -> int:
    """A descriptor of a new file. Raises FileExistsError if there is anything of this name, be it a link to nowhere."""
    fd = os.open(path, flags | os.O_CREAT | os.O_EXCL | _NO_LINK | _USUAL, access.of_files)
    grant(fd, access.of_files, access)
    return fd


def append(path: str | os.PathLike[str], access: Access = PRIVATE) -> int:
    """A descriptor to write to the end of a plain file, made if there is none."""
    try:
        return create(path, access, os.O_WRONLY | os.O_APPEND)
    except FileExistsError:
        return _plain(os.open(path, os.O_WRONLY | os.O_APPEND | _AT_ONCE | _NO_LINK | _USUAL), path)


def opened(path: str | os.PathLike[str], *, links: bool = False) -> int:
    """A descriptor of a plain file, for reading. links: the path may be a link to it.

    Raises OSError also if this process would lose locks when it is closed.
    """
    held.refuse(path, links=links)
    return _plain(os.open(path, os.O_RDONLY | _AT_ONCE | _USUAL | (0 if links else _NO_LINK)), path)


def read(path: str | os.PathLike[str], most: int = _MOST) -> bytes:
    """The content of a plain file of so many bytes at most."""
    return read_known(path, most, links=False)[0]


def read_known(path: str | os.PathLike[str], most: int = _MOST, *, links: bool = True) -> tuple[bytes, os.stat_result]:
    """The content of a plain file, and what was opened: of that it can be asked whether others could have written it.

    links: the path may be a link to it.
    """
    fd = opened(path, links=links)
    try:
        status = os.fstat(fd)
        content = os.read(fd, min(status.st_size, most) + 1)
        while len(content) <= most and (piece := os.read(fd, _PIECE)):
            content += piece
    finally:
        os.close(fd)
    if len(content) > most:
        raise OSError(errno.EFBIG, "it is larger than anything Nectar writes there", os.fspath(path))
    return content, status


def replace(path: str | os.PathLike[str], content: bytes, access: Access = PRIVATE) -> None:
    """The file has this content, whole; what was there before, be it a link, is gone."""
    aside = f"{os.fspath(path)}.{os.urandom(16).hex()}"
    fd = create(aside, access)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def make_folder(path: str | os.PathLike[str], access: Access = PRIVATE) -> None:
    """The folder is there. Raises NotADirectoryError if something else is, such as a link."""
    try:
        os.mkdir(path, access.of_folders & 0o777)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder, but a file or a link", os.fspath(path)) from None
        return
    grant(path, access.of_folders, access)


def grant(what: int | str | os.PathLike[str], mode: int, access: Access) -> None:
    """What this process has just made has its mode, whatever the umask, and belongs to the group."""
    if not people.KNOWN:
        return
    with suppress(OSError):  # file systems without modes or groups; then those of the mount count
        if access.group is None:
            os.chmod(what, mode)
            return
        if not isinstance(what, int) and held.is_held(what):
            os.chown(what, -1, access.group)
            os.chmod(what, mode)
            return
        fd = what if isinstance(what, int) else os.open(what, os.O_RDONLY | _NO_LINK | _USUAL)
        try:
            with suppress(OSError):
                os.chown(fd, -1, access.group)
            os.chmod(fd, mode)
        finally:
            if fd != what:
                os.close(fd)


def _plain(fd: int, path: str | os.PathLike[str]) -> int:
    """The descriptor, of which it is known now that it is one of a plain file."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))
    return fd
