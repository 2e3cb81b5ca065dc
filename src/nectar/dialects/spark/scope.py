"""What names mean in a session: views and tables by their definitions, registered functions by what they compute.

Scopes are values: a change makes a new one, and a view remembers what the names in its definition meant when it was
made. Law: a name that is not in a scope means something nobody has seen, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nectar.dialects.spark.constants import Facts
from nectar.dialects.spark.function_names import KNOWN
from nectar.dialects.spark.functions import Pickled
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.sql.words import Name

_CAPITALS: Final = "there is another one whose name differs by capitals only"


@dataclass(frozen=True, slots=True)
class View:
    """A relation that has a name. steps: its definition. scope: what the names in it meant when it was made.

    made: its last key as everything was when it was made, which an engine may have frozen. content: what the
    definition says besides. folder: where the program was then, which relative paths may refer to. spelling: the name
    as it was written then. by_text: it is defined by a text, which engines may read anew whenever it is read. states:
    what its files held when it was made, for an engine that remembers. facts: what it says of its columns, for an
    engine that computes constants first. refusal: why nothing that reads it is reused. command: what made it, for those
    who have to make it again; None if that would do more, or is too large to be remembered.
    """

    steps: tuple[Step, ...] = ()
    scope: Scope = field(default_factory=lambda: Scope())
    made: bytes = b""
    content: bytes = b""
    folder: str = ""
    spelling: Name = ()
    is_temporary: bool = True
    by_text: bool = False
    states: Mapping[bytes, bytes] = field(default_factory=dict)
    facts: Facts = field(default_factory=lambda: Facts())
    refusal: str = ""
    command: Any = field(default=None, compare=False, repr=False)

    def means_the_same(self, now: Scope) -> bool:
        """Whether the names in its definition mean now what they meant when it was made."""
        return needed_by(self.steps, now) == self.scope


@dataclass(frozen=True, slots=True)
class Registered:
    """A function that the server was taught. content: what it is and computes, canonical. refusal: why not reused.

    command: what taught it.
    """

    content: bytes = b""
    functions: tuple[Pickled, ...] = field(default=(), compare=False)
    refusal: str = ""
    command: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean. unknown: why nobody knows which functions and sources there are; empty if it is known.

    sources: formats that the server was taught, with the classes that read them. cached: why tables of the server's
    catalog are not followed; empty if they are.
    """

    views: Mapping[Name, View] = field(default_factory=dict)
    functions: Mapping[str, Registered] = field(default_factory=dict)
    unknown: str = ""
    sources: Mapping[str, Pickled] = field(default_factory=dict)
    cached: str = ""

    @property
    def instead(self) -> frozenset[str]:
        """Functions that stand in the place of some of the engine's, which may use them unasked."""
        return frozenset(name for name in self.functions if name in KNOWN)

    def view(self, name: Name) -> View | None:
        """What a name of a relation means. Engines differ in whether capitals count: it has one spelling, or none."""
        view = self.views.get(_plain(name))
        return None if view is None or view.spelling != name else view

    def with_view(self, name: Name, view: View) -> Scope:
        """The scope in which a name means this; one that is there in another spelling too is refused.

        What is known by more or less of the name may be the same table, and is forgotten.
        """
        known = self.views.get(_plain(name))
        if known is not None and (known.spelling != name or known.refusal == _CAPITALS):
            view = replace(view, refusal=_CAPITALS)
        others = {other: known for other, known in self.views.items() if other[-1] != _plain(name)[-1]}
        return replace(self, views={**others, _plain(name): replace(view, spelling=name)})

    def with_function(self, name: str, function: Registered) -> Scope:
        """The scope in which a function has this name."""
        return replace(self, functions={**self.functions, name.lower(): function})

    def with_source(self, name: str, reader: Pickled) -> Scope:
        """The scope in which data is read by a class under this name."""
        return replace(self, sources={**self.sources, name.lower(): reader})

    def with_view_of(self, other: Scope, name: Name) -> Scope:
        """The scope in which a name means what it means in another."""
        view = other.view(name)
        return self.without_view(name) if view is None else self.with_view(name, view)

    def with_function_of(self, other: Scope, name: str) -> Scope:
        """The scope in which the name of a function means what it means in another."""
        without = {known: function for known, function in self.functions.items() if known != name.lower()}
        function = other.functions.get(name.lower())
        return replace(self, functions=without if function is None else {**without, name.lower(): function})

    def without_view(self, name: Name) -> Scope:
        """The scope in which nobody knows what a name means, however much of it is written."""
        last = _plain(name)[-1]
        return replace(self, views={known: view for known, view in self.views.items() if known[-1] != last})

    def without_tables(self) -> Scope:
        """The scope in which only temporary views are known."""
        return replace(self, views={name: view for name, view in self.views.items() if view.is_temporary})

    def only(self, names: Iterable[Name], functions: Iterable[str]) -> Scope:
        """As much of the scope as these names need."""
        plain = {_plain(name) for name in names}
        called = frozenset(functions) | self.instead
        return Scope(
            {name: view for name, view in self.views.items() if name in plain},
            {name: function for name, function in self.functions.items() if name in called}, self.unknown,
            self.sources,
        )  # fmt: skip


def needed_by(steps: Sequence[Step], scope: Scope) -> Scope:
    """As much of a scope as a definition needs."""
    names = (name for step in steps for name in step.names)
    return scope.only(names, (call for step in steps for call in step.calls))


def _plain(name: Name) -> Name:
    return tuple(part.lower() for part in name)
