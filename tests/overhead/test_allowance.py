"""Time for reading files is counted in bytes; the clock counts only where a disk is far slower than any good one."""

import pytest

from nectar.overhead import allowance as allowance_module
from nectar.overhead.allowance import Allowance


class Timer:
    now = 0.0

    def __call__(self):
        return self.now


def test_files_are_granted_until_the_time_is_used_up():
    allowance = Allowance(0.02)
    assert allowance.grants(10_000_000)
    assert allowance.take(30_000_000)
    assert not allowance.take(30_000_000)
    assert allowance.take(1_000_000)  # what is refused takes nothing
    assert allowance.left == pytest.approx(0.02 - 0.0155 - 2 * 4e-5)


def test_many_small_files_take_their_time():
    assert Allowance(0.02).grants(0, 400)
    assert not Allowance(0.02).grants(0, 60_000)


def test_a_slow_disk_is_waited_for_a_moment_and_no_longer(monkeypatch):
    monkeypatch.setattr(allowance_module, "crowding", lambda: 1.0)
    timer = Timer()
    allowance = Allowance(0.02, timer)
    timer.now = 100.0
    assert not allowance.is_over()  # nothing was read
    assert allowance.take(1000)
    timer.now += 0.2
    assert not allowance.is_over()
    timer.now += 0.1
    assert allowance.is_over()
    monkeypatch.setattr(allowance_module, "crowding", lambda: 3.0)  # others want to run, too
    assert not allowance.is_over()
