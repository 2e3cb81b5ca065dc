"""What a result can depend on beside code and values: the environment, and settings libraries keep for the process.

A function that reads `os.environ["REGION"]` depends on one variable whose value is known when the fingerprint is
taken, so it is fingerprinted like a global. (Reading under a computed name is refused, see purity/.) A function that
reaches decimal, numpy, pandas or polars depends on the settings they keep; those count when the library is reached.
Local time, levels of loggers and the like count for functions whose code asks for them by name.
"""

from __future__ import annotations

import _locale
import codecs
import contextvars
import functools
import operator
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from nectar.keys.conventions import settings_of
from nectar.keys.expansion import Expansion, WalkContext, joined
from nectar.keys.origin import origin_of_class
from nectar.keys.preferences import PREFERENCES
from nectar.keys.registrations import REGISTRATIONS, is_of_application
from nectar.keys.thread_states import states_of
from nectar.model.origin import APPLICATION
from nectar.recursion import limit_of_program


class EnvironmentVariable(Struct, frozen=True):
    """One variable of the environment."""

    name: str


def expand_environment_variable(value: EnvironmentVariable, walk: WalkContext) -> Expansion:
    """Its name and its value now, or that it is not set. The value itself never shows in traces."""
    now = os.environ.get(value.name)
    payload = joined(value.name, "unset") if now is None else joined(value.name, "set", now)
    return Expansion("environment variable", payload, by_value=True, still=lambda: os.environ.get(value.name) == now)


class TextCodec(Struct, frozen=True):
    """What the application has registered under the names of an encoding and of a way to handle its errors."""

    encoding: str
    errors: str


def expand_text_codec(value: TextCodec, walk: WalkContext) -> Expansion:
    """Functions of the application that code which names the encoding or the handler runs; mostly there are none."""
    now = _registered(value)
    alias = _alias(value)
    still = lambda: all(map(operator.is_, _registered(value), now)) and _alias(value) == alias  # noqa: E731 - a def would not say more
    return Expansion("codec", alias.encode(), now, ("encodes", "decodes", "handles errors"), still=still)


def _alias(value: TextCodec) -> str:
    """The encoding that a name stands for; programs may give it other names."""
    return str(getattr(_look_up(codecs.lookup, value.encoding), "name", ""))


def _registered(value: TextCodec) -> tuple[object, object, object]:
    codec = _look_up(codecs.lookup, value.encoding)
    found = (
        getattr(codec, "encode", None),
        getattr(codec, "decode", None),
        _look_up(codecs.lookup_error, value.errors),
    )
    encodes, decodes, handles = (each if is_of_application(each) else None for each in found)
    return encodes, decodes, handles


def _look_up(find: Callable[[str], object], name: str) -> object:
    try:
        return find(name) if name else None
    except Exception:  # not a name of anything: running the code will say so
        return None


def _decimal_context() -> object:
    import decimal

    found = _numbers_and_traps(decimal.getcontext())
    of_new_threads = _numbers_and_traps(decimal.DefaultContext)
    return found if of_new_threads == _USUAL_DECIMALS else (*found, "in new threads", *of_new_threads)


def _decimal_context_and_flags() -> object:
    return _decimal_context(), raised_signals(sys.modules["decimal"].getcontext())


def raised_signals(context: Any) -> list[str]:
    """The names of the signals of decimals that were raised in a context."""
    return sorted(signal.__name__ for signal, raised in context.flags.items() if raised)


_USUAL_NUMBERS: Final = (28, "ROUND_HALF_EVEN", -999999, 999999, 1, 0)
_USUAL_TRAPS: Final = ("DivisionByZero", "InvalidOperation", "Overflow")
_USUAL_DECIMALS: Final = (*_USUAL_NUMBERS, *_USUAL_TRAPS)


