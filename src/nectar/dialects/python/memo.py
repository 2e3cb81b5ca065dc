"""`@nectar.memo`: a function whose results are kept, and found again by what it computes and what it is given."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from nectar.catalog.service import Catalog
from nectar.dialects.python import values
from nectar.dialects.python.arguments import Parameters
from nectar.dialects.python.calling import Calling, left_alone, tried
from nectar.dialects.python.describe import label_of
from nectar.dialects.python.invocation import Invocation, Refused
from nectar.errors import NectarError, NectarWarning, TooLargeError, UnreadInputError, UserError
from nectar.keys import declared, registry, wrappers
from nectar.keys.api import trace
from nectar.keys.call import program_of
from nectar.keys.expansion import Expansion, WalkContext, joined
from nectar.keys.outcome import outcome_of
from nectar.keys.patience import patience
from nectar.model.entry import Entry
from nectar.overhead.garbage import uncollected
from nectar.overhead.sites import Site
from nectar.overhead.spent import NOTHING, Spent
from nectar.quantities import parse_duration
from nectar.recursion import is_too_deep
from nectar.report.run import Part
from nectar.session import Session, current
from nectar.store.problem import Damaged, Gone
from nectar.trust.secrets import logger, redacted

_P = ParamSpec("_P")
_R = TypeVar("_R")
_log: Final = logger("nectar.memo")
_TRACING: Final = 0.5  # seconds that may be spent on what only serves to say what changed, should anybody ask


@overload
def memo(
    function: Callable[_P, _R], *, ignore: Sequence[str] = (), version: object = None, ttl: str | float | None = None,
    depends_on: Iterable[object] = (), verbose: bool | int = False,
) -> Memoized[_P, _R]: ...  # fmt: skip
@overload
def memo(
    *, ignore: Sequence[str] = (), version: object = None, ttl: str | float | None = None,
    depends_on: Iterable[object] = (), verbose: bool | int = False,
) -> Callable[[Callable[_P, _R]], Memoized[_P, _R]]: ...  # fmt: skip
def memo(
    function: Callable[..., Any] | None = None, *, ignore: Sequence[str] = (), version: object = None,
    ttl: str | float | None = None, depends_on: Iterable[object] = (), verbose: bool | int = False,
) -> Any:  # fmt: skip
    """The function, with results that are kept and reused: by anybody, as long as code and arguments are the same.

    Args:
        function: Any function, method or callable. What it does is looked at, and everything it calls; if it cannot be
            cached it runs as it would otherwise, and one warning says why.
        ignore: Names of parameters that make no difference to the result.
        version: Any value; results of other versions are not used. Seldom needed: a change of the code is noticed.
        ttl: How long a result may be used, such as "1d".
        depends_on: What else the result depends on, such as files; whoever says so vouches that nothing is missing.
        verbose: Says on stderr what becomes of each call.

    >>> import nectar
    >>> @nectar.memo
    ... def cube(n):
    ...     return n**3
    >>> cube(3)
    27
    """
    wrap = functools.partial(
        Memoized, ignore=tuple([ignore] if isinstance(ignore, str) else ignore), version=version, ttl=ttl,
        depends_on=tuple(depends_on), verbose=verbose,
    )  # fmt: skip
    return wrap if function is None else wrap(function)


class Memoized(Generic[_P, _R]):
    """A function whose results are kept. Call it like the function itself, which is `func`."""

    def __init__(
        self,
        function: Callable[_P, _R],
        *,
        ignore: tuple[str, ...] = (),
        version: object = None,
        ttl: str | float | None = None,
        depends_on: tuple[object, ...] = (),
        verbose: bool | int = False,
    ) -> None:
        if isinstance(function, staticmethod | classmethod):
            kind = type(function).__name__
            raise UserError(f"put @{kind} above @nectar.memo: it is the function that is remembered")
        if not callable(function):
            raise UserError(f"{function!r} cannot be called, so there is nothing to remember")
        functools.update_wrapper(self, function)
        if depends_on:
            declared.depends_on(function, *depends_on)
        self.function = self.func = function
        self.label = label_of(function)
        self.ttl = None if ttl is None else parse_duration(ttl)
        self.verbose = verbose
        self.version = version
        self.extra = joined("memo", *ignore) + program_of(version) if ignore or version is not None else b""
        self._ignore = ignore
        self._parameters = Parameters(function, ignore)
        self._shape = _shape_of(function)
        self._times: list[float] = []
        self._warned: set[str] = set()
        self._versions: set[bytes] = set()
        self._walked: Spent | None = None  # on the first walk over the function, until somebody asks
        self.is_async = inspect.iscoroutinefunction(function)
        self._is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if self.is_async:
            _mark_as_coroutine_function(self)

    # calling

    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What the function gives for these arguments; computed only if nobody knows it yet."""
        session = None if is_too_deep() else current()
        if session is None:
            return self.function(*args, **kwargs)
        if self.is_async:
            return self._call_async(session, args, kwargs)  # type: ignore[return-value]
        site = self.site_left_alone(session)
        if site is not None:
            with left_alone(session, site):
                return self.function(*args, **kwargs)
        with Calling(self, session, args, kwargs) as calling:
            if not calling.is_known:  # called from here and not from further down, for functions that call themselves
                calling.value = self.function(*args, **kwargs)
        return calling.value  # type: ignore[no-any-return]

    def site_left_alone(self, session: Session) -> Site | None:
        """The site of the function if a call runs without a look; None if it gets one.

        Looks may have shown to take longer than the function itself, or be in vain at the moment.
        """
        steering, health = session.steering, session.health
        if steering.is_free and health.is_well:
            return None
        site = steering.sites.named(self.label)
        if site.limit or not steering.looks_at_call(site) or not (health.is_well or health.looks()):
            return site
        return None

    async def _call_async(self, session: Session, args: Any, kwargs: Any, refresh: bool = False) -> Any:
        site = None if refresh else self.site_left_alone(session)
        if site is not None:
            with left_alone(session, site):
                return await self.function(*args, **kwargs)  # type: ignore[misc]
        async with Calling(self, session, args, kwargs, refresh) as calling:
            if not calling.is_known:
                calling.value = await self.function(*args, **kwargs)  # type: ignore[misc]
        return calling.value

    def begin(
        self, session: Session, args: Any, kwargs: Any, refresh: bool = False, seconds: float = inf
    ) -> Invocation | Refused:
        """The call with its keys, or why it has none.

        seconds: that this may take; where the function is looked at for the first time, that may take as long besides.
        """
        is_too_large = False
        try:
            invocation = self._prepared(session, args, kwargs, seconds)
            if type(invocation) is Invocation:
                invocation.refreshing |= refresh
                return invocation
            reason = str(invocation)
        except NectarError as error:
            is_too_large = isinstance(error, TooLargeError | UnreadInputError)
            reason = str(error)
            if not isinstance(error.__cause__, RecursionError):  # which may be that of the caller, as deep as it is
                self.warn(reason)
        except RecursionError:
            reason = "it was called too deep in a recursion"
        except Exception as error:  # a mistake in Nectar must not stop the program
            _log.exception("%s runs as without Nectar", self.label)
            reason = f"Nectar made a mistake: {type(error).__name__}: {error}"
        return Refused(Part(self.label, "uncacheable", kind="call", explain=lambda: reason), is_too_large)

    def _prepared(self, session: Session, args: Any, kwargs: Any, seconds: float) -> Invocation | str:
        if self._is_generator:
            raise UserError(f"{self.label} is a generator, which can be used only once: return a list to have it kept")
        catalog = session.catalog
        if catalog is None:
            return "the catalog cannot be used"
        shape = _shape_of(self.function)
        if not all(map(operator.is_, shape, self._shape)):  # somebody gave the function other code, or other defaults
            self._parameters, self._shape = Parameters(self.function, self._ignore), shape
        arguments = self._parameters.bind(args, kwargs)
        if arguments is None:
            return "it does not take these arguments"  # and says so itself, when it is called
        if self._walked is None:
            begun, self._walked = Spent.now(), NOTHING
            with patience(seconds), uncollected():  # it makes tables that last
                outcome_of(self.function)
            self._walked = Spent.since(begun)
        invocation = Invocation(self, session, catalog, arguments, seconds)
        with patience(seconds):
            invocation.prepare()
        return invocation

    def spent_on_first_walk(self) -> Spent:
        """What it has taken to walk over the function, for the call that was the first to do so."""
        walked = self._walked
        if walked is not NOTHING:
            self._walked = NOTHING
        return walked or NOTHING

    def ended(self, session: Session, part: Part) -> None:
        """A call has ended."""
        session.totals.count(part)
        if self.verbose:
            print(f"nectar: {part}", file=sys.stderr)

    # as people know it from joblib

    def check_call_in_cache(self, /, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Whether the result of this call is known, so that calling would not compute it."""
        invocation = self._peek(args, kwargs)
        return isinstance(invocation, Invocation) and tried(invocation.find)

    def call_and_shelve(self, /, *args: _P.args, **kwargs: _P.kwargs) -> Shelved[_R]:
        """A handle to the result, which is computed if nobody knows it yet; `get()` fetches it from the store."""
        return Shelved(self, args, kwargs)

    def call(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What the function gives when it is run now, whatever is known; the new result takes the place of the old."""
        session = None if is_too_deep() else current()
        if session is None:
            return self.function(*args, **kwargs)
        if self.is_async:
            return self._call_async(session, args, kwargs, refresh=True)  # type: ignore[return-value]
        with Calling(self, session, args, kwargs, refresh=True) as calling:
            calling.value = self.function(*args, **kwargs)
        return calling.value  # type: ignore[no-any-return]

    def clear(self, warn: bool = True) -> int:
        """Forgets the results of this function as it is now, but for those pinned or in use; how many went."""
        session = current()
        catalog = None if session is None else session.catalog
        if session is None or catalog is None:
            return 0
        session.settle()
        program = program_of(self.function, self.extra)
        return catalog.discard(catalog.inquire([program])[program])

    def explain(self, /, *args: _P.args, **kwargs: _P.kwargs) -> str:
        """Whether calling would reuse a result, and if not, why; nothing is run."""
        invocation = self._peek(args, kwargs)
        if not isinstance(invocation, Invocation):
            return invocation.part.reason
        return "its result is known" if tried(invocation.find) else _why_missed(invocation)

    def _peek(self, args: Any, kwargs: Any) -> Invocation | Refused:
        session = current()
        if session is None:
            return Refused(Part(self.label, explain=lambda: "Nectar is off"))
        return self.begin(session, args, kwargs)

    # what invocations ask

    def is_quick(self, seconds: float) -> bool:
        """Whether this function has shown that it takes no longer than that."""
        return len(self._times) >= 3 and max(self._times) < seconds

    def note_time(self, seconds: float) -> None:
        """Remembers how long a call took."""
        self._times = [*self._times[-7:], seconds]

    def explainer(self, invocation: Invocation) -> Callable[[], str]:
        """Tells, when asked, why a call had to be computed."""
        return functools.partial(_why_missed, invocation)

    def remember_version(self, session: Session, catalog: Catalog, program: bytes) -> None:
        """Keeps a trace of the function as it is, once, in the background, so that later changes can be named."""
        if program in self._versions:
            return
        self._versions.add(program)
        try:
            if catalog.has_version(self.label, program):
                return
            with patience(_TRACING), uncollected():
                told = trace(self.function).to_json().encode()  # now: it may be another one soon
        except NectarError as error:
            _log.info("no trace of %s is kept: %s", self.label, error)
            return
        session.keeper.submit(lambda: catalog.add_version(self.label, program, told), len(told))

    def warn(self, text: str) -> None:
        """Says once, where the function is called, why it is computed each time."""
        if text in self._warned:
            return
        first = not self._warned
        self._warned.add(text)
        if not first:
            _log.info("%s is computed each time: %s", self.label, text)
            return
        try:
            told = redacted(f"{self.label} is computed each time: {text}")
            warnings.warn(told, NectarWarning, stacklevel=_depth_of_nectar())
        except NectarWarning as warning:  # where warnings are errors; the program runs all the same
            _log.warning("%s", warning)

    # as a function among others

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else Bound(self, instance)

    def __repr__(self) -> str:
        return f"<memoised {self.label}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        # By name, as functions are; but those who send functions to where their names mean nothing send the function.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if "cloudpickle" in caller:
            options = {"ignore": self._ignore, "version": self.version, "ttl": self.ttl, "verbose": self.verbose}
            return _rebuilt, (self.function, options)
        return getattr(self, "__qualname__", self.label)

    def __copy__(self) -> Memoized[_P, _R]:
        return self

    def __deepcopy__(self, memory: dict[int, Any]) -> Memoized[_P, _R]:
        return self


class Bound:
    """A memoised function as a method of an instance, which is its first argument."""

    def __init__(self, memo: Memoized[..., Any], instance: object) -> None:
        self.__func__, self.__self__ = memo, instance
        self.__name__, self.__qualname__ = (getattr(memo, name, memo.label) for name in ("__name__", "__qualname__"))
        self.__doc__, self.__module__ = memo.__doc__, memo.__module__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """What the method gives for these arguments."""
        memo, session = self.__func__, current()
        args = (self.__self__, *args)
        if session is None or memo.is_async:
            return memo(*args, **kwargs)
        site = memo.site_left_alone(session)
        if site is not None:
            with left_alone(session, site):
                return memo.function(*args, **kwargs)
        with Calling(memo, session, args, kwargs) as calling:  # here too, for methods that call themselves
            if not calling.is_known:
                calling.value = memo.function(*args, **kwargs)
        return calling.value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by copy and pickle, before there is anything to ask
            raise AttributeError(name)
        found = getattr(self.__func__, name)
        return functools.partial(found, self.__self__) if name in _TAKE_ARGUMENTS else found

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self.__name__)

    def __repr__(self) -> str:
        return f"<memoised method {self.__func__.label} of {type(self.__self__).__qualname__}>"


