"""A folder that was judged, and whether its path still leads to it.

In: a home. Out: nothing, or why nothing is opened or made there any more. Law: whoever may make things in the folder
above (/tmp, say) can put a home of theirs where one was taken away. The folder is held open, so that no other has its
number meanwhile; and who could exchange it cannot bring it back. So what was opened before a look that finds it in its
place was opened in it.
"""

from __future__ import annotations

import errno
import os
import weakref
from pathlib import Path

from nectar.errors import StoreFailure
from nectar.trust import people
from nectar.trust.home import Home, judge_again


class Pinned:
    """The folder of a home, as it is now. Raises UntrustedError if it is not the one that was judged."""

    def __init__(self, home: Home) -> None:
        self.folder: Path = home.folder
        self._fd = os.open(home.folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
        self._close = weakref.finalize(self, os.close, self._fd)
        self._close.atexit = False  # threads may still write then
        judge_again(home, os.fstat(self._fd))

    def refuse_exchanged(self) -> None:
        """Raises StoreFailure if the path of the home leads to nothing, or to something else."""
        try:
            same = os.path.samestat(os.stat(self.folder), os.fstat(self._fd))
        except OSError:
            same = False
        if not same:
            raise StoreFailure(
                errno.ESTALE, f"the home {self.folder} was taken away, and whatever is there now was not looked at: "
                "end the program, and start it again",
            )  # fmt: skip


def pinned(home: Home) -> Pinned | None:
    """The folder of a home, held open; None if it is not there yet, or has no owner."""
    return Pinned(home) if people.KNOWN and home.folder.is_dir() else None
