"""Writes vectors.json for the running Python. Only for a new scheme or a new Python: see CONTRIBUTING."""

import importlib
import json
import sys
from pathlib import Path

from nectar.keys.scheme import SCHEME

sys.path.insert(0, str(Path(__file__).parent))
program = importlib.import_module("program")

path = Path(__file__).parent / "vectors.json"
vectors = json.loads(path.read_text()) if path.exists() else {}
vectors[f"scheme {SCHEME}, Python {sys.version_info[0]}.{sys.version_info[1]}"] = program.fingerprints()
path.write_text(json.dumps(vectors, indent=1, sort_keys=True) + "\n")
