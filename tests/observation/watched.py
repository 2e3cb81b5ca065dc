"""What a watch sees of a piece of work."""

import functools

from nectar.observation.watch import Watch


def seen(work, *args, **options):
    with Watch(**options) as watch:
        work(*args)
    return watch.observations()


def told(work, *args, dir_fd=None, **options):
    if dir_fd is not None:
        work = functools.partial(work, dir_fd=dir_fd)
    return [each.text for each in seen(work, *args, **options)]


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text="x"):
    with open(path, "w") as file:
        file.write(text)
