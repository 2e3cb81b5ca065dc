"""Settings that libraries of third parties keep for the process, and that show in what they give.

In: nothing. Out: for each library a function that gives its settings as plain data, to be called only where the library
is loaded. Values are told by their texts: styles, palettes and options are texts, numbers and lists of them.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from nectar.keys.conventions import settings_of

_OF_THE_SCREEN: Final = frozenset({"backend", "backend_fallback", "interactive", "toolbar"})
_YAML_TABLES: Final = ("yaml_constructors", "yaml_multi_constructors", "yaml_representers", "yaml_multi_representers")


def _matplotlib() -> object:
    """What differs from the style that matplotlib comes with. Asked of the dicts: theirs may start a backend."""
    matplotlib: Any = sys.modules.get("matplotlib")
    if matplotlib is None:
        return []
    usual = dict(dict.items(matplotlib.rcParamsDefault))
    now = sorted((name, repr(value)) for name, value in dict.items(matplotlib.rcParams) if name not in _OF_THE_SCREEN)
    epoch = getattr(sys.modules.get("matplotlib.dates"), "_epoch", None)
    found = [(name, value) for name, value in now if value != repr(usual.get(name))]
    return found if epoch is None else [*found, ("epoch of dates", epoch)]


def _sklearn() -> object:
    return sorted((name, repr(value)) for name, value in sys.modules["sklearn"].get_config().items())


def _xarray() -> object:
    options = vars(sys.modules["xarray.core.options"])["OPTIONS"]
    return sorted((name, repr(value)) for name, value in options.items())


def _yaml() -> object:
    """Functions of the application that read and write kinds of nodes, and by what texts of plain nodes are told."""
    found: list[object] = []
    for name, cls in sorted(vars(sys.modules["yaml"]).items()):
        if not isinstance(cls, type) or not name.endswith(("Loader", "Dumper")):
            continue
        for table in _YAML_TABLES:
            entries = getattr(cls, table, {}).items()
            found += [(name, table, str(kind), made) for kind, made in entries if not _is_of_yaml(made)]
        resolvers = getattr(cls, "yaml_implicit_resolvers", {})
        found += [
            (name, str(first), str(tag), pattern.pattern) for first in resolvers for tag, pattern in resolvers[first]
        ]
    return found


def _is_of_yaml(made: object) -> bool:
    """Whether a constructor or representer is one that yaml brings, and not its method for a class of the program."""
    owner = getattr(made, "__self__", made)
    return str(getattr(owner, "__module__", "")).partition(".")[0] == "yaml"


def _pypdf() -> object:
    """The limits that hold in this context, and what else is set by the usual names."""
    module: Any = sys.modules.get("pypdf._configuration")
    variable = getattr(module, "CURRENT_CONFIGURATION", None)
    held = [] if variable is None else sorted((name, repr(value)) for name, value in vars(variable.get()).items())
    return [held, settings_of("pypdf")]


def _variables(*names: str) -> Callable[[], object]:
    return lambda: [(name, os.environ.get(name)) for name in names]


def _plotly() -> object:
    io: Any = sys.modules.get("plotly.io")
    return [] if io is None else [repr(io.templates.default), repr(io.renderers.default)]


def _mpmath() -> object:
    mpmath: Any = sys.modules["mpmath"]
    return [mpmath.mp.prec, mpmath.iv.prec, repr(mpmath.mp.pretty)]


def _gmpy2() -> object:
    """How numbers are rounded in this thread; not which flags are raised, which computing itself does."""
    context: Any = sys.modules["gmpy2"].get_context()
    return [(name, repr(getattr(context, name, None))) for name in _OF_NUMBERS]


_OF_NUMBERS: Final = (
    "precision", "real_prec", "imag_prec", "round", "real_round", "imag_round", "emax", "emin", "subnormalize",
    "trap_underflow", "trap_overflow", "trap_inexact", "trap_invalid", "trap_erange", "trap_divzero",
    "allow_complex", "rational_division",
)  # fmt: skip


def _torch() -> object:
    torch: Any = sys.modules["torch"]
    return [str(torch.get_default_dtype()), torch.are_deterministic_algorithms_enabled()]


def _pint() -> object:
    """How quantities without a registry of their own are written, and which units they know, once any are known."""
    registry: Any = sys.modules["pint"].application_registry.get()
    units = vars(registry).get("_units")
    if units is None:
        return []
    definitions = [each for part in units.maps for each in part.values()]
    if len(definitions) != len(_units[0]) or not all(map(operator.is_, definitions, _units[0])):
        _units[:] = definitions, "\n".join(sorted(f"{name} {each!r}" for name, each in units.items()))
    return [repr(registry.formatter.default_format), repr(registry.case_sensitive), _units[1]]


_units: Final[list[Any]] = [[], ""]  # the definitions seen last, and their texts


def _humanize() -> object:
    current: Any = getattr(sys.modules.get("humanize.i18n"), "_CURRENT", None)
    return repr(getattr(current, "locale", None))


def _quantlib() -> object:
    """The day that prices are of: today, by the clock of its native code, where nobody has set another."""
    return str(sys.modules["QuantLib"].Settings.instance().evaluationDate)


PREFERENCES: Final[dict[str, Callable[[], object]]] = {
    "QuantLib": _quantlib,
    "matplotlib": _matplotlib,
    "seaborn": _matplotlib,  # keeps its own there
    "sklearn": _sklearn,
    "xarray": _xarray,
    "yaml": _yaml,
    "plotly": _plotly,
    "mpmath": _mpmath,
    "gmpy2": _gmpy2,
    "torch": _torch,
    "sympy": _mpmath,  # computes with it
    "pint": _pint,
    "humanize": _humanize,
    "pypdf": _pypdf,
    "babel": _variables("LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_TIME", "LC_NUMERIC", "LANG"),
}
