"""Where relative paths of a program begin: part of a recipe."""

from __future__ import annotations

import os


def working_folder() -> str:
    """Where relative paths begin now; empty if that folder is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""
