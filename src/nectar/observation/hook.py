"""What the interpreter tells of files, network and processes (keys/audit.py), and whom it belongs to.

In: events of the interpreter, in the thread that acts. Out: an Event for the computation that is watched there. Law: it
never fails and never changes what the program does; while nothing is watched it returns at once. It listens only once
something has been watched.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from nectar.forks import in_child
from nectar.keys import audit, declared
from nectar.keys.origin import is_module_of_application
from nectar.observation.installed import is_installed
from nectar.observation.place import place_of_event

READ, LIST, WRITE, MAKE, LINK, REMOVE, RENAME = "read", "list", "write", "make", "link", "remove", "rename"
NETWORK, PROCESS, INPUT, RANDOM, MOVE = "network", "process", "input", "random", "move"
SOMEWHERE, SOURCE, CODE = "somewhere", "source", "code"
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_OWN: Final = ("nectar.observation.", "nectar.keys.audit")
_RANDOM_DEVICES: Final = ("/dev/urandom", "/dev/random")


class Event(NamedTuple):
    """Something that happened. subject: the path, host or command. existed: whether there was something at that path.

    place: where the program was. certain: it is known whose it is. target: the new path of what was renamed, or what
    a link leads to.
    """

    kind: str
    subject: str
    existed: bool
    place: str
    certain: bool
    target: str = ""


class Watched:
    """A computation under way, as the hook sees it. cooperative: other tasks may run in its thread meanwhile."""

    __slots__ = ("alone", "cooperative", "depth", "done", "events", "excused", "others", "outer", "thread", "threads")

    def __init__(self, cooperative: bool) -> None:
        self.cooperative = cooperative
        self.alone = True  # nothing else was watched at the same time
        self.depth = 1  # computations within each other, this one the innermost
        self.done = False
        self.events: list[Event] = []
        self.excused: set[str] = set()  # paths that were used for it, which is none of its business
        self.others: set[str] = set()  # paths that Nectar used meanwhile, in threads of its own
        self.outer: Watched | None = None
        self.thread = 0
        self.threads: list[threading.Thread] = []  # that it started


_current: Final[ContextVar[Watched | None]] = ContextVar("nectar_watch", default=None)
_under_way: Final[list[Watched]] = []
_starters: Final[weakref.WeakKeyDictionary[threading.Thread, Watched]] = weakref.WeakKeyDictionary()
_installed = False
_no_code: Final[frozenset[CodeType]] = frozenset()


def begin(watched: Watched) -> None:
    """From now on what happens in this thread, and in threads it starts, belongs to the computation."""
    global _installed
    if not _installed:
        _installed = True
        audit.listen({event: partial(_heard, event) for event in _HANDLERS})
    outer = _current.get()
    watched.outer = None if outer is None or outer.done else outer
    watched.thread = get_ident()
    watched.depth = 1 if watched.outer is None else watched.outer.depth + 1
    if len(_under_way) >= watched.depth:  # there are others than those it is part of
        for other in [each for each in _under_way if not _holds(each, watched)]:
            other.alone = watched.alone = False
    _under_way.append(watched)
    _current.set(watched)


def end(watched: Watched) -> None:
    """The computation is over; what it did, whatever it is part of did too."""
    watched.done = True
    _under_way.remove(watched)
    outer = watched.outer
    _current.set(outer)
    if outer is not None:
        outer.events += watched.events
        outer.excused |= watched.excused
        outer.others |= watched.others
        outer.threads += watched.threads


def is_watching() -> bool:
    """Whether any computation is watched."""
    return bool(_under_way)


def note_source(text: str) -> None:
    """Library code that runs now has read a clock or the like."""
    try:
        _note(SOURCE, text)
    except Exception as error:  # never the program's problem; what it read is not known any more
        _lose(f"{text}: {error!r}")


def _holds(outer: Watched, inner: Watched | None) -> bool:
    while inner is not None:
        if inner is outer:
            return True
        inner = inner.outer
    return False


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if not _under_way:
        return
    try:
        _HANDLERS[event](args)
    except Exception as error:  # the program goes on as if nobody listened; what it did is not known any more
        _lose(f"{event}: {error!r}")


def _lose(text: str) -> None:
    lost = Event(PROCESS, f"something that could not be followed ({text})", False, "", False)
    for each in tuple(_under_way):
        each.events.append(lost)


def _belongs_to() -> tuple[list[Watched], bool]:
    """The computations that what happens here belongs to, and whether that is certain."""
    here = _current.get()
    if here is not None and not here.done:
        return [here], True
    thread = threading._active.get(get_ident())  # type: ignore[attr-defined]
    if thread is None or isinstance(thread, threading._DummyThread):  # of an engine: it works for whoever asked it
        return list(_under_way), sum(each.outer is None for each in _under_way) == 1
    starter = _starters.get(thread)
    if starter is not None and not starter.done:
        return [starter], True
    mine = [each for each in _under_way if each.thread == get_ident()]
    if mine and not mine[-1].cooperative:  # nothing else can run in this thread
        return [mine[-1]], True
    return list(_under_way), False  # another thread, or another task of the same loop: it may work for any of them


def _note(kind: str, subject: str, existed: bool = True, target: str = "") -> None:
    whose, certain = _belongs_to()
    place = place_of_event(_actor(), _vouched())
    if place is None:
        for each in whose:
            (each.excused if certain else each.others).add(subject)
        return
    event = Event(kind, subject, existed, place.text, certain and not place.finalizing, target)
    for each in whose:
        each.events.append(event)


def _actor() -> FrameType | None:
    """The code that has caused the event which is being handled."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
        frame = frame.f_back
    return frame