_TAKE_ARGUMENTS: Final = frozenset({"check_call_in_cache", "call_and_shelve", "call", "explain"})


class Shelved(Generic[_R]):
    """A handle to the result of a call. Pickled, it is small: it holds the key of the result, not the arguments."""

    def __init__(self, memo: Memoized[..., _R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._memo = memo
        self._call: tuple[Any, Any] | None = (args, kwargs)
        memo(*args, **kwargs)
        invocation = memo._peek(args, kwargs)
        self._keys = invocation.keyed.keys if isinstance(invocation, Invocation) else ()

    def get(self) -> _R:
        """The result; computed again if it was deleted meanwhile, as long as the arguments are at hand."""
        if self._call is not None:
            args, kwargs = self._call
            return self._memo(*args, **kwargs)
        for entry in self._entries():
            session = current()
            opened = session.catalog.open(entry) if session and session.catalog else None
            if opened is not None and not isinstance(opened, Gone | Damaged):
                return values.restored(opened, None)  # type: ignore[no-any-return]
        raise UserError(f"the result of {self._memo.label} is no longer kept: call the function again")

    def clear(self) -> None:
        """Forgets the result."""
        session = current()
        if session is not None and session.catalog is not None:
            session.catalog.discard(self._entries())

    def _entries(self) -> list[Entry]:
        session = current()
        if session is None or session.catalog is None:
            return []
        session.settle()
        return list(session.catalog.index.lookup(self._keys).values())

    def __getstate__(self) -> tuple[Any, ...]:
        return self._memo, self._keys

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._memo, self._keys = state
        self._call = None

    def __repr__(self) -> str:
        return f"<shelved result of {self._memo.label}>"


def _why_missed(invocation: Invocation) -> str:
    """Why a call had to be computed, for people; few ask."""
    from nectar.dialects.python.explain import explain_miss

    return explain_miss(invocation)


def _shape_of(function: Any) -> tuple[object, ...]:
    """What the parameters of a function hang on; to be compared by identity."""
    return (
        getattr(function, "__code__", None),
        getattr(function, "__defaults__", None),
        getattr(function, "__kwdefaults__", None),
    )


def _depth_of_nectar() -> int:
    """How many frames up the program of the user is, for warnings to point there."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("nectar."):
        frame, depth = frame.f_back, depth + 1
    return depth


def _rebuilt(function: Callable[..., Any], options: dict[str, Any]) -> Memoized[..., Any]:
    return Memoized(function, **options)


def _mark_as_coroutine_function(memo: Any) -> None:
    """Lets `inspect` and frameworks know that calling gives a coroutine; before Python 3.12 only `asyncio` can know."""
    mark = getattr(inspect, "markcoroutinefunction", None)
    if mark is not None:
        mark(memo)
    else:
        import asyncio.coroutines

        memo._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


def _expand_memoized(value: Memoized[..., Any], walk: WalkContext) -> Expansion:
    """What it computes: the function; what is ignored, and how long results are used, can make a difference too."""
    if walk.is_settled(value):  # what is handed to it is handed to the function
        walk.settle(value, value.function)
    payload = joined(*value._ignore, "ttl", repr(value.ttl))
    return Expansion("memoised", payload, (value.function, value.version), ("function", "version"))


registry.add(Memoized, _expand_memoized)
wrappers.add(Memoized, lambda memo: memo.function)
