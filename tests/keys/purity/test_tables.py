"""The purity tables: what is denied, what is fine, and that no name in them is a mistake."""

import asyncio
import bisect
import builtins
import codecs
import collections
import contextlib
import contextvars
import copy
import csv
import ctypes
import datetime
import doctest
import email.charset
import functools
import gc
import glob
import gzip
import hashlib
import heapq
import importlib
import importlib.metadata
import inspect
import io
import itertools
import json
import locale
import logging
import math
import multiprocessing
import operator
import os
import pathlib
import pickle
import random
import re
import secrets
import shutil
import site
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
import urllib.parse
import urllib.request
import uuid
import warnings

import pytest

import nectar
from nectar.errors import UncacheableError
from nectar.keys.origin import treat_as_application
from nectar.keys.purity import deny, mutators, observers, tables
from nectar.keys.purity.tables import attribute_verdict, changed_arguments, module_verdict, needs_argument, verdict

OPTIONAL = ["numpy", "numpy.random", "pandas", "polars", "pyarrow", "pyarrow.parquet", "pyarrow.csv", "pyarrow.json",
            "pyarrow.feather", "pyarrow.dataset", "pyarrow.fs", "requests", "requests.adapters", "urllib3",
            "urllib3.connection", "fsspec", "joblib", "cloudpickle", "yaml", "pyarrow.orc"]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def libraries():
    for name in OPTIONAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


DENIED = [
    ("clock", time.time, time.monotonic, time.perf_counter_ns, time.ctime, datetime.datetime.now, datetime.date.today,
     datetime.datetime.utcnow, datetime.datetime.today),
    ("environment", time.localtime, time.mktime, datetime.datetime.fromtimestamp, datetime.date.fromtimestamp,
     os.environ, os.environ.get, os.environ.__getitem__, os.getenv, os.getcwd, locale.getlocale, sys.argv,
     socket.gethostname, pathlib.Path.cwd, pathlib.Path.home, multiprocessing.cpu_count, os.path.abspath,
     importlib.metadata.version, shutil.which),
    ("random", random.random, random.choice, random._inst.random, random.SystemRandom, secrets.token_hex, os.urandom,
     uuid.uuid1, uuid.uuid4),
    ("global state", random.seed, sys.setrecursionlimit, contextvars.copy_context, codecs.register,
     codecs.register_error, csv.register_dialect, csv.field_size_limit, email.charset.add_alias,
     doctest.register_optionflag, site.addsitedir, asyncio.set_event_loop_policy, logging.setLoggerClass,
     logging.setLogRecordFactory, ctypes.set_errno),
    ("file", open, io.open, codecs.open, os.listdir, os.path.exists, os.path.getsize, glob.glob, tempfile.mkdtemp,
     shutil.copy, pathlib.Path.read_text, pathlib.Path("x").read_bytes, pathlib.Path("x").exists, gzip.open),
    ("process", subprocess.run, subprocess.Popen, os.system, os.getpid, os.kill, multiprocessing.current_process),
    ("network", socket.socket, socket.create_connection, urllib.request.urlopen, asyncio.open_connection),
    ("database", sqlite3.connect),
    ("dynamic code", eval, exec, compile, __import__, importlib.import_module, pickle.loads, ctypes.CDLL,
     types.FunctionType, sys.modules),
    ("introspection", globals, locals, vars, breakpoint, gc.get_objects, sys._getframe, sys.exc_info, inspect.stack,
     inspect.currentframe, inspect.getsource, threading.get_ident, threading.current_thread),
    ("identity", id, hash, object().__hash__, "a".__hash__),
    ("input", input, sys.stdin),
]  # fmt: skip


def _name(value):
    """A name that is the same in every process, unlike a repr with an address."""
    return value if isinstance(value, str) else getattr(value, "__qualname__", type(value).__qualname__)


@pytest.mark.parametrize(("kind", "value"), [(row[0], value) for row in DENIED for value in row[1:]], ids=_name)
def test_denied(kind, value):
    if value is None:  # no standard input
        pytest.skip("not there")
    found = verdict(value)
    assert found is not None
    assert found.kind == kind
    assert deny.REASONS[kind] in found.reason


