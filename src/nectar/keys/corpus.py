"""The fingerprint as the corpus runner calls it: a function in, text out."""

from __future__ import annotations

from nectar.keys.api import fingerprint as _fingerprint


def fingerprint(f: object, types: object = None) -> str:
    """The fingerprint of f as hex."""
    return str(_fingerprint(f, types))
