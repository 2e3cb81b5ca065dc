"""Whether a failure to read means that bytes of a result are lost, or only that they cannot be read now.

In: what went wrong. Out: yes or no. Law: what is not certainly lost is not taken for lost, since everything that was
made from it is deleted with it. A device that fails (EIO) has lost what it cannot read, and what cannot be taken apart
is not what was written. Want of memory, of descriptors or of rights, and a network disk that does not answer, say
nothing about a result.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from nectar.errors import StoreFailure
from nectar.store.files import failure

_NUMBER: Final = r"\(os error (\d+)\)"  # as libraries written in Rust tell of what the system has said


class DamagedError(StoreFailure):
    """Bytes of a result are not those that were written, or cannot be."""


def is_loss(error: BaseException) -> bool:
    """Whether bytes are lost; otherwise reading them may go well another time."""
    return isinstance(error, DamagedError) or _errno_of(error) == errno.EIO


def unparsed(error: Exception, kind: str) -> StoreFailure:
    """What to raise when a library could not read files: that they are damaged, unless the system is to blame."""
    number = _errno_of(error)
    if number is not None:
        return failure(OSError(number, os.strerror(number)), "read", f"{kind} files of a result ({error})")
    return DamagedError(f"the parts are no {kind} files: {error}; compute the result again")


def _errno_of(error: BaseException) -> int | None:
    """What the system has said, as far as whoever asked it has passed it on."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    told = None if isinstance(error, StoreFailure) else re.search(_NUMBER, str(error))
    return int(told[1]) if told else None
