"""A recipe: what made a result, written down so that a fresh process can make it again without the user's files.

In: a Recipe and its large pieces (the plan, the text of each module). Out: rows of the catalog, found by the key of the
result, whether it is still there or not, as long as somebody can need them. Each piece is stored once, whoever
shares it.

Law: a recipe holds no credentials, and nothing in it is believed: whoever runs it computes the fingerprints anew. One
that would hold a credential, or that cannot be run for another reason, is written without its plan and its texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import blake3
import msgspec

from nectar.catalog.losses import whole_recipe
from nectar.catalog.service import Catalog
from nectar.errors import DamagedRecipeError
from nectar.model.entry import RECIPE_LABEL, Version
from nectar.trust.secrets import looks_secret, redacted

FORMAT: Final = 1
SECRET: Final = (
    "what may be a credential, and recipes hold none: read it from the environment inside the function that needs it, "
    "or hand it over as a storage option"
)
_MOST: Final = 5  # recipes of one key that are looked at, the latest first


class Module(msgspec.Struct, frozen=True):
    """A module of the application. path: where its text lay. digest: of that text, which is a piece of the recipe."""

    name: str
    package: bool
    path: str
    digest: bytes


class Package(msgspec.Struct, frozen=True):
    """An installed package that is needed. version: empty if any will do. module: what is reached of it; by whom."""

    name: str
    version: str
    module: str
    used_by: str


class InputFile(msgspec.Struct, frozen=True):
    """A file that was read. url: absolute, without credentials. content, origin: its names, as far as it has them."""

    url: str
    size: int | None
    content: bytes | None
    origin: bytes | None

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names it had, the best first."""
        return tuple(name for name in (self.content, self.origin) if name is not None)


class Scan(msgspec.Struct, frozen=True):
    """Files that were read as one stream. step: where in the plan. paths: as the engine opens them."""

    step: int
    paths: tuple[str, ...]
    files: tuple[InputFile, ...]


class Checksum(msgspec.Struct, frozen=True):
    """What a table held, in a few numbers.

    exact: of everything, in its order. unordered: of its rows in any order; made by the engine, so that two versions of
    it may disagree. others: the same without columns of floats; sums: of each of those, its name, the sum of its
    values and of their sizes.
    """

    rows: int
    exact: bytes
    unordered: bytes
    others: bytes
    sums: tuple[tuple[str, float, float], ...]


class Environment(msgspec.Struct, frozen=True):
    """Where a result was made, as far as that can change it. engine_folder: where the engine was installed."""

    python: str
    implementation: str
    engine: str
    engine_version: str
    engine_folder: str
    scheme: int
    system: str
    machine: str


class Proof(msgspec.Struct, frozen=True):
    """Fingerprint and key of a program, and the fingerprints of all its parts, which say where another one differs."""

    program: bytes
    key: bytes
    parts: tuple[bytes, ...]


class Recipe(msgspec.Struct, frozen=True):
    """How a result was made.

    key: what it is found by. proof: of the plan as it stands; fixed: of the plan that reads exactly the files that were
    read, if the plan names folders or patterns. folder: which relative paths are meant to begin in. ordered: the engine
    promises the order of the rows; settled: and that two runs give the same ones. refusals: why it cannot be run again;
    empty if it can. made_from: keys of results that were used on the way. flags: how the engine optimised it, if not as
    usual.
    """

    dialect: str
    key: bytes
    program: bytes
    about: str
    seconds: float
    environment: Environment
    proof: Proof
    fixed: Proof | None = None
    packages: tuple[Package, ...] = ()
    modules: tuple[Module, ...] = ()
    scans: tuple[Scan, ...] = ()
    made_from: tuple[bytes, ...] = ()
    folder: str = ""
    ordered: bool = True
    settled: bool = True
    checksum: Checksum | None = None
    refusals: tuple[str, ...] = ()
    flags: str = ""
    format: int = FORMAT


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.msgpack.Decoder(Recipe).decode


@dataclass(slots=True)
class Code:
    """What has to be there for functions to run.

    modules: of the application. texts: theirs, by name. packages: by distribution. refusals: what could not be
    captured, and why.
    """

    modules: list[Module] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    packages: dict[str, Package] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)


class Written(msgspec.Struct, frozen=True):
    """A recipe with its large pieces, as it lies in a catalog under its identity."""

    recipe: Recipe
    plan: bytes
    texts: dict[str, str]  # of modules, by name
    identity: bytes = b""


class Recorded(msgspec.Struct, frozen=True):
    """identity: of a recipe that is kept; None if there is none. rebuildable: it can be run, as far as is known."""

    identity: bytes | None = None
    rebuildable: bool = False


