"""Code of the application that is registered where no name in code leads to it: codecs, extensions of lxml, schemas.

In: nothing. Out: what is registered now; mostly nothing, and then it counts for nothing. The tables lie behind no name;
the collector of the interpreter leads to them. It is asked once in a process, and only if code is reached that uses
such a table under names nobody knows beforehand.
"""

from __future__ import annotations

import codecs
import functools
import gc
import sys
import types
from collections.abc import Callable
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.conventions import settings_of
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.model.origin import APPLICATION


def is_of_application(value: object) -> bool:
    """Whether code behind a callable may be of the application: not a function of a library, nor written in C."""
    inner = value.__func__ if type(value) is types.MethodType else value
    if type(inner) is types.FunctionType:
        return origin_of_function(inner) is APPLICATION
    return inner is not None and type(inner) is not types.BuiltinFunctionType


def _codecs_of_application() -> list[object]:
    """Functions that find codecs, and functions that handle errors of coding by the names of the handlers."""
    searches, handlers = _codec_tables()
    named = [(name, each) for name, each in sorted(handlers.items()) if is_of_application(each)]
    return [*filter(is_of_application, searches), *named]


@functools.cache
def _codec_tables() -> tuple[list[Any], dict[str, Any]]:
    import encodings

    searches: list[Any] = _referrer(encodings.search_function, lambda each: type(each) is list)
    strict = codecs.lookup_error("strict")
    return searches, _referrer(strict, lambda each: type(each) is dict and {"strict", "ignore"} <= each.keys())


def _lxml_of_application() -> list[object]:
    """Functions for XPath, by name space and name."""
    registries = _lxml_registries()
    return [
        (str(space), str(registry.prefix), str(name), function)
        for space, registry in sorted(registries.items(), key=lambda item: str(item[0]))
        for name, function in sorted(registry.items(), key=lambda item: str(item[0]))
        if is_of_application(function)
    ]


def _lxml_registries() -> dict[Any, Any]:
    etree: Any = sys.modules.get("lxml.etree")
    return {} if etree is None else _registries_of(etree)


@functools.cache
def _registries_of(etree: Any) -> dict[Any, Any]:
    own = etree.FunctionNamespace(None)
    found: dict[Any, Any] = _referrer(own, lambda each: type(each) is dict and each.get(None) is own)
    return found


def _schemas_of_application() -> list[object]:
    """Schemas of marshmallow, which others nest by their names; a name may lead to several."""
    registry = getattr(sys.modules.get("marshmallow.class_registry"), "_registry", {})
    own = {
        name: [each for each in classes if origin_of_class(each) is APPLICATION] for name, classes in registry.items()
    }
    found: list[object] = [(name, own[name]) for name in sorted(own) if own[name]]
    settings = settings_of("marshmallow")
    return [*found, settings] if settings else found


def _referrer(value: object, is_meant: Callable[[Any], bool]) -> Any:
    """The container that holds value in a place without a name."""
    for each in gc.get_referrers(value):
        if is_meant(each):
            return each
    raise UnencodableError("a table of registered functions", "the interpreter", "it cannot be found")


REGISTRATIONS: Final[dict[str, Callable[[], list[object]]]] = {
    "any codec": _codecs_of_application,
    "lxml": _lxml_of_application,
    "marshmallow": _schemas_of_application,
}
