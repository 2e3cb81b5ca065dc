"""What the process keeps for everybody: generators of random numbers and settings, compared before and after.

In: nothing. Out: what is there now, cheap to take and to compare. A computation that changed any of it has an effect
that a cached result would not have; one that drew from a generator of the process has a hidden input besides. Modules
that are not loaded are not looked at.
"""

from __future__ import annotations

import _locale  # noqa: F401 - what is there already can be compared
import ctypes
import gc
import operator
import signal
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from importlib import _bootstrap
from typing import Any, Final, NamedTuple

from nectar.recursion import limit_of_program
from nectar.threads import wait_for_loading

State = list[tuple["Kept", object]]


class Kept(NamedTuple):
    """Something that the process keeps. module: where, if that has to be loaded. told: what changing it means.

    by_imports: modules change it as well while they are imported, which is no effect of the computation; a function
    tells whether more has changed than that. is_fresh: whether it is as its module leaves it when it is imported, for
    computations that import it; by default nobody knows.
    """

    module: str
    told: str
    now: Callable[[Any], object]
    by_imports: bool | Callable[[Any, Any], bool] = False
    is_fresh: Callable[[Any], bool] = lambda module: False


def state_now() -> State:
    """What the process keeps at this moment, of modules that are loaded."""
    if is_importing():
        wait_for_loading()
    modules = sys.modules
    return [(kept, _taken(kept, modules[kept.module])) for kept in _KEPT if kept.module in modules]


def is_importing() -> bool:
    """Whether some thread is in the middle of an import: its module is there already, and changes settings yet."""
    return bool(_bootstrap._module_locks)  # type: ignore[attr-defined]


def differences(before: State, imported: bool) -> Iterator[str]:
    """What changed since, in words. imported: modules were imported meanwhile."""
    known = dict(before)
    for kept in _KEPT:
        module = sys.modules.get(kept.module)
        if module is None:
            continue
        if imported and kept.by_imports:
            if callable(kept.by_imports) and kept in known and kept.by_imports(_taken(kept, module), known[kept]):
                yield kept.told
            continue
        if kept in known:
            if not _are_same(_taken(kept, module), known[kept]):
                yield kept.told
        elif not _is_fresh(kept, module):
            yield kept.told


def _is_fresh(kept: Kept, module: Any) -> bool:
    try:
        return kept.is_fresh(module)
    except Exception:  # a library of another version: nobody knows
        return False


def _taken(kept: Kept, module: Any) -> object:
    try:
        return kept.now(module)
    except Exception:  # a library of another version, or half imported: it is not looked at
        return None


def _are_same(now: object, before: object) -> bool:
    try:
        return bool(now == before)
    except Exception:  # values of libraries that cannot be compared are others
        return False


def _numpy_generator(mtrand: Any) -> object:
    """The state of numpy's global generator: its words, and of the object the second of two normal draws it keeps."""
    shared = mtrand._rand
    kind: Any = type(shared)
    bits = shared._bit_generator
    if type(bits).__name__ != "MT19937" or not _lies_in_object(kind, _second_normal):
        return bits.state, shared.get_state(legacy=False)
    return ctypes.string_at(bits.ctypes.state_address, _WORDS * 4 + 4), _bytes_of(shared, kind)


def _is_unused(mtrand: Any) -> bool:
    """Whether nobody has drawn from numpy's global generator since it was made."""
    _, words, position, has_kept, _ = mtrand._rand.get_state()
    return int(words[0]) == _FIRST and position == _WORDS - 1 and not has_kept


def _second_normal(kind: type[Any]) -> tuple[Any, Callable[[], object]]:
    """A generator of numpy, and a draw that gives what it has kept and leaves its words alone."""
    generator = kind(0)
    generator.standard_normal()
    return generator, generator.standard_normal


def _one_number(kind: type[Any]) -> tuple[Any, Callable[[], object]]:
    generator = kind(0)
    generator.random()
    return generator, generator.random


def _bytes_of(generator: object, kind: Any) -> bytes:
    """What an object holds in memory of its own, as its class lays it out; ten times as fast as asking for a copy."""
    return ctypes.string_at(id(generator) + object.__basicsize__, kind.__basicsize__ - object.__basicsize__)


@lru_cache(maxsize=8)
def _lies_in_object(kind: Hashable, draw_of: Callable[[Any], tuple[Any, Callable[[], object]]]) -> bool:
    """Whether a draw can be seen in the memory of a generator of this class; tried with one of our own."""
    if sys.implementation.name != "cpython":
        return False
    generator, draw = draw_of(kind)
    before = _bytes_of(generator, kind)
    if _bytes_of(generator, kind) != before:
        return False
    draw()
    return _bytes_of(generator, kind) != before