def digest_of_text(text: str) -> bytes:
    """What the text of a module is known by."""
    return blake3.blake3(_encoded(text)).digest()


def without_secrets(written: Written) -> Written:
    """The same recipe; or, if anything in it may be a credential, one that cannot be run, and says why."""
    recipe = msgspec.structs.replace(written.recipe, about=redacted(written.recipe.about))
    from nectar.trust.literals import code_holds_secret  # takes long to load

    if not recipe.refusals and not looks_secret(written.plan):
        named = next((name for name, text in written.texts.items() if code_holds_secret(text)), "")
        if not named:
            return msgspec.structs.replace(written, recipe=recipe)
        told = f"the module {named} holds {SECRET}"
    else:
        told = f"its plan holds {SECRET}"
    refusals = recipe.refusals or (told,)
    refused = msgspec.structs.replace(recipe, refusals=tuple(map(redacted, refusals)), modules=())
    return Written(refused, b"", {}, written.identity)


def put(catalog: Catalog, written: Written) -> bytes:
    """The recipe is kept, under the identity that is returned; `found_by` lets its key lead to it."""
    written = without_secrets(written)
    texts = [_encoded(written.texts[module.name]) for module in written.recipe.modules]
    return catalog.put_recipe([msgspec.msgpack.encode(written.recipe), written.plan, *texts])


def found_by(catalog: Catalog, key: bytes, identity: bytes) -> None:
    """The key leads to the recipe, also when its result is gone."""
    catalog.index.add_version(Version(_label(key), identity, identity, catalog.clock.now()))


def record(catalog: Catalog, written: Written) -> Recorded:
    """The recipe is kept, unless one is that does the same, and its key leads to it.

    Before the result itself: one that is kept and deleted without its recipe being found would be lost. One for
    which there is no room is not kept.
    """
    written = without_secrets(written)
    identity = same_as(catalog, written)
    if identity is None or not catalog.index.renew_recipe(identity, catalog.clock.now()):
        if not catalog.collector.has_room_for_record(_size(written)):
            return Recorded()
        identity = put(catalog, written)
    found_by(catalog, written.recipe.key, identity)
    return Recorded(identity, not written.recipe.refusals)


def _size(written: Written) -> int:
    return len(written.plan) + sum(map(len, written.texts.values()))


def recipes_of(catalog: Catalog, key: bytes) -> list[Written]:
    """The whole recipes of a key, the latest first: the same result may have been made in several ways."""
    identities = [version.trace for version in catalog.index.versions(_label(key))[:_MOST]]
    found = [_read(whole_recipe(catalog.index, identity), identity) for identity in identities]
    return [each for each in found if each is not None and each.recipe.key == key]


def damage_of(catalog: Catalog, key: bytes) -> list[str]:
    """Why recipes of a key cannot be read, as far as they are damaged."""
    told = []
    for version in catalog.index.versions(_label(key))[:_MOST]:
        try:
            if catalog.index.get_recipe(version.trace) is None:
                told.append("its recipe is missing from the catalog: run the program that made it")
        except DamagedRecipeError as failure:
            told.append(str(failure))
    return told


def same_as(catalog: Catalog, written: Written) -> bytes | None:
    """The identity of a recipe that is kept already, and does the same; what one run of it took and gave aside."""
    for known in recipes_of(catalog, written.recipe.key):
        ours, theirs = (
            msgspec.structs.replace(each.recipe, seconds=0.0, made_from=(), checksum=None) for each in (written, known)
        )
        if ours == theirs and written.plan == known.plan:
            return known.identity
    return None


def is_known(catalog: Catalog, key: bytes) -> bool:
    """Whether there is a recipe for a key."""
    return bool(catalog.index.versions(_label(key)))


def can_be_run(catalog: Catalog, key: bytes) -> bool:
    """Whether there is a recipe for a key that nothing was known to be in the way of, when it was written."""
    return any(not written.recipe.refusals for written in recipes_of(catalog, key))


def _label(key: bytes) -> str:
    """Recipes stand among the versions of labels, under one that nobody else uses."""
    return f"{RECIPE_LABEL}{key.hex()}"


def _read(parts: Sequence[bytes] | None, identity: bytes) -> Written | None:
    if not parts:
        return None
    try:
        recipe = _decode(parts[0])
    except msgspec.DecodeError:  # of another version of Nectar
        return None
    if recipe.format != FORMAT or len(parts) != 2 + len(recipe.modules):
        return None
    texts = {module.name: _decoded(text) for module, text in zip(recipe.modules, parts[2:], strict=True)}
    return Written(recipe, parts[1], texts, identity)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
