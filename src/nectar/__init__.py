"""Nectar: data programs that do not compute again what was computed before.

The public names are few, and each is loaded when it is first used: `import nectar` by itself imports nothing else.
Where Polars is imported too, lazy frames have `lf.nectar`.

    fingerprint(f)              what f computes, in 32 bytes; str() is hex
    trace(f)                    everything that went into the fingerprint, as a tree
    why(a, b)                   what makes two functions differ, in words
    pure(f)                     a promise that f depends on its arguments alone
    depends_on(f, *values)      a promise that f depends on its arguments and these values alone
    register_fingerprint(...)   how to encode values of a type that Nectar does not know

    memo(f)                     f, with results that are kept and reused
    File(path), Folder(path)    inputs that a function is handed, and may read
    valid_for(source, "1d")     an input that is good enough for a while
    enable(), disable()         Nectar for this process, or not; with reuse(): for a block
    aggregate(...)              an aggregate of your own for Polars, merged when data is added
    collect(lf)                 the frame of a Polars query, with everything reused that is known
    explain(lf)                 what of a query would be reused, and why not the rest
    save(lf, "team/top_urls")   the result of a query, kept, and a name that points to it
    scan("team/top_urls")       a lazy frame over the result that a name points to
    open("team/top_urls")       a named result as a Dataset: for Polars, Arrow, pandas; versions and lineage
    PolarsEngine()              Nectar as an engine of Polars, for single queries
    last_run()                  what was reused, computed and kept, and why
"""

import sys
from importlib import import_module

from nectar.arrival import when_imported

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the time that importing typing takes
if TYPE_CHECKING:
    from nectar.datasets.dataset import Dataset, open
    from nectar.dialects.frames import explain, save, scan, valid_for
    from nectar.dialects.polars.aggregates.by_user import aggregate
    from nectar.dialects.polars.api import collect
    from nectar.dialects.polars.engine import PolarsEngine
    from nectar.dialects.python.declared_inputs import File, Folder
    from nectar.dialects.python.memo import memo
    from nectar.errors import NectarError, NectarWarning, UncacheableError, UnencodableError, UserError
    from nectar.keys.api import depends_on, fingerprint, pure, register_fingerprint, trace, why
    from nectar.model.fingerprint import Fingerprint
    from nectar.report.run import RunReport
    from nectar.session import disable, enable, last_run, reuse

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "File",
    "Fingerprint",
    "Folder",
    "NectarError",
    "NectarWarning",
    "PolarsEngine",
    "RunReport",
    "UncacheableError",
    "UnencodableError",
    "UserError",
    "aggregate",
    "collect",
    "depends_on",
    "disable",
    "enable",
    "explain",
    "fingerprint",
    "last_run",
    "memo",
    "open",
    "pure",
    "register_fingerprint",
    "reuse",
    "save",
    "scan",
    "trace",
    "valid_for",
    "why",
]

_HOMES = {
    "Dataset": "nectar.datasets.dataset",
    "File": "nectar.dialects.python.declared_inputs",
    "Fingerprint": "nectar.model.fingerprint",
    "Folder": "nectar.dialects.python.declared_inputs",
    "NectarError": "nectar.errors",
    "NectarWarning": "nectar.errors",
    "PolarsEngine": "nectar.dialects.polars.engine",
    "RunReport": "nectar.report.run",
    "UncacheableError": "nectar.errors",
    "UnencodableError": "nectar.errors",
    "UserError": "nectar.errors",
    "aggregate": "nectar.dialects.polars.aggregates.by_user",
    "collect": "nectar.dialects.polars.api",
    "depends_on": "nectar.keys.api",
    "disable": "nectar.session",
    "enable": "nectar.session",
    "explain": "nectar.dialects.frames",
    "fingerprint": "nectar.keys.api",
    "last_run": "nectar.session",
    "memo": "nectar.dialects.python.memo",
    "open": "nectar.datasets.dataset",
    "pure": "nectar.keys.api",
    "register_fingerprint": "nectar.keys.api",
    "reuse": "nectar.session",
    "save": "nectar.dialects.frames",
    "scan": "nectar.dialects.frames",
    "trace": "nectar.keys.api",
    "valid_for": "nectar.dialects.frames",
    "why": "nectar.keys.api",
}


def __getattr__(name: str) -> object:
    """The public name, loaded from its home and kept, so that this is asked once per name."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nectar.overhead.garbage import uncollected  # loads what every home needs

    with uncollected():
        value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return [*__all__, "__version__"]


def _offer_namespace() -> None:
    """Lazy frames have `lf.nectar`, unless this Polars does not want it: nobody has asked for it yet."""
    try:
        import_module("nectar.dialects.polars.namespace")
    except Exception:
        return


if hasattr(sys, "ps1"):  # somebody types, and nobody keeps the text of it
    import_module("nectar.keys.executed").listen()
when_imported("polars", _offer_namespace, "namespace")
