"""Ways to have a function remembered, as their users use them: Nectar, joblib.Memory, diskcache, redun, Hamilton.

In: an empty folder. Out: an object that remembers functions there. What a peer does not promise it is not asked for:
only Nectar sees that a helper was changed, and only Nectar lets one process wait for another that computes the same.
xorq is not among them: it remembers the results of table expressions, and no functions.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from benchmarks.programs import remembered

Function = Callable[..., Any]


class Peer(Protocol):
    """Remembers functions in a folder."""

    def remember(self, function: Function) -> Function:
        """The function, with a memory; called with its arguments by position."""

    def settle(self) -> None:
        """Everything computed so far is kept."""

    def close(self) -> None: ...


class Nothing:
    """No memory at all: what the function itself takes."""

    def __init__(self, folder: Path) -> None:
        pass

    def remember(self, function: Function) -> Function:
        return function

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class Nectar:
    """nectar.memo, with nothing but its home chosen and no limit that these sizes would reach."""

    def __init__(self, folder: Path) -> None:
        import nectar

        # hits are measured here; with a budget of time, calls that are quicker than their look are left alone
        nectar.enable(home=folder, budget="100TB", reserve=0, overhead="unlimited")
        nectar.pure(remembered._note)  # counting is no part of the result
        self._nectar = nectar

    def remember(self, function: Function) -> Function:
        return self._nectar.memo(function)

    def settle(self) -> None:
        from nectar.session import current

        session = current()
        assert session is not None
        session.settle()

    def close(self) -> None:
        self._nectar.disable()


class Joblib:
    """joblib.Memory. mmap_mode: how arrays come back; None reads them into memory."""

    def __init__(self, folder: Path, mmap_mode: str | None = None) -> None:
        import joblib

        self._memory = joblib.Memory(folder, mmap_mode=mmap_mode, verbose=0)

    def remember(self, function: Function) -> Function:
        return self._memory.cache(function)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class Diskcache:
    """diskcache.Cache.memoize with its defaults, but without a limit that these sizes would reach."""

    def __init__(self, folder: Path) -> None:
        import diskcache

        self._cache = diskcache.Cache(str(folder), size_limit=2**40)

    def remember(self, function: Function) -> Function:
        return self._cache.memoize()(function)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._cache.close()


class Functools:
    """functools.cache: the memory of one process, and the least a look-up can cost."""

    def __init__(self, folder: Path) -> None:
        pass

    def remember(self, function: Function) -> Function:
        return functools.cache(function)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class Redun:
    """redun: each call is a workflow of one task, its backend a file of SQLite."""

    def __init__(self, folder: Path) -> None:
        import redun
        from redun.config import Config

        logging.getLogger("redun").setLevel(logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self._task = redun.task
        self._scheduler = redun.Scheduler(config=Config({"backend": {"db_uri": f"sqlite:///{folder}/redun.db"}}))
        self._scheduler.load()

    def remember(self, function: Function) -> Function:
        task = self._task(namespace="benchmark")(function)
        return lambda *arguments: self._scheduler.run(task(*arguments))

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._scheduler.backend.session.close()


class Hamilton:
    """Hamilton: each call runs a graph of one node, with its cache on."""

    def __init__(self, folder: Path) -> None:
        from hamilton import ad_hoc_utils, driver

        logging.getLogger("hamilton").setLevel(logging.ERROR)
        self._module = ad_hoc_utils.create_temporary_module
        self._builder = lambda module: driver.Builder().with_modules(module).with_cache(path=folder).build()

    def remember(self, function: Function) -> Function:
        name = function.__name__
        graph = self._builder(self._module(function))
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        return lambda *arguments: graph.execute([name], inputs=dict(zip(names, arguments, strict=True)))[name]

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


PLAIN = "no memory"
PEERS: Mapping[str, Callable[[Path], Peer]] = {
    "nectar": Nectar,
    PLAIN: Nothing,
    "joblib": Joblib,
    "joblib, mapped": functools.partial(Joblib, mmap_mode="r"),
    "diskcache": Diskcache,
    "functools.cache": Functools,
    "redun": Redun,
    "hamilton": Hamilton,
}
IN_MEMORY = frozenset({PLAIN, "functools.cache"})  # know nothing of other processes
FOR_ARRAYS = frozenset({"joblib, mapped"})  # differ from their namesakes for large arrays only


def is_installed(peer: str) -> bool:
    return peer == PLAIN or importlib.util.find_spec(peer.partition(",")[0].partition(".")[0]) is not None
