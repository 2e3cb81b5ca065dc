"""How a failure to look at an input is told: what happened, to what, what to do, and no credentials."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from nectar.errors import InputFailure, MissingInputError, UnreadInputError

_ADVICE: Final = {
    errno.EACCES: "give yourself the right to read it",
    errno.EPERM: "give yourself the right to read it",
    errno.EIO: "the device failed: look into the system's log",
    errno.ESTALE: "the network file system lost it: mount it again",
    errno.EMFILE: "too many files are open: close some, or raise the limit (ulimit -n)",
    errno.EBUSY: "it is a catalog that this process uses; hand over a copy of it",
    errno.ELOOP: "its links lead in a circle: repair them",
    errno.EISDIR: "name the files in it, or hand over the folder as a folder",
}
ATTEMPTS: Final = 2  # a file that was being written when it was first read may be whole a moment later; a log is not
_QUIET: Final = "once nobody has written to it for a while, it is known without being read"


def missing(url: str) -> MissingInputError:
    """There is no such file."""
    return MissingInputError(errno.ENOENT, f"there is no file {url}: see whether its name is right")


def unreadable(url: str, error: BaseException) -> InputFailure:
    """It cannot be read. Only the kind of the error is told: messages of clients may hold signed addresses."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return missing(url)
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if isinstance(number, int) else type(error).__name__
    advice = _ADVICE.get(number or 0, "see whether it can be reached")
    message = f"{url} cannot be read: {reason}; {advice}"
    return InputFailure(number, message) if isinstance(number, int) else InputFailure(message)


@contextmanager
def telling(url: str) -> Iterator[None]:
    """Any failure within becomes an InputFailure that names the input."""
    try:
        yield
    except InputFailure:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte in it
        raise unreadable(url, error) from error


def hollow(url: str) -> InputFailure:
    """It claims to hold far more than was ever written to it."""
    return InputFailure(f"{url} is nearly all holes: reading it would take longer than anybody waits; write it anew")


def restless(url: str) -> UnreadInputError:
    """It was changed each time it was read."""
    return UnreadInputError(f"it reads {url}, which changes all the time: use a copy, or wait for its writer; {_QUIET}")


def too_large(url: str, beside: bool = False) -> UnreadInputError:
    """It would have to be read, and there is no time for that. beside: others would have to be read, too.

    No size is told: of a file that grows it would be another each time, and each text is said once.
    """
    return UnreadInputError(
        f"it reads {url}{' and others' if beside else ''}, too much to be known by its content within the time that "
        f"looking may take (setting: overhead), and nothing else tells whether it will change: {_QUIET}"
    )


def too_slow(url: str) -> UnreadInputError:
    """Reading it takes too long."""
    return UnreadInputError(
        f"it reads {url}, which takes longer to read than looking may take (setting: overhead): copy it to a faster "
        "place"
    )


def no_file(url: str) -> InputFailure:
    """It is neither a file nor a folder."""
    return InputFailure(f"{url} is no plain file (a pipe, a socket, a device): what it holds cannot be known again")


def folder(url: str) -> InputFailure:
    """It is a folder where a file was expected."""
    return InputFailure(errno.EISDIR, f"{url} is a folder: {_ADVICE[errno.EISDIR]}")
