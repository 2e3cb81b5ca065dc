"""Origin: whose code a module, function or class is."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["application", "distribution", "standard"]


class Origin(Struct, frozen=True):
    """Whose code it is.

    name, version: of the distribution (the version says more than a number where a number does not identify the
    code); for the standard library the name of the module and no version. module: dotted name of the module by the
    place of its file, not by what it says of itself; empty for application code.
    """

    kind: Kind
    name: str = ""
    version: str = ""
    module: str = ""


APPLICATION: Final = Origin("application")
