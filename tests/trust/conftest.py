"""Several users of one machine, played by processes that this one starts: that takes root."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest

ALICE, BOB, MALLORY = 60001, 60002, 60003
TEAM = 60100
MARK_OF_ANOTHER = "verified-01234567-89ab-cdef-0123-456789abcdef"
PROGRAM = """
import sys, nectar
@nectar.memo
def f(n):
    x = 0
    for i in range(300_000): x += i * n
    return [x] * 3000
f(int(sys.argv[1]))
session = nectar.session.current()
session.settle()
print(nectar.last_run(), nectar.last_run().why)
"""


def as_user(user, *command, groups=(), umask=0o022, folder="/", home=None, **environment):
    """A command is run by another user, in these groups; the first one is that of the files it makes."""
    who = ["setpriv", f"--reuid={user}", f"--regid={groups[0] if groups else user}"]
    who += [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("NECTAR_", "XDG_"))}
    return subprocess.run(
        [*who, *command], umask=umask, cwd=folder,
        env={**outside, "HOME": str(home or folder), "NECTAR_OVERHEAD": "unlimited", **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@lru_cache(maxsize=1)
def why_not():
    """Why no other users can be played here; empty if they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return "only root can play several users, with setpriv"
    probe = as_user(ALICE, sys.executable, "-c", "import nectar, blake3, msgspec")
    return f"other users cannot use this interpreter: {probe.stderr.strip()[-200:]}" if probe.returncode else ""


@pytest.fixture
def place():
    """A folder that all users can get at, and only root may write to."""
    if reason := why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="nectar-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def of(place):
    """A folder in `place` that belongs to a user."""

    def made(user, name, mode=0o755, group=None):
        path = place / name
        path.mkdir(parents=True)
        os.chown(path, user, user if group is None else group)
        path.chmod(mode)
        return path

    return made


def give_by_list(path, kind, user):
    """A list of rights of a folder lets in another user. kind: access, or default: for all that is made there."""
    anybody = 0xFFFFFFFF
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, rights, who in (
            (0x01, 7, anybody), (0x02, 7, user), (0x04, 5, anybody), (0x10, 7, anybody), (0x20, 5, anybody),
        )
    )  # fmt: skip
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", acl)
    except (OSError, AttributeError) as error:
        pytest.skip(f"no lists of rights here: {error}")


def memo(user, n, home, **more):
    """What a memoised function says after a user has called it; and what is on stderr."""
    done = as_user(user, sys.executable, "-c", PROGRAM, str(n), NECTAR_HOME=str(home), **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def nectar(user, *arguments, **more):
    """The command is run by a user."""
    return as_user(user, sys.executable, "-m", "nectar.cli", *map(str, arguments), **more)