FINE = [
    print, len, sorted, map, getattr, repr, isinstance, type, super, socket.inet_aton, socket.inet_ntop, socket.htons,
    os.path.join, os.path.basename, os.path.splitext, os.path.dirname, os.path.normpath, os.fspath, os.fsencode,
    urllib.parse.urlparse, urllib.parse.quote, urllib.request.quote, urllib.request.Request, inspect.signature,
    time.struct_time, time.sleep, time.strptime, datetime.datetime, datetime.datetime.strptime,
    datetime.datetime.fromisoformat, datetime.timedelta, datetime.datetime(2020, 1, 1).isoformat,
    random.Random(1).random,
    io.StringIO, io.BytesIO, pathlib.Path, pathlib.PurePath.with_suffix, pathlib.Path("x").joinpath, json.loads,
    json.dumps, re.compile, re.sub, hashlib.sha256, copy.deepcopy, collections.OrderedDict, collections.Counter,
    threading.Lock, threading.RLock, threading.local, contextlib.contextmanager, contextlib.suppress, warnings.warn,
    warnings.catch_warnings, logging.getLogger, logging.info, uuid.uuid5, uuid.UUID, math.sin, itertools.chain,
    functools.partial, operator.add, heapq.heappush, glob.escape, shutil.Error, socket.error, socket.AddressFamily,
    subprocess.CalledProcessError, secrets.compare_digest, (1).__hash__, pickle.dumps, [].append, {}.get, "".join,
    typing.get_type_hints, gzip.decompress, locale.Error, os.PathLike, contextvars.ContextVar,
]  # fmt: skip


@pytest.mark.parametrize("value", FINE, ids=_name)
def test_fine(value):
    assert verdict(value) is None


@pytest.mark.parametrize("name", ["platform", "maxsize", "version_info", "byteorder", "float_info", "intern", "stdout"])
def test_fine_attributes_of_sys(name):
    assert attribute_verdict(sys, name) is None


@pytest.mark.parametrize("name", ["SEEK_SET", "sep", "linesep", "name", "O_RDONLY", "fspath", "path", "error"])
def test_fine_attributes_of_os(name):
    assert attribute_verdict(os, name) is None


@pytest.mark.parametrize(
    ("module", "name"),
    [(time, "timezone"), (time, "time"), (os, "environ"), (os, "getenv"), (sys, "argv"), (sys, "modules"),
     (sys, "flags"), (sys, "executable"), (builtins, "eval"), (random, "random"), (os, "getpid")],
)  # fmt: skip
def test_refused_attributes(module, name):
    assert attribute_verdict(module, name) is not None


def test_a_replaced_attribute_is_still_refused_by_its_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["other"])
    assert attribute_verdict(sys, "argv").kind == "environment"


def test_modules_as_values():
    for module in (time, random, os, sys, builtins, socket, datetime, pathlib, subprocess):
        assert module_verdict(module) is not None
    for module in (json, re, math, itertools, collections, copy, hashlib, urllib.parse):
        assert module_verdict(module) is None


def test_aliases_and_other_ways_to_the_same_object():
    def clock(now=time.time):
        return now

    cls = datetime.datetime
    table = {"t": time.time}
    for value in (clock(), cls.now, table["t"], getattr(time, "time"), time.__dict__["time"], builtins.eval,
                  vars(datetime.datetime)["now"]):  # fmt: skip
        assert verdict(value) is not None


def test_methods_of_subclasses_are_found_where_they_are_inherited():
    class Moment(datetime.datetime):
        pass

    class Fixed(datetime.datetime):
        @classmethod
        def now(cls):
            return cls(2020, 1, 1)

    class Folder(type(pathlib.Path())):
        pass

    assert verdict(Moment.now).kind == "clock"
    assert verdict(Fixed.now) is None
    assert verdict(Folder("x").read_text).kind == "file"


def test_fine_with_the_right_argument():
    assert needs_argument(random.Random)
    assert needs_argument(time.gmtime)
    assert verdict(time.strftime).unless == deny.Condition(1, None)
    assert verdict(datetime.datetime.fromtimestamp).unless == deny.Condition(1, "tz")
    assert not needs_argument(random.SystemRandom)
    assert not needs_argument(time.time)
    assert not needs_argument(len)


