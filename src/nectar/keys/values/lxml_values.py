"""Expanders of lxml's elements and trees: the document as text, and where in it an element stands.

An element leads to its parents and neighbours, so that all of its document counts.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import HERE, placed

_OF_DOCUMENTS: Final = ("doctype", "encoding", "standalone", "URL", "xml_version")
_KINDS: Final = ("_Element", "_Comment", "_ProcessingInstruction", "_Entity")


def expand_element(value: Any, walk: WalkContext) -> Expansion:
    """An element: the whole document if it is its root, otherwise the root and the way to it."""
    tree = value.getroottree()
    root = tree.getroot()
    parts = Parts(type(value))
    if value is not root:
        parts.text(tree.getpath(value))
        parts.child(root, "root")
        return parts.expansion("xml element")
    _add_document(parts, tree)
    parts.child(root.tail, "tail")
    parts.bulk(_etree().tostring(tree))
    parts.text(",".join(str(each.sourceline) for each in root.iter()))
    return parts.expansion("xml document")


def expand_tree(value: Any, walk: WalkContext) -> Expansion:
    """A tree: its root element."""
    parts = Parts(type(value))
    root = value.getroot()
    parts.child(root, "root")
    if root is not None:
        _add_document(parts, value)
    return parts.expansion("xml tree")


def _add_document(parts: Parts, tree: Any) -> None:
    if tree.docinfo.externalDTD is not None:
        raise UnencodableError("an XML document", HERE, "its document type definition lies outside of it")
    for name in _OF_DOCUMENTS:
        parts.child(getattr(tree.docinfo, name), name)


def _etree() -> Any:
    return sys.modules["lxml.etree"]


def _expanders() -> dict[type, Expander]:
    module = sys.modules.get("lxml.etree")
    if module is None:
        return {}
    return {**{getattr(module, name): expand_element for name in _KINDS}, module._ElementTree: expand_tree}


EXPANDERS: dict[type, Expander] = placed(_expanders())