def _decimals_are_usual() -> bool:
    """Whether nobody has set how decimals are computed, in this thread or in new ones; quick to ask."""
    decimal: Any = sys.modules["decimal"]
    usual = _usual_context(decimal)
    here, new = decimal.getcontext().__reduce__()[1], decimal.DefaultContext.__reduce__()[1]
    # Between numbers and traps lie flags, which any computation sets.
    return bool(here[:-2] == new[:-2] == usual[:-2] and here[-1] == new[-1] == usual[-1])


@functools.cache
def _usual_context(decimal: Any) -> Any:
    traps = [getattr(decimal, name) for name in _USUAL_TRAPS]
    return decimal.Context(*_USUAL_NUMBERS, [], traps).__reduce__()[1]


def _numbers_and_traps(context: Any) -> tuple[object, ...]:
    *numbers, _, traps = context.__reduce__()[1]  # its attributes one by one take three times as long
    return (*numbers, *sorted(signal.__name__ for signal in traps))


_USUAL_MASKED: Final = ("--", True)  # how numpy shows what is masked


def _numpy_settings() -> object:
    numpy: Any = sys.modules["numpy"]
    shown, called = numpy.get_printoptions(), numpy.geterrcall()
    found: list[object] = [sorted(numpy.geterr().items()), [(name, shown[name]) for name in sorted(shown)]]
    polynomials: Any = sys.modules.get("numpy.polynomial._polybase")
    written = None if polynomials is None else polynomials.ABCPolyBase._use_unicode
    if called is not None or written is False:
        found += [called, written]
    masked = getattr(sys.modules.get("numpy.ma.core"), "masked_print_option", None)
    if masked is not None and (masked._display, bool(masked._enabled)) != _USUAL_MASKED:
        found.append(("masked", str(masked._display), bool(masked._enabled)))
    return found


