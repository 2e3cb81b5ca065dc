"""Are the files of a recipe what they were? And what are they called in its keys?

In: a recipe, and what tells the identities of files now. Out: a sentence for each file that is not what it was; and
identities that have the names of the recipe. Law: a file gets a name of the recipe only if it is known to hold the same
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from nectar.catalog.service import Catalog
from nectar.clock import Clock
from nectar.errors import InputFailure, MissingInputError
from nectar.recipes.recipe import InputFile, Recipe
from nectar.store.inputs.identify import Inputs
from nectar.store.inputs.identity import Identity


def input_file(identity: Identity) -> InputFile:
    """A file that was read, as a recipe has it."""
    content = identity.names[0] if identity.exposed else identity.content
    return InputFile(identity.url, identity.size, content, identity.origin)


def files_of(recipe: Recipe) -> list[InputFile]:
    """All files that were read, each once."""
    return list(dict.fromkeys(file for scan in recipe.scans for file in scan.files))


def lost_inputs(catalog: Catalog, recipe: Recipe, inputs: Inputs, by_content: Inputs) -> list[str]:
    """A sentence for each file that is not what it was; and what still can be had, if there is any such file."""
    files = files_of(recipe)
    told = [sentence for file in files if (sentence := _lost(inputs, by_content, file))]
    if not told:
        return []
    still = catalog.index.lookup(recipe.made_from)
    same = len(files) - len(told)
    had = [f"{same} of {len(files)} files are what they were"] if same else []
    had += [f"the result {key.hex()[:12]} ({entry.about}), which it was made from, is still kept"
            for key, entry in still.items()]  # fmt: skip
    return [*told, *had]


def _lost(inputs: Inputs, by_content: Inputs, file: InputFile) -> str:
    """Why a file is not what it was; empty if it is."""
    try:
        now = inputs.identify([file.url])[0]
        if is_same(now, file, by_content):
            return ""
    except MissingInputError:
        return f"the file {file.url} is gone"
    except InputFailure as failure:
        return f"the file {file.url} cannot be read: {failure}"
    if None not in (now.size, file.size) and now.size != file.size:
        return f"the file {file.url} was changed: it had {file.size} bytes and has {now.size}"
    return f"the file {file.url} was rewritten, replaced or touched since, and may hold something else"


def is_same(now: Identity, file: InputFile, by_content: Inputs) -> bool:
    """Whether a file holds what it held. It is read if nothing else tells."""
    if _shares_a_name(now, file):
        return True
    return file.content is not None and _shares_a_name(by_content.identify([now.url])[0], file)


def _shares_a_name(now: Identity, file: InputFile) -> bool:
    if now.exposed and file.content is not None:  # its own files had a name that nobody else could give them
        return file.content in now.names
    return not set(now.names).isdisjoint(file.names)


class RecordedInputs(Inputs):
    """Tells identities by the names that a recipe has, so that keys are made as they were made then.

    by_content: reads files. originals: paths of the recipe, by the paths under which their files are read now.
    """

    def __init__(
        self, catalog: Catalog, clock: Clock, recipe: Recipe, by_content: Inputs, originals: Mapping[str, str],
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(catalog, clock, **options)
        self._files = {file.url: file for file in files_of(recipe)}
        self._reading, self._originals = by_content, originals

    def identify(self, urls: Iterable[str | os.PathLike[str]]) -> list[Identity]:
        """The identity of each, in the same order."""
        found = super().identify([self._originals.get(os.fspath(url), url) for url in urls])
        return [self._named(identity) for identity in found]

    def _named(self, identity: Identity) -> Identity:
        file = self._files.get(identity.url)
        if file is None or not is_same(identity, file, self._reading):
            return identity
        return replace(identity, content=file.content, origin=file.origin, exposed=False)  # as they are
