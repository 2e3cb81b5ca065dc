"""What an examination of a function notes down: refusals, changes, and what it shows of other objects."""

from __future__ import annotations

import types
from typing import Final

from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.operation import CONST, PARAM, Operation
from nectar.keys.bytecode.template import Template
from nectar.keys.exposed import shows_anything
from nectar.keys.inspection import attributes_of, is_a
from nectar.keys.purity import mutators
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    CONSTANT,
    DERIVED,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    Facts,
    outside,
    static_attribute,
)
from nectar.keys.purity.report import Examined, place_of
from nectar.model.refusal import Excuse, Refusal

_NAMELESS: Final = (PARAM, CONST)


class Findings:
    """The report about a function, while it is filled. template, operation, facts: where the examination stands."""

    template: Template
    operation: Operation | None
    facts: Facts

    def __init__(self, subject: Examined) -> None:
        self.function = subject[0]  # by number: a function in a class would be taken for a method
        self.resolution = subject.resolution
        self.report = subject.report

    def refuse(self, kind: str, reason: str, excuse: Excuse | None = None, seen: str = "") -> None:
        """Notes a reason not to cache, with the place where the examination stands. seen: see Refusal."""
        place = place_of(self.function, self.template.code, self.operation)
        self.report.refusals.append(Refusal(kind, reason, place, excuse, seen))

    def defaults(self) -> dict[int, object]:
        """The defaults of the function's parameters, by position."""
        code, values = self.function.__code__, self.function.__defaults__ or ()
        by_keyword = self.function.__kwdefaults__ or {}
        if not values and not by_keyword:
            return {}
        found = dict(zip(range(code.co_argcount - len(values), code.co_argcount), values, strict=True))
        for at, name in enumerate(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]):
            if name in by_keyword:
                found[code.co_argcount + at] = by_keyword[name]
        return found

    def note_changed_defaults(self) -> None:
        """A default that the function changes is state that outlives the call."""
        code, defaults = self.function.__code__, self.defaults()
        for position in sorted(self.report.changed & defaults.keys()):
            if type(defaults[position]) not in ATOMS and type(defaults[position]) is not tuple:
                reason = f"changes the default of its parameter {code.co_varnames[position]}, which outlives the call"
                self.report.refusals.append(Refusal("mutation", reason, place_of(self.function, code, None)))

    def change(self, target: Fact, verb: str) -> None:
        """A value is changed; that matters if it outlives the call, and to callers if it is a parameter."""
        root = outside(target)
        if root.kind == PARAMETER:
            self.report.changed |= {root.number}
        elif root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS and not mutators.is_transient(root.root):
            self.refuse("mutation", f"{verb} {name_of(root.root)} that outlives the call")

    def _change_inplace_of(self, target: Fact) -> None:
        root = outside(target)
        if root.kind == PARAMETER:
            self.report.changed |= {root.number}
        elif root.kind == PARTIAL or (root.kind == OBJECT and hasattr(type(root.root), "__iadd__")):
            self.refuse("mutation", f"changes {name_of(root.root)} in place, which outlives the call")

    def show_as_text(self, shown: Fact) -> None:
        """A text is made of a value."""
        if shown.kind != CONSTANT:
            self.report.features |= {"texts"}
        if shown.kind == OBJECT and not is_a(shown.root, type):
            found = static_attribute(type(shown.root), "__repr__")
            text = static_attribute(type(shown.root), "__str__")
            if found is object.__repr__ and text is object.__str__:
                self.refuse("identity", f"shows {name_of(shown.root)} as text, which contains its address in memory")

    def expose_value(self, value: int) -> None:
        """A value is used by what may look at its name; parameters and constants have none to show."""
        if self.template.kinds[value] not in _NAMELESS:
            self.expose(self.facts.of(value))

    def expose(self, fact: Fact) -> None:
        """Somebody may look at the name, parameters and annotations of a value."""
        if fact.kind == ATTRIBUTE and fact.owner is not None and fact.owner.kind == OBJECT:
            own = attributes_of(fact.owner.root)  # an attribute that lies there is shown, not its owner
            if fact.name in own:
                fact = Fact(OBJECT, own[fact.name])
        root = outside(fact)
        shown = root.kind in (OBJECT, PARTIAL, DERIVED) and id(root.root) not in self.report.exposed
        if shown and shows_anything(root.root):
            self.report.exposed[id(root.root)] = root.root


def name_of(value: object) -> str:
    """An object in a few words."""
    if is_a(value, (types.FunctionType, type)):
        return f"{value.__qualname__}"
    if is_a(value, types.ModuleType):
        return f"the module {value.__name__}"
    return f"a captured {type(value).__name__}"
