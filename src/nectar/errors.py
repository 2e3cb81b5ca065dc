"""All exceptions Nectar raises, in one tree.

    NectarError
    ├── UserError                 something the caller can change
    │   ├── UncacheableError      a function reads or changes what its fingerprint cannot see (also TypeError)
    │   ├── UnencodableError      a value has no canonical bytes (also TypeError)
    │   ├── RebuildError          a deleted result cannot be made again as things are
    │   ├── SettingError          a setting has a value that means nothing (also ValueError)
    │   ├── UntrustedError        others decide what lies in a home, a store or a folder that leads to it
    │   ├── UnknownNameError      a name is none, or points to nothing (also LookupError)
    │   └── NotSavedError         a result cannot be kept, so that no name can point to it
    ├── EnvironmentFailure        the machine, a file or a package is not as it should be
    │   ├── MissingExtraError     an optional package is not installed (also ImportError)
    │   ├── StoreFailure          the store cannot be read or written (also OSError)
    │   ├── InputFailure          a file or URL that a program reads cannot be identified (also OSError)
    │   │   ├── MissingInputError it is not there (also FileNotFoundError)
    │   │   └── UnreadInputError  reading it to find out what it holds would take longer than it may
    │   ├── DeletedError          a result was deleted and cannot be made again (also FileNotFoundError)
    │   └── CatalogFailure        the catalog cannot be opened or is from a newer version
    │       ├── CatalogUnavailableError  it cannot be used now, and may be well again later
    │       ├── DamagedNameError    what a name points to is not what was written
    │       └── DamagedRecipeError  parts of a recipe are missing, or are not what was written
    └── InternalError             a mistake in Nectar itself

Every message says what happened, to what, and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nectar.model.refusal import Refusal


class NectarError(Exception):
    """Base of every exception raised by Nectar."""


class UserError(NectarError):
    """Something the caller asked for cannot be done as asked."""


class EnvironmentFailure(NectarError):
    """The machine, a file or an installed package is not as it should be."""


class InternalError(NectarError):
    """Nectar itself made a mistake; please report it."""


class UncacheableError(UserError, TypeError):
    """A function reads or changes something that its fingerprint cannot see."""

    def __init__(self, subject: str, refusals: Sequence[Refusal]) -> None:
        self.subject = subject
        self.refusals = tuple(refusals)
        lines = "\n".join(f"  - {refusal}" for refusal in self.refusals)
        super().__init__(
            f"{subject} cannot be fingerprinted:\n{lines}\n"
            "If you know that its result depends on its arguments alone, say so with nectar.pure(f), "
            "or name what else it depends on with nectar.depends_on(f, ...)."
        )


class UnencodableError(UserError, TypeError):
    """A value has no canonical bytes: it says nothing reliable about its own content."""

    def __init__(self, what: str, path: str, reason: str) -> None:
        self.what = what
        self.path = path
        self.reason = reason
        super().__init__(
            f"cannot fingerprint {what} at {path}: {reason}. "
            "Give its type an encoding with nectar.register_fingerprint(type, encode), or do not capture it."
        )


class TooLargeError(UserError):
    """A value holds so much that looking at all of it takes longer than it may."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} holds so much that looking at it takes longer than it may (setting: overhead)")


class NectarWarning(UserWarning):
    """Something works, but not as well as it could: a function that cannot be cached runs all the same."""


class RebuildError(UserError):
    """A deleted result cannot be made again as things are; `reasons` has a sentence for each thing in the way."""

    def __init__(self, what: str, reasons: Sequence[str]) -> None:
        self.what = what
        self.reasons = tuple(reasons)
        super().__init__(f"{what} cannot be rebuilt:\n" + "\n".join(f"  - {reason}" for reason in self.reasons))


class SettingError(UserError, ValueError):
    """A setting has a value that means nothing."""


class UntrustedError(UserError):
    """Others could have written what lies in a home or store, so it is not used."""


class UnknownNameError(UserError, LookupError):
    """A name is not one that can be given, or points to nothing."""


class NotSavedError(UserError):
    """A result cannot be kept, so that no name can point to it."""


class DeletedError(EnvironmentFailure, FileNotFoundError):
    """A result was deleted to make room, and cannot be made again from here."""


class StoreFailure(EnvironmentFailure, OSError):
    """The store cannot be read or written: a full disk, missing rights, a device that fails."""


class InputFailure(EnvironmentFailure, OSError):
    """A file or URL that a program reads cannot be identified: missing rights, no answer, a change at each look."""


class MissingInputError(InputFailure, FileNotFoundError):
    """A file that a program reads is not there."""


class UnreadInputError(InputFailure):
    """A file has to be read to be known, and is too large for that, or changes all the time."""


class CatalogFailure(EnvironmentFailure):
    """The catalog cannot be opened, is damaged, or was written by a newer version of Nectar."""


class CatalogUnavailableError(CatalogFailure):
    """The catalog cannot be used at this moment: it is locked, does not answer, or its disk is full or only read."""


class DamagedNameError(CatalogFailure):
    """What a name points to is not what was written."""


class DamagedRecipeError(CatalogFailure):
    """Parts of a recipe are missing, or are not what was written."""


class MissingExtraError(EnvironmentFailure, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'nectar-data[{extra}]'")
