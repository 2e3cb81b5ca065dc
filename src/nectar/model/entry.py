"""Entry: one result that is known, where it lies and what it is worth."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct, field

Kind = Literal["arrow", "parquet", "object"]
RECIPE_LABEL: Final = "recipe "  # and a key in hexadecimal digits: the label whose versions are the recipes of a result
SUPERSEDED: Final = -1.0  # in place of the time until which an entry is protected: it goes before all others


class Span(Struct, frozen=True):
    """The run of extents of one input that a result was computed from: first and last identity, and how many."""

    first: bytes
    last: bytes
    count: int


class Entry(Struct, frozen=True):
    """A result under its key.

    key: 32 bytes, program and inputs. program: fingerprint of the program alone. location: name of its folder in the
    store, or empty if the result lies inline. manifest: digest of its manifest. size, files: what it takes on disk.
    seconds: machine time to make it from nothing, everything it was made from included. rebuildable: whether its
    recipe and its inputs are still there to run it again. producer, signature: who made it, and the proof.
    """

    key: bytes
    program: bytes
    kind: Kind
    location: str
    manifest: bytes
    size: int
    files: int
    rows: int
    seconds: float
    created: float
    used: float
    hits: int = 0
    inline: bytes | None = None
    pinned: bool = False
    rebuildable: bool = True
    recipe: bytes | None = None
    spans: tuple[Span, ...] = ()
    producer: str = ""
    signature: bytes = b""
    protected: float = 0.0  # until when a new entry is given the chance to show its use; or SUPERSEDED
    about: str = ""  # what was computed, for people: a call, or the last step of a program

    @property
    def is_table(self) -> bool:
        """Whether it has rows and columns."""
        return self.kind != "object"


LONGEST: Final = 86400.0  # seconds that a lease holds at most unless it is prolonged


class Lease(Struct, frozen=True):
    """A promise not to delete a location before a time. size: bytes that are about to be written there.

    holder: the process that it was made to; it ends with that process.
    """

    token: str
    location: str
    holder: str
    until: float
    size: int = 0

    @property
    def who(self) -> str:
        """The holder as people know it: host and number of the process."""
        return self.holder.partition("/")[0]


class Reservation(Struct, frozen=True):
    """One holder computes a key; others may wait until it is there or the time is up."""

    key: bytes
    token: str
    holder: str
    until: float


class Name(Struct, frozen=True):
    """A path such as team/top_urls that pointed to a key from a time on. Versions count from 1, and are never changed.

    key: empty if the name was removed then. by, note: who said so, and why.
    """

    name: str
    version: int
    key: bytes
    since: float
    by: str = ""
    note: str = ""

    @property
    def removed(self) -> bool:
        """Whether the name pointed to nothing from then on."""
        return not self.key


class Version(Struct, frozen=True):
    """What a function or script, by the name people know it by, was at a time: its program, and the trace of it.

    trace: identity of the recipe that holds the trace, to compare with later ones.
    """

    label: str
    program: bytes
    trace: bytes
    since: float


class Content(Struct, frozen=True):
    """The digest of the bytes of an input. certain: the file had been quiet when they were read."""

    digest: bytes
    certain: bool


class Length(Struct, frozen=True):
    """How long an input was once, and what it held.

    place: 32 bytes that stand for where it lies. stamp: hash of what its system said of it. quiet: the stamp is a name.
    digest: of its bytes; None if they were not read.
    """

    place: bytes
    size: int
    stamp: bytes
    quiet: bool
    digest: bytes | None


USUAL_RECORDS: Final = 1 << 20  # bytes of an index that count as nothing: of an empty one, and a thousand results


class Usage(Struct, frozen=True):
    """What a store holds. pending: bytes that leases have announced; doomed: bytes of deleted entries still on disk.

    inline: bytes of results that lie in their rows. index: bytes of all rows, beyond the usual.
    """

    entries: int = 0
    size: int = 0
    files: int = 0
    pending: int = 0
    doomed: int = 0
    inline: int = 0
    index: int = 0

    @property
    def records(self) -> int:
        """Bytes of what is on record besides the results: recipes, provenance and the like."""
        return max(0, self.index - self.inline)

    @property
    def total(self) -> int:
        """Bytes on disk, those about to be written included."""
        return self.size + self.pending + self.doomed + self.records


class Totals(Struct, frozen=True):
    """What is remembered besides the results, for people who want to know whether keeping pays.

    hits, saved: uses of the entries that are there now, and the machine time that was not spent again. programs,
    lookups: programs that were looked up, and how often. recipe_bytes: of all recipes, compressed.
    """

    hits: int = 0
    saved: float = 0.0
    pinned: int = 0
    names: int = 0
    programs: int = 0
    lookups: int = 0
    recipes: int = 0
    recipe_bytes: int = 0
    jobs: int = 0


class Job(Struct, frozen=True):
    """What one run did, for later analysis."""

    at: float
    program: bytes
    key: bytes
    seconds: float
    parts: tuple[JobPart, ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()


class JobPart(Struct, frozen=True):
    """One part of a run: what became of it."""

    program: bytes
    key: bytes
    outcome: Literal["hit", "computed", "kept", "increment"]
    seconds: float
    size: int = 0
    details: dict[str, str] = field(default_factory=dict)


class BrokenRecipe(Struct, frozen=True):
    """A recipe that cannot be handed out, why, and the labels of what it was kept for."""

    identity: bytes
    reason: str
    labels: tuple[str, ...] = ()