_vouched_at: tuple[int, frozenset[CodeType]] = (0, _no_code)


def _vouched() -> frozenset[CodeType]:
    """Code of the functions that people have declared to be pure."""
    global _vouched_at
    now = declared.version()
    if _vouched_at[0] != now:
        _vouched_at = now, declared.pure_code()
    return _vouched_at[1]


# events


def _path(path: Any, folder: int = -1) -> str | None:
    """The whole path of what an event names; None for a number of an open file, which was opened by another event."""
    if isinstance(path, int) or path is None:
        return None
    text = os.fsdecode(path)
    if text.startswith("/"):
        return os.path.normpath(text)
    if folder >= 0:
        try:
            return os.path.normpath(os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text))
        except OSError:
            return None
    return os.path.normpath(os.path.join(os.getcwd(), text))


def _mode(path: str) -> int:
    """The kind of what lies at a path; 0 if nothing does."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _open(args: tuple[Any, ...]) -> None:
    named, by_python, flags = args
    if named == 0 and type(named) is int:
        _note(INPUT, "standard input")
        return
    path = _path(named)
    if path is None:
        return
    if by_python is None and not os.path.isabs(os.fsdecode(named)):  # os.open: it may be relative to any open folder
        _note(SOMEWHERE, os.fsdecode(named))
        return
    if not (isinstance(flags, int) and flags & _WRITES):
        if path in _RANDOM_DEVICES:
            _note(RANDOM, path)
        elif path != os.devnull and not is_installed(path):
            mode = _mode(path)
            _note(PROCESS if stat.S_ISFIFO(mode) else READ, path, mode != 0)
        return
    mode = _mode(path)
    if stat.S_ISFIFO(mode):
        _note(PROCESS, path)
    elif not stat.S_ISDIR(mode) and not stat.S_ISCHR(mode):  # a folder is "opened" to make a temporary file in it
        _note(WRITE, path, mode != 0)
        if flags & os.O_RDWR and mode:
            _note(READ, path)


def _listed(args: tuple[Any, ...]) -> None:
    path = _path("." if args[0] is None else args[0])
    if path is not None and not is_installed(os.path.join(path, "")):
        _note(LIST, path)


def _made(args: tuple[Any, ...]) -> None:
    path = _path(args[0], args[-1] if len(args) > 2 else -1)
    if path is not None:
        _note(MAKE, path, _mode(path) != 0)


def _removed(args: tuple[Any, ...]) -> None:
    path = _path(args[0], args[1] if len(args) > 1 and isinstance(args[1], int) else -1)
    if path is not None:
        _note(REMOVE, path, os.path.lexists(path))


def _renamed(args: tuple[Any, ...]) -> None:
    source, target = _path(args[0], args[2]), _path(args[1], args[3])
    if source is not None and target is not None:
        _note(RENAME, source, os.path.lexists(target), target)


def _linked(args: tuple[Any, ...]) -> None:
    """A hard link: what is read through it is what it leads to."""
    source, path = _path(args[0], args[2]), _path(args[1], args[3])
    if path is not None and source is not None:
        _note(LINK, path, os.path.lexists(path), source)


def _linked_by_name(args: tuple[Any, ...]) -> None:
    path = _path(args[1], args[2])
    if path is not None:
        leads_to = os.path.join(os.path.dirname(path), os.fsdecode(args[0]))
        _note(LINK, path, os.path.lexists(path), os.path.normpath(leads_to))


def _changed(args: tuple[Any, ...], folder: int = -1) -> None:
    path = _path(args[0], folder)
    if path is not None:
        _note(WRITE, path)


def _changed_below(args: tuple[Any, ...]) -> None:
    """What a path names was changed; the last argument is the number of the folder that it begins at."""
    _changed(args, args[-1])


def _database(args: tuple[Any, ...]) -> None:
    text = os.fsdecode(args[0])
    if text in (":memory:", ""):
        return
    if text.startswith("file:"):
        _database_of_address(text)
    _used(_path(text))  # an address is the name of a file for those who do not say that it is one


def _database_of_address(text: str) -> None:
    """A database as sqlite understands addresses: some are in memory, some may only be read."""
    found = urlsplit(text)
    named, options = unquote(found.path), parse_qs(found.query)
    mode = options.get("mode", [""])[-1]
    if named in (":memory:", "") or mode == "memory":
        return
    path = _path(named)
    if path is not None and (mode == "ro" or options.get("immutable", ["0"])[-1] in ("1", "true", "yes", "on")):
        _note(READ, path, _mode(path) != 0)
    else:
        _used(path)


def _used(path: str | None) -> None:
    """A database that may be read and written."""
    if path is not None:
        existed = _mode(path) != 0
        _note(WRITE, path, existed)
        if existed:
            _note(READ, path)


def _network(args: tuple[Any, ...]) -> None:
    _note(NETWORK, str(next((each for each in args if isinstance(each, (str, tuple, bytes))), "")))


def _process(args: tuple[Any, ...]) -> None:
    _note(PROCESS, str(args[0]) if args else "")


def _asked(args: tuple[Any, ...]) -> None:
    _note(INPUT, "what somebody types")


def _moved(args: tuple[Any, ...]) -> None:
    _note(MOVE, os.getcwd())


def _unpickled(args: tuple[Any, ...]) -> None:
    """A pickle names something by its module: code of the application is in no key for that."""
    if is_module_of_application(str(args[0])):
        _note(CODE, f"{args[0]}.{args[1]}")


def _thread(args: tuple[Any, ...]) -> None:
    started = getattr(args[0], "__self__", None)
    whose, certain = _belongs_to()
    if not isinstance(started, threading.Thread) or not certain or place_of_event(_actor(), _no_code) is None:
        return
    for each in whose:
        _starters[started] = each
        each.threads.append(started)


_HANDLERS: Final[dict[str, Callable[[tuple[Any, ...]], None]]] = {
    "open": _open,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "os.mkdir": _made,
    "os.remove": _removed,
    "os.rmdir": _removed,
    "shutil.rmtree": _removed,
    "os.rename": _renamed,
    "os.link": _linked,
    "os.symlink": _linked_by_name,
    "os.truncate": _changed,
    "os.utime": _changed_below,
    "os.chmod": _changed_below,
    "os.chown": _changed_below,
    "os.setxattr": _changed,
    "sqlite3.connect": _database,
    "os.chdir": _moved,
    **dict.fromkeys(
        (
            "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
            "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo", "socket.gethostname",
        ),
        _network,
    ),
    **dict.fromkeys(
        (
            "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
            "pty.spawn", "os.kill", "os.startfile", "webbrowser.open", "syslog.syslog",
        ),
        _process,
    ),
    "builtins.input": _asked,
    "pickle.find_class": _unpickled,
    "_thread.start_new_thread": _thread,
    "_thread.start_joinable_thread": _thread,
}  # fmt: skip
in_child(_under_way.clear)
