"""`nectar run`: an unchanged program, run as Python would run it, with everything reused that is known.

In: a script or module and its arguments. Out: what the script prints, its exit code, and one line on stderr at the end.
Law: to the script nothing is different but the time; a traceback looks as it would without Nectar.
"""

from __future__ import annotations

import atexit
import builtins
import io
import os
import runpy
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NoReturn

import click

import nectar
from nectar.cli.failure import Failure, reported
from nectar.quantities import show_duration
from nectar.report.totals import process_totals
from nectar.report.watchers import watchers
from nectar.session import current, enable, own_time

_INTERRUPTED: Final = 130  # what shells give for a process that was interrupted
_HIDDEN: Final = (str(Path(nectar.__file__).parent) + os.sep, runpy.__file__, "<frozen runpy>")


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.option("--no-cache", is_flag=True, help="Reuse and keep nothing.")
@click.option("--refresh", is_flag=True, help="Compute everything anew, and keep it.")
@click.option("--explain", is_flag=True, help="Show on stderr what becomes of each query, and why.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS...]")
def run(module: str | None, no_cache: bool, refresh: bool, explain: bool, arguments: tuple[str, ...]) -> None:
    """Run a program as it is, and compute only what is new.

    Everything after SCRIPT (or after -m MODULE) is for the program. The exit code is its own. The last line on stderr
    says how much was reused.
    """
    program = program_of(module, arguments)
    if explain and not no_cache:
        explain_queries(str)
    run_to_its_end(program, {"off": True} if no_cache else {"refresh": True} if refresh else {})


def run_to_its_end(program: Callable[[], None], settings: dict[str, Any]) -> NoReturn:
    """Runs a program with Nectar on, and ends this process as the program ended."""
    with reported(False):
        enable(**settings)
    atexit.register(_tell_totals, os.getpid())
    sys.exit(exit_code_of(program))


def explain_queries(shown: Callable[[Any], str]) -> None:
    """From now on, what becomes of each query is told on stderr before it runs."""
    if find_spec("polars") is None and find_spec("pyspark") is None:
        raise Failure("queries of Polars and of Spark can be explained, and neither is installed")
    watchers.append(lambda explanation: print(shown(explanation), file=sys.stderr, flush=True))


def program_of(module: str | None, arguments: tuple[str, ...]) -> Callable[[], None]:
    """What runs the program; its arguments are in place. Raises UsageError if none was named."""
    if module is not None:
        sys.argv = [module, *arguments]
        _search_first(os.getcwd())
        return lambda: _run_module(module)
    if not arguments:
        raise click.UsageError("name a script, or a module with -m")
    script = Path(arguments[0])
    if not script.exists():
        raise Failure(f"there is no file {str(script)!r}")
    sys.argv = list(arguments)
    if script.is_dir() or script.suffix in (".zip", ".pyz"):
        return lambda: _run_folder(str(script))
    _search_first(str(script.resolve().parent))
    return lambda: _run_script(os.path.abspath(script))


def _search_first(folder: str) -> None:
    """Modules are looked for where Python would look first for this program, and not where the command lies."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


# running


def _run_script(path: str) -> None:
    """As Python runs a file: in a module of its own that is `__main__` to the end of the process."""
    main = types.ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=path, __builtins__=builtins, __loader__=loader, __cached__=None)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_folder(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def exit_code_of(program: Callable[[], None]) -> int:
    """Runs a program to its end. Whatever it raises is told as Python tells it."""
    try:
        program()
    except SystemExit as end:
        return _code_of(end)
    except KeyboardInterrupt as interrupt:
        _tell(interrupt)
        return _INTERRUPTED
    except BaseException as error:
        _tell(error)
        return 1
    return 0


def _code_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _tell(error: BaseException) -> None:
    without_own_frames(error)
    sys.excepthook(type(error), error, error.__traceback__)


def without_own_frames(error: BaseException) -> None:
    """The tracebacks of an error, and of those it came from, show the program and its libraries, not Nectar."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = _without_own(each.__traceback__)
        pending += [each.__cause__, each.__context__]
        pending += getattr(each, "exceptions", ())


def _without_own(traceback: types.TracebackType | None) -> types.TracebackType | None:
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_HIDDEN):
            frames.append(traceback)
        traceback = traceback.tb_next
    for one, following in zip(frames, [*frames[1:], None], strict=False):
        one.tb_next = following
    return frames[0] if frames else None


def _tell_totals(process: int) -> None:
    """The last line: threads of the program have ended, and what it registered for the end has run.

    A child that the program has forked says nothing: its counts began with those of its parent.
    """
    if os.getpid() != process:
        return
    session = current()
    if session is not None:
        session.settle(session.settings.linger)
    with suppress(Exception):  # the program may have closed it
        sys.stdout.flush()
    off = session is None and not process_totals.looked_at
    print("nectar: off: nothing was reused or kept" if off else _totals(), file=sys.stderr, flush=True)


def _totals() -> str:
    """What was reused and computed, and what Nectar itself took if there was something to look at."""
    took = sum(own_time().values())
    looked = process_totals.looked_at or process_totals.alone or process_totals.waived
    return f"{process_totals}; Nectar took {show_duration(took)}" if looked else str(process_totals)
