"""Consent: what the settings file of a folder asks for, and a person has agreed to.

A settings file comes with the folder that it lies in, such as a cloned repository: whoever wrote it is not the user.
What it asks for that could harm (another home, another store, less looking) counts only after `nectar trust`. Consent
is given to a file at its place with these values: if one of them changes, it has to be given again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nectar.errors import UntrustedError
from nectar.trust import files
from nectar.trust.folders import make_folders
from nectar.trust.places import distrust


@dataclass(frozen=True, slots=True)
class Asked:
    """What a settings file asks for that needs consent."""

    file: Path
    values: Mapping[str, Any]

    @property
    def _note(self) -> Path:
        said = json.dumps([os.path.realpath(self.file), sorted(self.values.items())], default=repr)
        return _folder() / f"{hashlib.blake2b(said.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}.json"

    @property
    def agreed(self) -> bool:
        """Whether this user has consented to it."""
        try:
            note = self._note
        except RuntimeError:  # a user without a folder of their own has consented to nothing
            return False
        try:
            return note.is_absolute() and not distrust(note, used=files.read_known(note)[1])
        except OSError:  # there is none
            return False

    def agree(self) -> None:
        """The user consents: from now on these values count. Raises UntrustedError where others would decide."""
        if reason := make_folders(_folder()):
            raise UntrustedError(f"your consent cannot be remembered: {reason}")
        said = {"file": os.path.realpath(self.file), "settings": dict(self.values)}
        files.replace(self._note, json.dumps(said, default=repr).encode("utf-8", "surrogatepass"))

    def withdraw(self) -> None:
        """The user consents no longer."""
        with suppress(FileNotFoundError):
            self._note.unlink()


def _folder() -> Path:
    """Where consents are remembered: beside the settings of the user's other programs, and in no home."""
    from platformdirs import user_config_path

    return user_config_path("nectar", appauthor=False) / "trusted"
