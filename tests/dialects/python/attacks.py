"""What attempts to get a wrong answer out of a memoised function have in common.

The oracle is the function itself: whatever the order of calls, the memoised function gives what the plain one gives.
"""

import nectar


def shown(value):
    """A text that tells values apart, types and signs included; NaN is like itself."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return f"{type(value).__name__} {value!r}"


def attack(function, *calls, rounds=2):
    """Every call gives what the plain function gives. calls: functions that make the arguments, new each time."""
    memoised = nectar.memo(function)
    for _ in range(rounds):
        for make in calls:
            args, kwargs = _split(make())
            expected = shown(function(*args, **kwargs))
            args, kwargs = _split(make())
            assert shown(memoised(*args, **kwargs)) == expected
    return memoised


def _split(made):
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) and isinstance(made[0], tuple):
        return made
    return (made if isinstance(made, tuple) else (made,)), {}


def outcome():
    return nectar.last_run().parts[-1].outcome


def refused(memoised, *args, **kwargs):
    memoised(*args, **kwargs)
    part = nectar.last_run().parts[-1]
    return part.outcome == "uncacheable" or part.keeping.startswith("not kept")


class Shape:
    scale = 1

    def __init__(self, size):
        self.size = size

    def area(self):
        return self.size * self.scale


def area(shape):
    return shape.area()