def _numpy_is_changed() -> bool:
    """Whether the way numpy treats errors or prints was changed, in this thread or task; quick to ask."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "geterr"):  # or it is just being imported
        return False
    variables, usual = _context_of_numpy(numpy)
    if variables and all(map(operator.is_, [each.get() for each in variables], usual)):
        return False
    return _numpy_settings() != contextvars.Context().run(_numpy_settings)


@functools.cache
def _context_of_numpy(numpy: Any) -> tuple[list[Any], list[object]]:
    """Where numpy keeps how it treats errors and prints, and what lies there if nobody has set it."""
    try:
        errors, printing = numpy._core.umath._extobj_contextvar, sys.modules["numpy._core.printoptions"]
        variables = [errors, printing.format_options]
    except (AttributeError, KeyError):  # in another version they lie elsewhere
        return [], []
    return variables, [contextvars.Context().run(each.get) for each in variables]


def _pandas_options() -> object:
    """Options that were changed; defaults may depend on the terminal, and follow from the version otherwise."""
    config: Any = sys.modules.get("pandas._config.config")
    if config is None:
        return []
    registered = config._registered_options
    now = ((name, _option(config._global_config, name)) for name in sorted(registered))
    return [(name, value) for name, value in now if value != registered[name].defval]


def _option(options: Any, name: str) -> object:
    """The value of an option, without the warnings that pandas gives about some of them."""
    for part in name.split("."):
        options = options[part]
    return options


def _polars_settings() -> object:
    polars: Any = sys.modules["polars"]
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith("POLARS_"))
    shown = polars.Config.state()
    settings = [(name, shown[name]) for name in sorted(shown) if shown[name] is not None]
    return [variables, settings]


def _csv_dialects() -> object:
    csv: Any = sys.modules["_csv"]
    parts = (
        "delimiter",
        "doublequote",
        "escapechar",
        "lineterminator",
        "quotechar",
        "quoting",
        "skipinitialspace",
        "strict",
    )
    return [
        csv.field_size_limit(),
        *(
            (name, *(getattr(csv.get_dialect(name), part, None) for part in parts))
            for name in sorted(csv.list_dialects())
        ),
    ]


def _warning_filters() -> object:
    """Filters up to the last that turns warnings into errors; others only decide what is printed."""
    filters = sys.modules["warnings"].filters
    last = max((at for at, each in enumerate(filters) if _raises(each)), default=-1)
    return _in_words(filters[: last + 1])


def _all_warning_filters() -> object:
    """All filters: they decide which warnings a block that records them gets to see."""
    return _in_words(sys.modules["warnings"].filters)


def _in_words(filters: list[tuple[Any, ...]]) -> object:
    return [(each[0], str(each[1]), each[2], str(each[3]), each[4]) for each in filters]


_harmless: list[tuple[Any, ...]] = []  # the filters that were looked at last, if none turns warnings into errors


def _warnings_are_errors() -> bool:
    """Whether a filter turns warnings into errors; quick to ask."""
    global _harmless
    filters: list[tuple[Any, ...]] = sys.modules["warnings"].filters
    if filters == _harmless:
        return False
    now = list(filters)
    if any(map(_raises, now)):
        return True
    _harmless = now
    return False


def _raises(each: tuple[Any, ...]) -> bool:
    """Whether a filter turns warnings into errors, other than those of Nectar itself."""
    return each[0] == "error" and not str(getattr(each[2], "__module__", "")).startswith("nectar.")


def _url_schemes() -> object:
    """Schemes that are known to have hosts, relative references and parameters; applications add their own."""
    parse: Any = sys.modules.get("urllib.parse")
    return [] if parse is None else [sorted(parse.uses_netloc), sorted(parse.uses_relative), sorted(parse.uses_params)]


def _registered_reducers() -> object:
    """How copying and pickling take objects apart where the application says so."""
    import copyreg

    return [(kind, reducer) for kind, reducer in copyreg.dispatch_table.items() if origin_of_class(kind) is APPLICATION]


def _registry(module: str, *names: str) -> Callable[[], object]:
    """Dicts of plain values that a module keeps and applications add to."""
    return lambda: [dict(vars(sys.modules[module])[name]) for name in names]


_FIRST_PROBE, _LAST_PROBE, _STEP = -2145916800, 2145916800, 178 * 86400  # from 1902 to 2037, ever later in the year


def _local_time() -> object:
    """How local time differs from UTC, at moments spread over years and seasons: what tells time zones apart."""
    try:
        offsets = [time.localtime(at).tm_gmtoff for at in range(_FIRST_PROBE, _LAST_PROBE, _STEP)]
    except (OSError, OverflowError, ValueError):  # systems that know no time before 1970
        offsets = [time.localtime(at).tm_gmtoff for at in range(0, _LAST_PROBE, _STEP)]
    return [list(time.tzname), offsets]


def _logger_levels() -> object:
    """Levels that were set; loggers without one come and go with imports."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return []
    loggers = sorted(logging.root.manager.loggerDict.items())
    levels = [
        (name, each.level, each.disabled)
        for name, each in loggers
        if getattr(each, "level", 0) or getattr(each, "disabled", False)
    ]
    return [logging.root.level, logging.root.manager.disable, *levels]


def _locale_of_numbers() -> tuple[str, str]:
    """The locale of the format "n", and that of names of days and months."""
    return _locale.setlocale(_locale.LC_NUMERIC), _locale.setlocale(_locale.LC_TIME)