def test_numpy():
    np = pytest.importorskip("numpy")
    for value in (np.random.rand, np.random.normal, np.random.mtrand._rand.rand, np.load, np.loadtxt, np.fromfile,
                  np.memmap, np.random.seed, np.seterr, np.zeros(1).tofile):  # fmt: skip
        assert verdict(value) is not None, value
    for value in (np.array, np.sum, np.random.Generator, np.random.RandomState(1).rand, np.errstate, np.frombuffer,
                  np.random.default_rng(1).random, np.zeros(1).tobytes):  # fmt: skip
        assert verdict(value) is None, value
    assert needs_argument(np.random.default_rng)
    assert needs_argument(np.random.RandomState)
    assert needs_argument(np.random.PCG64)


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1]})
    for value in (pd.read_csv, pd.read_parquet, pd.read_sql, frame.to_parquet, pd.DataFrame.to_pickle, pd.Timestamp.now,
                  pd.set_option, frame["a"].to_pickle):  # fmt: skip
        assert verdict(value) is not None, value
    for value in (pd.DataFrame, frame.groupby, frame.to_numpy, frame.to_dict, pd.concat, pd.Timestamp, pd.to_datetime):
        assert verdict(value) is None, value
    assert verdict(frame.to_csv).unless == deny.Condition(0, "path_or_buf", given=False)
    assert not needs_argument(frame.to_csv)
    assert needs_argument(frame.sample)


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1]})
    for value in (pl.read_csv, pl.scan_parquet, frame.write_parquet, frame.lazy().sink_parquet, pl.set_random_seed):
        assert verdict(value) is not None, value
    for value in (pl.col, pl.DataFrame, frame.lazy, frame.lazy().collect, frame.filter, pl.concat, pl.from_dict):
        assert verdict(value) is None, value
    assert needs_argument(frame.sample)


def test_network_and_files_of_libraries():
    requests = pytest.importorskip("requests")
    parquet = pytest.importorskip("pyarrow.parquet")
    fs = pytest.importorskip("pyarrow.fs")
    for value in (requests.get, requests.Session, requests.Session().get, parquet.read_table, fs.LocalFileSystem):
        assert verdict(value) is not None, value
    for value in (requests.Request, requests.Response, requests.codes, requests.HTTPError):
        assert verdict(value) is None, value
    with treat_as_application("requests"):
        assert verdict(requests.get) is not None


