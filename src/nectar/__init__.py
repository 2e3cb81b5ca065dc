"""Nectar: data programs that do not compute again what was computed before.

The public names are few, and each is loaded when it is first used: `import nectar` by itself imports nothing else.

    fingerprint(f)              what f computes, in 32 bytes; str() is hex
    trace(f)                    everything that went into the fingerprint, as a tree
    why(a, b)                   what makes two functions differ, in words
    pure(f)                     a promise that f depends on its arguments alone
    depends_on(f, *values)      a promise that f depends on its arguments and these values alone
    register_fingerprint(...)   how to encode values of a type that Nectar does not know
"""

from importlib import import_module

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the time that importing typing takes
if TYPE_CHECKING:
    from nectar.errors import NectarError, UncacheableError, UnencodableError, UserError
    from nectar.keys.api import depends_on, fingerprint, pure, register_fingerprint, trace, why
    from nectar.model.fingerprint import Fingerprint

__version__ = "0.1.0"

__all__ = [
    "Fingerprint",
    "NectarError",
    "UncacheableError",
    "UnencodableError",
    "UserError",
    "depends_on",
    "fingerprint",
    "pure",
    "register_fingerprint",
    "trace",
    "why",
]

_HOMES = {
    "Fingerprint": "nectar.model.fingerprint",
    "NectarError": "nectar.errors",
    "UncacheableError": "nectar.errors",
    "UnencodableError": "nectar.errors",
    "UserError": "nectar.errors",
    "depends_on": "nectar.keys.api",
    "fingerprint": "nectar.keys.api",
    "pure": "nectar.keys.api",
    "register_fingerprint": "nectar.keys.api",
    "trace": "nectar.keys.api",
    "why": "nectar.keys.api",
}


def __getattr__(name: str) -> object:
    """The public name, loaded from its home and kept, so that this is asked once per name."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return [*__all__, "__version__"]
