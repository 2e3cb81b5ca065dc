"""What every index of the catalog does: rows in, rows out, each call one transaction.

Law: a call has either happened as a whole or not at all, whatever ends the process. Decisions that depend on rows
(may this be evicted? who computes?) are taken inside the transaction by the functions of state.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nectar.catalog.state import Accept, Candidate, Decline, Granted, Lapsed, Present, Taken
    from nectar.model.entry import (
        BrokenRecipe,
        Content,
        Entry,
        Job,
        Lease,
        Length,
        Name,
        Reservation,
        Totals,
        Usage,
        Version,
    )
    from nectar.model.forgetting import Asked, Forgotten
    from nectar.model.lineage import Direction, Lineage, Made, Provenance


class Index(Protocol):
    """The rows of a catalog."""

    def version(self) -> Hashable:
        """Another value than before if anything was written since, by whoever."""

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that have one."""

    def inquire(self, programs: Sequence[bytes], latest: int | None = None) -> dict[bytes, list[Entry]]:
        """All entries of each program, whatever their inputs; or so many of each, those that were added last."""

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of keys."""

    def find(self, prefix: str) -> list[Entry]:
        """Entries whose key begins with these hexadecimal digits."""

    def candidates(self) -> Iterator[Candidate]:
        """What policies may know of every entry."""

    def reserve(self, asked: Reservation, now: float) -> Present | Granted | Taken:
        """Asks to be the one who computes a key."""

    def release_reservation(self, token: str) -> None:
        """Gives a reservation back."""

    def add(
        self, entry: Entry, lease: str, protect_for: float, now: float, replaces: bool = False
    ) -> Accept | Decline | Lapsed:
        """Makes a published result visible and ends the lease under which it was written, if it needed one.

        Files that are not accepted are doomed. A lease that was forgotten since means that they may be gone. replaces:
        a result that stands there already is doomed, and not the new one.
        """

    def add_version(self, version: Version) -> None:
        """Remembers that a label had this program; the first time counts."""

    def versions(self, label: str) -> list[Version]:
        """The programs a label has had, newest first."""

    def contents(self, origins: Sequence[bytes]) -> dict[bytes, Content]:
        """What is known of the bytes of inputs, by their origin."""

    def remember_contents(self, contents: Mapping[bytes, Content], now: float) -> None:
        """Keeps what was found out about the bytes of inputs; the latest counts."""

    def lengths(self, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
        """How long the inputs at these places were, the latest first; those that were never seen are left out."""

    def remember_lengths(self, lengths: Sequence[Length], most: int, now: float) -> None:
        """Keeps how long inputs are now, and of each place the latest so many."""

    def observed(self, programs: Sequence[bytes]) -> dict[bytes, str]:
        """What was observed of those programs of which something was."""

    def add_observed(self, program: bytes, told: str, now: float) -> None:
        """Remembers what a program was seen to do; the latest counts."""

    def touch(self, uses: Mapping[bytes, tuple[int, float]]) -> None:
        """Adds uses (number, time of the last) to entries."""

    def supersede(self, keys: Sequence[bytes]) -> None:
        """These entries go first when room is needed, until they are used again."""

    def count_lookups(self, counts: Mapping[bytes, int], now: float) -> None:
        """Adds look-ups to programs, whether they have entries or not."""

    def lookups(self, programs: Sequence[bytes]) -> dict[bytes, int]:
        """How often each program has been looked up."""

    def put_leases(self, leases: Iterable[Lease]) -> list[Lease]:
        """Adds leases, or prolongs those that are there; returns those that hold: the others' results are gone."""

    def announce(self, lease: Lease, limit: int | None, now: float) -> bool:
        """Adds the lease of a writer if all that is and will be on disk stays within the limit; False if not."""

    def drop_leases(self, tokens: Iterable[str]) -> None:
        """Ends leases."""

    def leases(self) -> list[Lease]:
        """All leases, those that ran out included."""

    def reservations(self) -> list[Reservation]:
        """All reservations, those that ran out included."""

    def abandon(self, tokens: Iterable[str], now: float) -> None:
        """Ends leases and reservations whose holders are gone; files that were being written under them are doomed."""

    def expire(self, now: float) -> int:
        """Forgets leases and reservations that ran out; returns how many."""

    def pin(self, key: bytes, pinned: bool) -> bool:
        """Protects an entry, or no longer; False if there is no entry."""

    def evict(
        self, keys: Iterable[bytes], now: float, first: Callable[[list[Entry]], object] | None = None
    ) -> tuple[list[Entry], dict[bytes, str]]:
        """Dooms entries unless pinned or leased; returns those evicted, and why others stay.

        first: is called with them before their rows go, while nobody can begin to use them.
        """

    def lose(self, entry: Entry, now: float) -> bool:
        """Dooms an entry whose files are gone or damaged, whatever protects it; False if it is not there any more.

        Another result that came under the same key meanwhile stays.
        """

    def doomed(self) -> list[tuple[str, int]]:
        """Locations whose files are to be deleted, and their sizes; what is leased waits until it is not."""

    def doom(self, locations: Iterable[tuple[str, int]], now: float) -> None:
        """Says that files at these locations belong to nobody."""

    def forget_doomed(self, locations: Iterable[str]) -> None:
        """Says that the files are gone."""

    def referred(self, locations: Sequence[str]) -> set[str]:
        """Those locations that an entry or a pending deletion refers to."""

    def bind(self, name: str, key: bytes, by: str, now: float, note: str = "") -> Name:
        """Lets a name point to a key from now on; earlier versions stay in its history.

        Nothing new comes of a key it points to already, unless the note is another one.
        """

    def resolve(self, name: str) -> Name | None:
        """What a name points to now."""

    def names(self, prefix: str = "") -> list[Name]:
        """All names that begin with prefix, as they are now."""

    def history(self, name: str) -> list[Name]:
        """All versions of a name, newest first; those at which it was removed included."""

    def unbind(self, name: str, by: str, now: float, note: str = "") -> bool:
        """Lets a name point to nothing from now on; False if it does so already. Its history stays."""

    def broken_rows(self) -> list[tuple[str, int, str]]:
        """Rows whose values are not those that were written: the table, the number of the row, what it is about."""

    def drop_rows(self, rows_of: Sequence[tuple[str, int, str]], by: str, now: float) -> None:
        """Forgets damaged rows; a name whose newest version is one of them points to nothing from now on."""

    def record(self, provenance: Provenance) -> None:
        """Keeps how a result came about; of several accounts of one key the first stays, with the sources of all."""

    def record_source(self, key: bytes, made_from: Sequence[bytes]) -> None:
        """Keeps what else a result was made from, of which nothing more is known."""

    def lose_derived(self, key: bytes, now: float) -> list[Entry]:
        """Dooms every entry that was made from a result, from what was made from it, and so on; returns them."""

    def made(self, keys: Sequence[bytes]) -> dict[bytes, Made]:
        """What is on record of these results, whether they are still kept or not."""

    def find_made(self, prefix: str) -> list[bytes]:
        """Keys on record that begin with these hexadecimal digits."""

    def schema_of(self, key: bytes) -> bytes | None:
        """The schema of a result, as whoever made it wrote it down; None if nobody did, or if it is damaged."""

    def program_of(self, key: bytes) -> bytes | None:
        """The fingerprint of the program that made a result; None if it is not known, or if it is damaged."""

    def trace_results(self, keys: Sequence[bytes], direction: Direction) -> Lineage:
        """Everything these results were made from, or everything that was made from them."""

    def trace_input(self, place: str, direction: Direction) -> Lineage:
        """The same for all results that read a file: its path or URL, or the last parts of it."""

    def trace_function(self, name: str, direction: Direction) -> Lineage:
        """The same for all results that used a function: its whole name, or the last parts of it."""

    def function_texts(self, digests: Sequence[bytes]) -> dict[bytes, str]:
        """The texts of functions as they were; those that are not known are left out."""

    def put_recipe(self, parts: Sequence[bytes], now: float = 0.0) -> bytes:
        """Keeps a recipe, each part once however many recipes share it; returns its identity."""

    def renew_recipe(self, identity: bytes, now: float) -> bool:
        """A recipe is about to be needed, and stays for a while though nothing leads to it; False if there is none."""

    def get_recipe(self, identity: bytes) -> list[bytes] | None:
        """The parts of a recipe, whose digests are right; None if there is none. Raises DamagedRecipeError."""

    def broken_recipes(self) -> list[BrokenRecipe]:
        """All recipes that cannot be handed out, and for which labels they were kept; every byte is read."""

    def drop_recipes(self, identities: Sequence[bytes]) -> None:
        """Forgets recipes that cannot be handed out, and that labels led to them."""

    def forget(self, asked: Asked, by: str, now: float, apply: bool) -> Forgotten:
        """The rows that name what is to be forgotten are gone; or it is told which would be. by: who says so."""

    def erase(self) -> bool:
        """Nothing of what was deleted is left in the index; False if somebody else is reading just now."""

    def log(self, job: Job, most: int) -> None:
        """Appends to the job log, which keeps at most so many."""

    def jobs(self, last: int = 100) -> list[Job]:
        """The last jobs, newest first."""

    def usage(self, now: float) -> Usage:
        """What the store holds, by the rows."""

    def unused(self, since: Sequence[float]) -> list[tuple[int, int]]:
        """For each moment, how many entries have not been used since then, and their bytes."""

    def totals(self) -> Totals:
        """Uses, look-ups, recipes and jobs, counted when asked: it takes longer than usage."""

    def forget_unneeded(self, before: float, most: int) -> int:
        """Deletes records of so many results at most that nobody can reach, and recipes; returns how many rows went."""

    def forget_old(self, before: float) -> int:
        """Deletes what is remembered of inputs and programs that nobody has seen since; returns how many rows went."""

    def passed(self, what: str) -> float:
        """When a pass of this kind was last made, by whichever process; minus infinity if never."""

    def note_pass(self, what: str, now: float) -> None:
        """Says that a pass of this kind is made now."""

    def shrink(self, free: int | None) -> int:
        """What the rows lie in is not much larger than they are; bytes that this gave back. free: those of the disk."""

    def recount(self, apply: bool = True) -> bool:
        """Counts the rows anew; True if the count was wrong. apply: it is right now."""

    def try_writing(self) -> None:
        """Somebody could write at this moment. Raises CatalogUnavailableError if not."""

    def close(self) -> None:
        """Ends the use of the index."""