PROVIDERS: Final[dict[str, Callable[[], object]]] = {
    "decimal": _decimal_context,
    "numpy": _numpy_settings,
    "pandas": _pandas_options,
    "polars": _polars_settings,
    "csv": _csv_dialects,
    "warnings": _warning_filters,
    "warnings that are recorded": _all_warning_filters,
    "copyreg": _registered_reducers,
    "urllib": _url_schemes,
    "integers": sys.get_int_max_str_digits,
    "local time": _local_time,
    "loggers": _logger_levels,
    "locale": _locale_of_numbers,
    "recursion": limit_of_program,
    "html": _registry("html.entities", "html5"),
    "logging": _registry("logging", "_levelToName", "_nameToLevel"),
    "xml.etree.ElementTree": _registry("xml.etree.ElementTree", "_namespace_map"),
    "dateutil": _local_time,  # tzlocal() and gettz()
    **PREFERENCES,
}
# Libraries that keep more than what is looked at here, so that it counts where the program changes them.
KNOWN_IN_PART: Final = frozenset({"QuantLib", "babel", "dateutil", "sympy", "lxml", "marshmallow", "pypdf"})
# Packages of the standard library that have no settings but tables, which programs add to.
TABLES: Final = frozenset({"email", "gettext", "http", "mimetypes", "pprint", "sqlite3", "textwrap", "zoneinfo"})
# Before names of modules of the standard library that have no settings; programs may assign to what lies in them.
STANDARD: Final = "standard "
# Of these much is set in every program, and all of it that shows in results counts by itself.
SET_BY_ALL: Final = frozenset(
    {
        "asyncio",
        "builtins",
        "logging",
        "os",
        "random",
        "signal",
        "socket",
        "sys",
        "threading",
        "time",
        "types",
        "warnings",
    }
)
# Methods that depend on settings of the process, whatever they are called on.
SETTINGS_OF_METHODS: Final = {
    "timestamp": "local time",
    "astimezone": "local time",
    "tz_localize": "local time",  # pandas takes "tzlocal()" for the zone of the machine
    "tz_convert": "local time",
    "formatdate": "local time",  # of email.utils
    "datetime_as_string": "local time",  # of numpy
    "to_system_tz": "local time",  # of whenever
    "assume_system_tz": "local time",
    "to_pandas": "pandas",  # of frames and tables of other libraries
    "toPandas": "pandas",
    "to_dataframe": "pandas",
    "fetchdf": "pandas",
    "fetch_df": "pandas",
    "isEnabledFor": "loggers",
    "getEffectiveLevel": "loggers",
}


_ORDINARY_DIGITS: Final = 4300
_ORDINARY_LOCALE: Final = ("C", "C")


def always_touched() -> frozenset[str]:
    """Settings that count for every function where they were changed, because numbers bring them along."""
    decimals = "decimal" in sys.modules and not _decimals_are_usual()
    digits = sys.get_int_max_str_digits() != _ORDINARY_DIGITS
    locale = _locale_of_numbers() != _ORDINARY_LOCALE
    arrays = _numpy_is_changed()  # frames of all libraries give arrays
    errors = _warnings_are_errors()  # any code may warn
    if not decimals and not digits and not locale and not arrays and not errors:
        return frozenset()
    changes = (
        ("decimal", decimals),
        ("integers", digits),
        ("locale", locale),
        ("numpy", arrays),
        ("warnings", errors),
    )
    return frozenset(name for name, changed in changes if changed)


def tells_states(library: str) -> bool:
    """Whether the settings of a library include what it keeps for this thread: if no list of ours has them."""
    return not library.startswith(STANDARD) and not any(library in each for each in (PROVIDERS, REGISTRATIONS, TABLES))


def provider(library: str, in_part: bool = False) -> Callable[[], object]:
    """What gives the settings of a library: a function of its own, or one that goes by usual names.

    in_part: without what libraries remember to save time.
    """
    known = PROVIDERS.get(library) or REGISTRATIONS.get(library)
    return known or functools.partial(_usual_settings, library, in_part)


def _usual_settings(library: str, in_part: bool) -> list[object]:
    return settings_of(library) + states_of(library, in_part)


def has_no_settings(library: str, in_part: bool = False) -> bool:
    """Whether nothing is set: what is in no list of ours counts only where there is something."""
    return library not in PROVIDERS and not provider(library, in_part)()


class Settings(Struct, frozen=True, eq=False):
    """The settings a library keeps for the process. in_part: as for `provider`."""

    library: str
    in_part: bool = False


def expand_settings(value: Settings, walk: WalkContext) -> Expansion:
    """What the settings are now; for code that asks for flags, signals of decimals that were raised before as well."""
    provide = provider(value.library, value.in_part)
    if value.library == "decimal" and "flags" in walk.observed:
        provide = _decimal_context_and_flags
    now = provide()
    return Expansion("settings", joined(value.library), (now,), ("settings",), still=lambda: provide() == now)
