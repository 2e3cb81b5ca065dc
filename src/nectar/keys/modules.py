"""Tables about objects of modules, kept up with the modules that are there, by several threads at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType

from nectar.forks import in_child


class Follower:
    """Runs an action once modules were imported since the last time. Law: nobody goes on before it has ended.

    The action tells whether it took everything in; if it did not, it runs again at the next question.
    """

    def __init__(self, take_in: Callable[[], bool]) -> None:
        self._take_in = take_in
        self._lock = threading.RLock()
        self.seen = -1  # modules, when the action ran
        in_child(self._begin_again)

    def follow(self) -> None:
        """The action has run for the modules that are there now."""
        if self.seen != len(sys.modules):
            with self._lock:
                if self.seen != len(sys.modules):
                    self._run()

    def look_again(self) -> None:
        """The action runs, also if there are no new modules: some may have been replaced."""
        with self._lock:
            self._run()

    def _run(self) -> None:
        there = len(sys.modules)
        self.seen = there if self._take_in() else -1

    def _begin_again(self) -> None:
        """A child that was forked while another thread ran the action has its lock and half of its work."""
        self._lock = threading.RLock()
        self.seen = -1


def is_arriving(module: ModuleType) -> bool:
    """Whether a module is being imported in this moment, so that more may be in it the next."""
    return bool(getattr(vars(module).get("__spec__"), "_initializing", False))
