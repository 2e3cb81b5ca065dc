"""Whoever runs this process, as those who find a result later are told."""

from __future__ import annotations

import os
import socket


def person() -> str:
    """The name of the user and of the machine."""
    return f"{_user()}@{socket.gethostname()}"


def _user() -> str:
    """The user, as the system knows them, and as `getpass` tells; which loads more than it needs."""
    named = next(filter(None, map(os.environ.get, ("LOGNAME", "USER", "LNAME", "USERNAME"))), None)
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.getuid())[0]
    except (KeyError, OSError, ImportError):  # a container may run under a number without a name
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "somebody"
