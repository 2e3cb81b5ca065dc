"""Traces: what went into a fingerprint, as a tree for people and programs.

In: a function or value. Out: a Trace; its nodes are the objects the walk met, in the order it met them. A trace holds
no object of the program, so it can be kept, printed, written as JSON and compared with another long after.

Law: what may be a credential is in it neither in the clear nor as a digest, which would tell who guesses it that the
guess is right; so a trace does not say that a credential has changed.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field

from nectar.keys.ambient import EnvironmentVariable, Settings
from nectar.keys.atoms import ATOMS
from nectar.keys.expansion import Expansion
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.keys.scheme import SCHEME, digest_of
from nectar.model.origin import APPLICATION
from nectar.trust.secrets import HIDDEN, redacted

_WIDTH: Final = 60


class Node(Struct):
    """One object: how it was reached, what it is, and what it is made of."""

    label: str
    kind: str
    text: str
    content: bytes
    place: str = ""
    children: list[Node] = field(default_factory=list)
    digest: bytes = b""

    def seal(self) -> None:
        """Computes the digest of this node and what is below it, which has been sealed before."""
        parts = b"".join(child.digest for child in self.children)
        self.digest = digest_of(self.kind.encode() + b"\0" + self.content + b"\0" + parts)


class Trace(Struct, frozen=True):
    """What went into a fingerprint."""

    root: Node
    fingerprint: str

    def __str__(self) -> str:
        return "\n".join(_lines(self.root))

    def to_json(self) -> str:
        """The trace as JSON."""
        content = {"scheme": SCHEME, "fingerprint": self.fingerprint, "root": _as_dict(self.root)}
        return json.dumps(content, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Trace:
        """The trace that to_json gave, as far as comparing and printing need it."""
        content = json.loads(text)
        return cls(_from_dict(content["root"]), content["fingerprint"])


def _from_dict(top: dict[str, Any]) -> Node:
    holder = Node("", "top", "", b"")
    pending = [(top, holder)]
    while pending:
        each, parent = pending.pop()
        node = Node(each["label"], each["kind"], each["text"], b"", each.get("place", ""))
        node.digest = bytes.fromhex(each["digest"])
        parent.children.append(node)
        pending.extend((child, node) for child in reversed(each.get("children", ())))
    return holder.children[0]


def _lines(root: Node) -> Iterator[str]:
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield "  " * depth + (f"{node.label}: {node.text}" if node.label and node.label != node.text else node.text)
        pending.extend((child, depth + 1) for child in reversed(node.children))


def _as_dict(root: Node) -> dict[str, object]:
    top: dict[str, object] = {}
    pending = [(root, top)]
    while pending:
        node, into = pending.pop()
        children: list[dict[str, object]] = [{} for _ in node.children]
        into.update(label=node.label, kind=node.kind, text=node.text, digest=node.digest.hex())
        if node.place:
            into["place"] = node.place
        if children:
            into["children"] = children
        pending.extend(zip(node.children, children, strict=True))
    return top


class Recorder:
    """Builds the tree while a walk goes on."""

    def __init__(self) -> None:
        from nectar.keys.credentials import Suspicion  # takes long to load, and few traces are made

        self.top = Node("", "top", "", b"")
        self._open = [self.top]
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []
        self._suspicion = Suspicion()

    def enter(self, value: object, label: str, expansion: Expansion) -> None:
        """An object with parts."""
        self._numbers.setdefault(id(value), len(self._numbers))
        self._kept.append(value)
        content = digest_of(expansion.payload + b"".join(digest_of(bytes(part)) for part in expansion.buffers))
        node = Node(label, expansion.tag, describe(value, expansion), content, place_of(value))
        self._open[-1].children.append(node)
        self._open.append(node)
        self._suspicion.enter(value, label)

    def leave(self) -> None:
        """All parts of the object entered last have been recorded."""
        self._open.pop().seal()
        self._suspicion.leave()

    def leaf(self, value: object, label: str, repeated: bool) -> None:
        """An atom, or an object recorded before."""
        if repeated:
            node = Node(label, "again", f"{describe(value, None)} (see above)", b"%d" % self._numbers[id(value)])
        elif self._suspicion.falls_on(value, label):
            node = Node(label, type(value).__name__, HIDDEN, b"")
        else:
            atom = ATOMS.get(type(value))
            content = atom(value) if atom is not None else repr(value).encode("utf-8", "surrogatepass")
            node = Node(label, type(value).__name__, _shortened(redacted(repr(value))), content)
        node.seal()
        self._open[-1].children.append(node)


def describe(value: object, expansion: Expansion | None) -> str:
    """An object in a few words."""
    if isinstance(value, types.FunctionType):
        if origin_of_function(value) is APPLICATION:
            return f"function {value.__code__.co_qualname} ({place_of(value)})"
        origin = origin_of_function(value)
        return f"{origin.module}.{value.__code__.co_qualname}{_version(origin.version)}"
    if isinstance(value, type):
        origin = origin_of_class(value)
        if origin is APPLICATION:
            return f"class {value.__qualname__}"
        return f"class {value.__module__}.{value.__qualname__}{_version(origin.version)}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, EnvironmentVariable):
        return f"environment variable {value.name}"
    if isinstance(value, Settings):
        return f"settings of {value.library}"
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return str(
            getattr(value, "__qualname__", type(value).__qualname__)
        )  # other compilers' functions say they are one
    kind = type(value).__qualname__
    if isinstance(value, (list, tuple, dict, set, frozenset)) and expansion is not None:
        return f"{kind} of {len(value)}"
    if expansion is not None and expansion.tag == "instance":
        return f"instance of {kind}"
    return kind


def _version(version: str) -> str:
    return f" ({version})" if version else ""


def place_of(value: object) -> str:
    """File and line of a function; empty for anything else."""
    if not isinstance(value, types.FunctionType):
        return ""
    code = value.__code__
    return f"{code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{code.co_firstlineno}"


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
