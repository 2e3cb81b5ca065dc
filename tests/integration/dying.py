"""Processes that are killed at a step of their choice, for the tests of crashes."""

import os
import signal
import sys
import traceback


class Steps:
    """A listener that counts the steps of a dry run, or ends the process at one of them."""

    def __init__(self, fatal: int = 0) -> None:
        self.fatal = fatal
        self.seen: list[str] = []

    def __call__(self, step: str) -> None:
        """Hears of a step before it happens."""
        self.seen.append(step)
        if len(self.seen) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work, fatal: int = 0) -> tuple[list[str], bool]:
    """Lines that work(steps, report) reported in a fork before its end, and whether it was killed there.

    The fork begins with nothing of Nectar open and with no thread but its own.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            work(Steps(fatal), lambda line: os.write(writing, f"{line}\n".encode()))
            status = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, encoding="utf-8") as lines:
        reported = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or os.WEXITSTATUS(status) == 0, "the child failed"
    return reported, killed
