"""Programs of a demo, each run in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TIME_LIMIT: Final = 180  # seconds for one run


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float


def run_python(arguments: Sequence[str], store: Path) -> Ended:
    """Runs Python with these arguments, with Nectar on and its results in a folder; away from files of settings."""
    search = [str(Path(entry).resolve()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    settings = {"NECTAR_HOME": str(store), "NECTAR_OFF": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(search)},
        cwd=tempfile.gettempdir(), capture_output=True, encoding="utf-8", timeout=_TIME_LIMIT, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)