def _generators(random: Any) -> object:
    """The states of Python's generators that modules keep for everybody, that of `random` itself among them."""
    global _looked
    if len(sys.modules) != _looked:
        for name, module in list(sys.modules.items()):
            space = getattr(module, "__dict__", None)
            if name not in _seen and type(space) is dict and not is_being_imported(space):
                _seen.add(name)
                if "random" in space or "Random" in space:  # who has neither has made none
                    found = [
                        value
                        for attribute, value in list(space.items())
                        if isinstance(value, random.Random) and (name, attribute) not in _ORDERS_WORK
                    ]
                    _shared.update({id(each): each for each in found if not isinstance(each, random.SystemRandom)})
        _looked = len(sys.modules)
    return _States([_state_of(each, random.Random) for each in _shared.values()])


def _state_of(generator: Any, kind: Any) -> object:
    base = kind.__base__
    if type(generator) is kind and _lies_in_object(base, _one_number):
        return _bytes_of(generator, base), generator.gauss_next
    return generator.getstate()


class _States(tuple[object, ...]):
    """States of generators, in the order in which they were found; those that were found later do not count."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _States) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


# Generators that decide in which order a library does what it has to do in any case, another order in every process.
_ORDERS_WORK: Final = frozenset({("sympy.core.random", "_assumptions_rng")})
_looked = 0  # modules that were looked at
_seen: Final[set[str]] = set()
_shared: Final[dict[int, Any]] = {}


def is_being_imported(space: dict[str, Any]) -> bool:
    """Whether the module that has these names is being imported."""
    return bool(getattr(space.get("__spec__"), "_initializing", False))


_WORDS: Final = 624  # of the Mersenne Twister
_FIRST: Final = 1 << 31  # of them, until the first are used up


def _loggers(logging: Any) -> dict[object, object]:
    """What is set up for each logger, by its name, and below "" for all of them."""
    root = logging.root
    levels = [(each.level, each.formatter, tuple(each.filters)) for each in root.handlers]
    found: dict[object, object] = {
        name: (each.level, each.disabled, each.propagate, tuple(each.handlers), tuple(each.filters))
        for name, each in list(root.manager.loggerDict.items())
        if isinstance(each, logging.Logger)
        and (each.level or each.handlers or each.filters or each.disabled or not each.propagate)
    }
    found[""] = root.level, root.manager.disable, tuple(root.handlers), levels, tuple(root.filters)
    return found


def _changes_loggers_of_others(now: Any, before: Any) -> bool:
    """Whether loggers differ that were set up before; modules that are imported set up their own."""
    return any(now.get(name) != state for name, state in before.items())


def _decimal(decimal: Any) -> object:
    return _numbers_and_traps(decimal.getcontext())


def _numbers_and_traps(context: Any) -> object:
    *numbers, _, traps = context.__reduce__()[1]  # between them flags, which any computation sets
    return numbers, traps


def _nested(options: dict[str, Any]) -> object:
    """A copy of dicts in dicts."""
    inner = [_nested(value) for value in options.values() if type(value) is dict]
    return [options.copy(), *inner] if inner else options.copy()


def _pandas_options(config: Any) -> object:
    """The options of pandas, which lie in dicts in dicts; where they lie does not change once they are registered."""
    global _lying
    known, number, folded = _lying
    if known is not config._global_config or number != len(config._registered_options):
        number, folded, pending = len(config._registered_options), [], [config._global_config]
        while pending:
            folded.append(pending.pop())
            pending += [value for value in folded[-1].values() if type(value) is dict]
        _lying = config._global_config, number, folded
    return [each.copy() for each in folded]


_lying: tuple[object, int, list[dict[str, Any]]] = (None, 0, [])


def _figures(helpers: Any) -> object:
    """The figures of pyplot, and how much is drawn in each."""
    figures = [(number, manager.canvas.figure) for number, manager in helpers.Gcf.figs.items()]
    return [(number, [len(axes._children) for axes in figure.axes]) for number, figure in figures]


def _interpreter(sys: Any) -> object:
    return (
        limit_of_program(), sys.get_int_max_str_digits(), sys.getswitchinterval(), sys.stdin, sys.stdout,
        sys.stderr, sys.excepthook, sys.displayhook, list(sys.argv), gc.isenabled(), gc.get_threshold(),
    )  # fmt: skip


def _at_exit(atexit: Any) -> object:
    """How many functions are called at the end; one of them is that of `weakref.finalize`, once anybody uses it."""
    return atexit._ncallbacks() - bool(weakref.finalize._registered_with_atexit)  # type: ignore[attr-defined]


def _handlers(signals: Any) -> object:
    return [signals.getsignal(each) for each in _SIGNALS]


_SIGNALS: Final = [int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]


_ERRORS_OF_NUMPY: Final = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_PRINTED_BY_NUMPY: Final = {
    "edgeitems": 3, "threshold": 1000, "floatmode": "maxprec", "precision": 8, "suppress": False, "linewidth": 75,
    "nanstr": "nan", "infstr": "inf", "sign": "-", "formatter": None, "legacy": False, "override_repr": None,
}  # fmt: skip

_KEPT: Final[tuple[Kept, ...]] = (
    Kept(
        "random", "draws from, or seeds, a random generator of the process", _generators,
        is_fresh=lambda random: random._inst.getstate()[1][:: _WORDS] == (_FIRST, _WORDS),
    ),
    Kept(
        "numpy.random.mtrand", "draws from, or seeds, numpy's random generator of the process", _numpy_generator,
        is_fresh=_is_unused,
    ),
    Kept(
        "torch", "draws from, or seeds, torch's random generator of the process",
        lambda torch: torch.random.get_rng_state().numpy().tobytes(),
        is_fresh=lambda torch: bool((torch.random.get_rng_state() == torch.Generator().get_state()).all()),
    ),
    Kept("os", "changes variables of the environment", lambda os: dict(os.environ._data), by_imports=True),
    Kept("sys", "changes settings of the interpreter (sys)", _interpreter),
    Kept("sys", "changes sys.path", lambda sys: list(sys.path), by_imports=True),
    Kept("_signal", "changes how signals are handled", _handlers),
    Kept("_locale", "changes the locale", lambda locale: locale.setlocale(locale.LC_ALL)),
    Kept("warnings", "changes the filters of warnings", lambda warnings: list(warnings.filters), by_imports=True),
    Kept("logging", "changes loggers or their handlers", _loggers, by_imports=_changes_loggers_of_others),
    Kept(
        "decimal", "changes the context of decimals", _decimal,
        is_fresh=lambda decimal: _decimal(decimal) == _numbers_and_traps(decimal.DefaultContext),
    ),
    Kept(
        "csv", "registers dialects of CSV", lambda csv: (csv.list_dialects(), csv.field_size_limit()),
        is_fresh=lambda csv: len(csv.list_dialects()) == 3 and csv.field_size_limit() == 128 << 10,
    ),
    Kept("copyreg", "registers how objects are pickled", lambda copyreg: dict(copyreg.dispatch_table), by_imports=True),
    Kept(
        "socket", "changes the default timeout of sockets", lambda socket: socket.getdefaulttimeout(),
        is_fresh=lambda socket: socket.getdefaulttimeout() is None,
    ),
    Kept("atexit", "registers what is done at the end of the process (atexit)", _at_exit, by_imports=True),
    Kept("builtins", "changes builtins", lambda builtins: len(vars(builtins)), by_imports=True),
    Kept(
        "numpy", "changes how numpy treats errors or prints", lambda np: (np.geterr(), np.get_printoptions()),
        is_fresh=lambda np: (np.geterr(), np.get_printoptions()) == (_ERRORS_OF_NUMPY, _PRINTED_BY_NUMPY),
    ),
    Kept(
        "pandas._config.config", "changes options of pandas", _pandas_options,
        is_fresh=lambda config: all(
            config.get_option(name) == option.defval for name, option in config._registered_options.items()
        ),
    ),
    Kept(
        "matplotlib", "changes settings of matplotlib (rcParams)", lambda m: dict.copy(m.rcParams),
        is_fresh=lambda m: all(dict.get(m.rcParams, name) == value for name, value in dict.items(m.rcParamsOrig)),
    ),
    Kept(
        "matplotlib._pylab_helpers", "draws in figures of pyplot, which stay open", _figures,
        is_fresh=lambda helpers: not helpers.Gcf.figs,
    ),
    Kept(
        "sklearn._config", "changes settings of scikit-learn", lambda config: config.get_config(),
        is_fresh=lambda config: config.get_config() == config._global_config,
    ),
    Kept("xarray.core.options", "changes options of xarray", lambda options: dict(options.OPTIONS)),
    Kept("dask.config", "changes settings of dask", lambda config: _nested(config.config), by_imports=True),
)  # fmt: skip