def test_an_application_module_with_a_refused_name_is_not_judged_by_its_name(tmp_path):
    file = tmp_path / "secrets.py"
    file.write_text("def token_hex(): return 'a'\n")
    spec = importlib.util.spec_from_file_location("secrets", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    saved = sys.modules["secrets"]
    sys.modules["secrets"] = module
    try:
        tables.refresh()
        assert verdict(module.token_hex) is None
        assert module_verdict(module) is None
        assert attribute_verdict(module, "token_hex") is None
    finally:
        sys.modules["secrets"] = saved
        tables.refresh()
    assert verdict(secrets.token_hex) is not None


def test_a_library_that_is_not_installed_does_no_harm():
    missing = [name for name in tables._OF_INTEREST if name not in sys.modules]
    assert missing  # nobody has all of them
    tables.refresh()
    assert not set(missing) & set(tables._state.indexed)


# Names that some supported version, platform or build does not have, each for a reason.
NOT_EVERYWHERE = {
    # newer or older versions of Python
    "uuid.uuid6", "uuid.uuid7", "pathlib.Path.is_junction", "pathlib.Path.walk", "os.process_cpu_count",
    "posixpath.isjunction", "posixpath.isdevdrive", "ntpath.isjunction", "ntpath.isdevdrive", "sys._getframemodulename",
    "sys.exception", "sys.last_exc", "sys.last_type", "sys.last_value", "sys.last_traceback", "sys.ps1", "sys.ps2",
    "pkgutil.find_loader", "pkgutil.get_loader", "importlib.resources.contents", "mimetypes.guess_file_type",
    "inspect.getasyncgenlocals", "threading.settrace_all_threads", "threading.setprofile_all_threads",
    "importlib.resources.open_text", "importlib.resources.open_binary", "importlib.resources.read_text",
    "importlib.resources.read_binary", "importlib.resources.path", "random.Random.binomialvariate",
    # platforms
    "sys.getwindowsversion", "os.getrandom", "os.getloadavg", "os.sched_getaffinity", "os.confstr", "os.ctermid",
    "os.getlogin", "os.environb", "os.getenvb", "ctypes.WinDLL", "ctypes.OleDLL", "ctypes.windll", "ctypes.oledll",
    "asyncio.open_unix_connection", "asyncio.start_unix_server", "time.tzset", "pathlib.Path.lchmod", "os.mkfifo",
    "glob.translate",
    "sys.setdlopenflags", "heapq._heapify_max", "heapq._heappop_max", "heapq._heapreplace_max",
    # builds without a library
    "pyarrow.memory_map",
    # versions of pandas, polars, numpy and others
    "pandas.Timestamp.utcnow", "pandas.HDFStore", "polars.StringCache",
    "polars.read_clipboard", "polars.enable_string_cache", "polars.disable_string_cache", "polars.show_versions",
    "numpy.seterrcall", "numpy.random.get_bit_generator", "numpy.random.set_bit_generator",
    "joblib.cpu_count", "yaml.full_load", "numpy.random.RandomState.random_integers",
    "numpy.random.RandomState.tomaxint",
}  # fmt: skip


def _listed():
    for table in (deny.DENIED, deny.NEARER, deny.OWNERS):
        for module, kinds in table.items():
            for names in kinds.values():
                yield from ((module, name) for name in names.split())
    yield from ((module, name) for module, (_, names) in deny.REFUSED.items() for name in names.split())
    yield from ((module, name) for module, names in deny.UNLESS.items() for name in names)
    yield from mutators.ARGUMENT_MUTATORS
    yield from mutators.LIBRARY_MUTATORS
    for (module, kind), names in mutators.LIBRARY_MUTATORS.items():
        yield from ((module, f"{kind}.{name}") for name in names if not name.startswith("__i"))
    yield from ((module, name) for module, name in observers.OBSERVERS if name != "*")


def test_every_listed_name_exists_where_its_library_is_installed():
    wrong = []
    for module_name, name in sorted(set(_listed())):
        if module_name.partition(".")[0] not in sys.stdlib_module_names and module_name not in OPTIONAL:
            continue
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        if name.endswith("*"):
            found = next(tables.expand(module, name), None)
        else:
            found = tables.resolve(module, name)
        if found is None and f"{module_name}.{name}" not in NOT_EVERYWHERE and vars(module).get(name, 0) is not None:
            wrong.append(f"{module_name}.{name}")
    assert not wrong, " ".join(wrong)


def test_every_listed_method_exists():
    for kind, names in mutators.MUTATORS.items():
        if kind is not io.IOBase:  # stands for all its subclasses
            missing = {name for name in names if not hasattr(kind, name)}
            assert missing <= {"binomialvariate"}, (kind, missing)  # 3.12


def test_conditions_belong_to_something_that_is_refused():
    for module, names in deny.UNLESS.items():
        kinds = [kind for table in (deny.DENIED, deny.NEARER) for kind in table.get(module, {}).values()]
        listed = {name for kind in kinds for name in kind.split()}
        for name in names:
            wild = any(entry.endswith("*") and name.startswith(entry[:-1]) for entry in listed)
            assert name in listed or wild or module in deny.REFUSED, (module, name)


def test_every_kind_has_a_reason():
    for table in (deny.DENIED, deny.NEARER, deny.OWNERS):
        assert {kind for kinds in table.values() for kind in kinds} <= set(deny.REASONS)
    assert {kind for kind, _ in deny.REFUSED.values()} <= set(deny.REASONS)


@pytest.mark.parametrize(
    ("value", "positions"),
    [(list.append, (0,)), ([].append, (-1,)), (list.index, ()), (dict.update, (0,)), (dict.get, ()), (setattr, (0,)),
     (next, (0,)), (operator.setitem, (0,)), (operator.iadd, (0,)), (operator.add, ()), (heapq.heappush, (0,)),
     (bisect.insort, (0,)), (random.shuffle, (0,)), (random.Random.shuffle, (0, 1)),
     (random.Random(1).shuffle, (-1, 0)),
     (random.Random.random, (0,)), (random.Random(1).random, (-1,)), (random.Random(1).choice, (-1,)),
     (collections.Counter.subtract, (0,)), (collections.Counter().subtract, (-1,)),
     (collections.deque().popleft, (-1,)),
     (iter([]).__next__, (-1,)), (object.__init__, ()), (object.__setattr__, (0,)), (len, ()), (sorted, ()),
     (contextvars.ContextVar("v").set, (-1,)), (threading.Event().set, (-1,)), (threading.Event().is_set, ()),
     (io.StringIO().write, (-1,)), (io.StringIO().getvalue, ())],
    ids=_name,
)  # fmt: skip
def test_changed_arguments(value, positions):
    assert changed_arguments(value) == positions


def test_changed_arguments_of_libraries():
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    array = np.zeros(3)
    assert changed_arguments(array.fill) == (-1,)
    assert changed_arguments(array.sum) == ()
    assert changed_arguments(np.ndarray.sort) == (0,)
    assert changed_arguments(np.copyto) == (0,)
    assert changed_arguments(np.ufunc.at) == (1,)
    assert changed_arguments(np.add.at) == (0,)
    assert changed_arguments(np.add.reduce) == ()
    assert changed_arguments(np.random.default_rng(1).random) == (-1,)
    assert changed_arguments(np.random.RandomState(1).rand) == (-1,)
    assert changed_arguments(pd.DataFrame().insert) == (-1,)
    assert changed_arguments(pd.DataFrame().drop) == ()
    assert changed_arguments(pl.Series([1]).append) == (-1,)
    assert changed_arguments(pl.DataFrame().filter) == ()


def test_subclasses_inherit_what_changes_them():
    class Stack(list):
        pass

    assert "append" in tables.mutators_of(Stack)
    assert "append" not in tables.mutators_of(tuple)
    assert "__next__" in tables.mutators_of(type(iter([])))
    assert changed_arguments(Stack().append) == (-1,)


def test_observers():
    assert "annotations" in tables.observed_by(typing.get_type_hints)
    assert "docs" in tables.observed_by(inspect.getdoc)
    assert "signatures" in tables.observed_by(inspect.signature)
    assert tables.observed_by(inspect.isclass) == frozenset()
    assert tables.observed_by(functools.wraps) == frozenset()
    assert "qualnames" in tables.observed_by(str)
    assert tables.observed_by(sorted) is None


def test_safe_callees_observe_nothing():
    for value in (map, filter, sorted, min, max, isinstance, functools.reduce, functools.partial, itertools.chain,
                  operator.add, operator.itemgetter, len, list, dict, zip, callable):  # fmt: skip
        assert value in tables.SAFE_CALLEES
    for value in (repr, str, vars, dir, getattr, operator.attrgetter, inspect.signature, format, type, eval, open):
        assert value not in tables.SAFE_CALLEES
    assert not [value for value in tables.SAFE_CALLEES if verdict(value) is not None]
    assert not [value for value in tables.SAFE_CALLEES if tables.observed_by(value)]


def test_attribute_features():
    features = tables.ATTRIBUTE_FEATURES
    assert features["__name__"] == "names"
    assert features["__doc__"] == "docs"
    assert features["__code__"] == "code"
    for name in ("__globals__", "__subclasses__", "f_back", "gi_frame", "__builtins__", "__closure__"):
        assert features[name] == tables.REFUSE
    for name in ("__class__", "__init__", "append", "with_traceback"):
        assert name not in features


def test_loaders_that_read_data_read_files():
    loader = importlib.machinery.SourceFileLoader("a", "a.py")
    assert tables.verdict(type(loader).get_data).kind == "file"
    assert tables.verdict(importlib.machinery.SourcelessFileLoader.get_data).kind == "file"


LASTING = {
    "mock": "from unittest import mock\ndef f(x): mock.patch('json.dumps', None).start()",
    "mock of objects": "from unittest.mock import patch\ndef f(x): patch.object(math, 'pi', 3).start()",
    "a cache that is emptied": "import functools\n@functools.lru_cache\ndef g(x): return x\ndef f(x): g.cache_clear()",
}


@pytest.mark.parametrize("text", LASTING.values(), ids=LASTING)
def test_what_lasts_is_no_result(text):
    module = types.ModuleType("nt_lasting")
    vars(module).update(math=math)
    exec(text, vars(module))
    with pytest.raises(UncacheableError):
        nectar.fingerprint(module.f)


def test_standard_output_is_changed_for_all():
    assert "reconfigure" in mutators.mutators_of(io.TextIOWrapper)
