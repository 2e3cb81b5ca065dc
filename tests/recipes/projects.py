"""A program whose results are deleted and made again, whatever its engine."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from nectar.catalog.embedded import open_catalog
from nectar.errors import RebuildError
from nectar.recipes.rebuild import rebuilt
from nectar.recipes.recipe import found_by, put, recipes_of
from nectar.settings import Settings
from nectar.store.read import Result

SOURCE = Path(__file__).parents[2] / "src"


class Project:
    """A program in a folder of its own, run in processes of its own, and the store it uses."""

    def __init__(self, root):
        self.root = root
        self.folder = root / "project"
        self.folder.mkdir()
        self.settings = Settings(home=root / "home", reserve=0)
        self.environment = {
            **os.environ, "NECTAR_HOME": str(self.settings.home), "NECTAR_RESERVE": "0", "PYTHONPATH": str(SOURCE),
        }  # fmt: skip
        self.environment.pop("SPARK_REMOTE", None)

    # the program

    def write(self, **texts):
        for name, text in texts.items():
            path = self.folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, *arguments, fails=False):
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert fails or done.returncode == 0, done.stderr
        return done

    def nectar(self, *arguments, fails=False):
        return self.python("-m", "nectar.cli", *arguments, fails=fails)

    def run(self):
        """Runs the program; the values that it printed, a list for each line."""
        return [json.loads(line) for line in self.nectar("run", "main.py").stdout.splitlines()]

    def lose_sources(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    # the store

    def open(self):
        return open_catalog(self.settings)

    @contextmanager
    def catalog(self):
        catalog = self.open()
        try:
            yield catalog
        finally:
            catalog.close()

    def read(self, catalog, entry):
        """What an entry holds, as the engine has it, in memory of its own."""
        opened = catalog.open(entry)
        assert isinstance(opened, Result)
        with opened:
            return self.copy(opened)

    def evict(self):
        """Deletes all tables; returns what was there, by key."""
        with self.catalog() as catalog:
            entries = [entry for entry in catalog.index.entries() if entry.kind in ("arrow", "parquet")]
            found = {entry.key: self.read(catalog, entry) for entry in entries}
            assert catalog.discard(entries) == len(entries)
            return found

    def evict_one(self):
        """The same, where there is one result."""
        ((key, found),) = self.evict().items()
        return key, found

    def recipe(self, key):
        with self.catalog() as catalog:
            return recipes_of(catalog, key)[0]

    def change_recipe(self, key, change, alone=True):
        """The latest recipe of a key is another one. alone: those it had are forgotten."""
        with self.catalog() as catalog:
            written = recipes_of(catalog, key)[0]
            if alone:
                forget = "DELETE FROM versions WHERE label LIKE 'recipe %'"
                catalog.index._write("forget", lambda rows: rows.execute(forget))
            time.sleep(0.01)  # the latest counts
            found_by(catalog, key, put(catalog, replace(written, recipe=change(written.recipe))))

    def rebuild(self, key, **options):
        with self.catalog() as catalog:
            done = rebuilt(catalog, key, self.settings, **options)
            return done, self.read(catalog, done.entry)


def reasons_of(project, key, **options):
    """Why a result cannot be rebuilt."""
    with pytest.raises(RebuildError) as raised:
        project.rebuild(key, **options)
    return raised.value.reasons


def write_distribution(folder, name, version, files):
    """An installed package, as an installer leaves it."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = []
    for path, text in files.items():
        (folder / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("\n".join([*lines, f"{info.name}/RECORD,,", ""]))
