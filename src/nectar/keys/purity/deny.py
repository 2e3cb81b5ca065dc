"""What is known to read a hidden input, to run code nobody can see, or to change state that outlives a call.

Data only. Names are grouped by module, then by kind; a name ending in * stands for all names with that beginning; a
dotted name is a member of a class. A name that a version of the library does not have is skipped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nectar.keys.purity.deny_libraries import LIBRARIES

REASONS: Final[dict[str, str]] = {
    "clock": "reads the clock",
    "random": "draws random numbers from a source the fingerprint cannot see",
    "file": "reads or writes files",
    "network": "uses the network",
    "environment": "depends on the machine, the user or the settings of the process",
    "process": "deals with processes or the operating system",
    "dynamic code": "runs or loads code that cannot be seen beforehand",
    "identity": "depends on where objects lie in memory or on the hash seed of the process",
    "global state": "reads or changes state that outlives the call",
    "input": "reads what somebody types",
    "introspection": "looks at the interpreter or at running code",
    "database": "talks to a database",
    "names": "reads variables by names that stand in a text",
}

DENIED: Final[dict[str, dict[str, str]]] = {
    "builtins": {
        "file": "open",
        "input": "input help",
        "dynamic code": "eval exec compile __import__",
        "introspection": "globals locals vars dir breakpoint type.__subclasses__",
        "identity": "id hash object.__hash__ str.__hash__ bytes.__hash__ object.__repr__",
    },
    "functools": {"introspection": "_lru_cache_wrapper.cache_info"},
    "io": {"file": "open open_code FileIO"},
    "_io": {"file": "open open_code FileIO"},
    "codecs": {"file": "open", "global state": "register register_error unregister"},
    "csv": {"global state": "register_dialect unregister_dialect field_size_limit"},
    "curses": {"environment": "*"},
    "doctest": {"global state": "register_optionflag"},
    "email.charset": {"global state": "add_alias add_charset add_codec"},
    "readline": {"input": "*"},
    "site": {"global state": "addsitedir"},
    # An input that is declared inside a function is declared to nobody.
    "nectar.dialects.python.declared_inputs": {"file": "File Folder Fresh valid_for"},
    "datetime": {
        "clock": "datetime.now datetime.utcnow date.today",
        "environment": "datetime.fromtimestamp date.fromtimestamp datetime.astimezone",
    },
    "email.utils": {"clock": "localtime formatdate", "random": "make_msgid", "environment": "mktime_tz"},
    "logging": {
        "clock": "LogRecord makeLogRecord",
        "environment": "Formatter.formatTime",
        "file": "FileHandler",
        "global state": "setLoggerClass setLogRecordFactory",
    },
    "logging.config": {"file": "fileConfig", "global state": "dictConfig"},
    "xml.etree.ElementTree": {
        "file": "parse iterparse ElementTree.parse ElementTree.write",
        "global state": "register_namespace",
    },
    **{name: {"file": "parse"} for name in ("xml.dom.minidom", "xml.sax")},
    **{name: {"file": "open"} for name in ("wave", "tokenize")},
    "netrc": {"file": "netrc"},
    "argparse": {
        "environment": "ArgumentParser.parse_args ArgumentParser.parse_known_args "
        "ArgumentParser.parse_intermixed_args ArgumentParser.parse_known_intermixed_args "
        "ArgumentParser.format_help ArgumentParser.format_usage HelpFormatter"
    },
    "timeit": {"clock": "timeit repeat default_timer Timer"},
    "uuid": {"random": "uuid1 uuid4 uuid6 uuid7", "environment": "getnode"},
    "pathlib": {
        "file": "Path.read_text Path.read_bytes Path.write_text Path.write_bytes Path.open Path.exists Path.is_file "
        "Path.is_dir Path.is_symlink Path.is_mount Path.is_socket Path.is_fifo Path.is_block_device "
        "Path.is_char_device Path.is_junction Path.stat Path.lstat Path.iterdir Path.glob Path.rglob Path.walk "
        "Path.mkdir Path.rmdir Path.touch Path.unlink Path.rename Path.replace Path.chmod Path.lchmod "
        "Path.symlink_to Path.hardlink_to Path.readlink Path.owner Path.group Path.samefile Path.resolve",
        "environment": "Path.absolute Path.cwd Path.home Path.expanduser",
    },
    "posixpath": {
        "file": "exists lexists isfile isdir islink ismount getsize getmtime getatime getctime realpath samefile "
        "sameopenfile isjunction isdevdrive",
        "environment": "abspath relpath expanduser expandvars",
    },
    "ntpath": {
        "file": "exists lexists isfile isdir islink ismount getsize getmtime getatime getctime realpath samefile "
        "sameopenfile isjunction isdevdrive",
        "environment": "abspath relpath expanduser expandvars",
    },
    "sys": {
        "environment": "argv orig_argv path prefix exec_prefix base_prefix base_exec_prefix executable flags "
        "warnoptions _xoptions getfilesystemencoding getfilesystemencodeerrors pycache_prefix dont_write_bytecode "
        "getwindowsversion",
        "dynamic code": "modules meta_path path_hooks path_importer_cache",
        "input": "stdin __stdin__ ps1 ps2",
        "introspection": "_getframe _getframemodulename _current_frames _current_exceptions exc_info exception "
        "getrefcount gettrace settrace getprofile setprofile call_tracing getallocatedblocks getsizeof "
        "last_exc last_type last_value last_traceback _debugmallocstats",
        "global state": "getrecursionlimit setrecursionlimit getswitchinterval setswitchinterval addaudithook audit "
        "displayhook excepthook breakpointhook unraisablehook set_asyncgen_hooks get_asyncgen_hooks "
        "set_int_max_str_digits get_int_max_str_digits set_coroutine_origin_tracking_depth setdlopenflags",
    },
    "inspect": {
        "introspection": "stack currentframe trace getouterframes getinnerframes getframeinfo getargvalues getsource "
        "getsourcelines getsourcefile getfile getabsfile findsource getcomments getmodule getclosurevars "
        "getgeneratorlocals getcoroutinelocals getasyncgenlocals"
    },
    "traceback": {
        "introspection": "extract_stack format_stack print_stack walk_stack format_exc format_exception format_tb "
        "extract_tb walk_tb"
    },
    "linecache": {"file": "getline getlines updatecache checkcache lazycache clearcache"},
    "threading": {
        "introspection": "get_ident get_native_id current_thread currentThread main_thread active_count activeCount "
        "enumerate",
        "global state": "settrace setprofile settrace_all_threads setprofile_all_threads stack_size excepthook",
    },
    "_thread": {
        "introspection": "get_ident get_native_id",
        "global state": "stack_size LockType.locked RLock._is_owned",
    },
    "multiprocessing": {
        "process": "current_process parent_process active_children Process Pool Manager Pipe Queue SimpleQueue "
        "JoinableQueue freeze_support set_start_method get_start_method set_executable set_forkserver_preload "
        "log_to_stderr get_logger",
        "environment": "cpu_count",
    },
    "asyncio": {
        "clock": "AbstractEventLoop.time",
        "introspection": "current_task all_tasks",
        "network": "open_connection start_server open_unix_connection start_unix_server",
        "process": "create_subprocess_exec create_subprocess_shell",
        "global state": "set_event_loop set_event_loop_policy set_child_watcher",
    },
    "contextvars": {"global state": "copy_context"},
    "decimal": {"global state": "setcontext"},
    "_decimal": {"global state": "setcontext"},
    "calendar": {"global state": "setfirstweekday"},
    "atexit": {"global state": "register unregister"},
    "copyreg": {"global state": "pickle constructor add_extension remove_extension clear_extension_cache"},
    "importlib": {"dynamic code": "import_module reload __import__", "global state": "invalidate_caches"},
    "importlib.util": {"dynamic code": "spec_from_file_location find_spec module_from_spec source_from_cache"},
    "importlib.metadata": {"environment": "version distribution distributions metadata entry_points files requires"},
    "importlib.machinery": {"file": "SourceFileLoader.get_data SourceFileLoader.get_source"},
    "zipimport": {"file": "zipimporter.get_data zipimporter.get_source"},
    "importlib.resources": {"file": "files open_text open_binary read_text read_binary path contents as_file"},
    "pkgutil": {"file": "get_data", "dynamic code": "iter_modules walk_packages find_loader get_loader resolve_name"},
    "types": {"dynamic code": "FunctionType CodeType"},
    "multiprocessing.shared_memory": {"global state": "SharedMemory ShareableList"},
    "ctypes": {
        "dynamic code": "CDLL PyDLL WinDLL OleDLL cdll pydll windll oledll pythonapi string_at wstring_at memmove "
        "memset PYFUNCTYPE cast",
        "global state": "set_errno",
    },
    "pickle": {"dynamic code": "load loads Unpickler _load _loads _Unpickler"},
    "_pickle": {"dynamic code": "load loads Unpickler"},
    "shelve": {"file": "open Shelf DbfilenameShelf"},
    "dbm": {"file": "open whichdb"},
    "sqlite3": {"database": "connect Connection"},
    "_sqlite3": {"database": "connect Connection"},
    "zipfile": {"file": "ZipFile PyZipFile is_zipfile Path"},
    "tarfile": {"file": "open TarFile TarFile.open is_tarfile"},
    "gzip": {"file": "open GzipFile", "clock": "compress"},
    "bz2": {"file": "open BZ2File"},
    "lzma": {"file": "open LZMAFile"},
    "mmap": {"file": "mmap"},
    "configparser": {"file": "RawConfigParser.read"},
    "mimetypes": {
        "environment": "guess_type guess_all_extensions guess_extension guess_file_type init read_mime_types",
        "global state": "add_type",
    },
    "platform": {
        "environment": "node uname platform processor release version mac_ver win32_ver libc_ver "
        "freedesktop_os_release architecture"
    },
    "gettext": {
        "environment": "gettext ngettext pgettext npgettext dgettext dngettext find translation install textdomain "
        "bindtextdomain"
    },
    "zoneinfo": {"file": "available_timezones", "global state": "reset_tzpath"},
    "webbrowser": {"process": "open open_new open_new_tab get register"},
    "http.client": {"network": "HTTPConnection HTTPSConnection"},
    "http.server": {"network": "HTTPServer ThreadingHTTPServer"},
    "xmlrpc.client": {"network": "ServerProxy"},
    "ftplib": {"network": "FTP FTP_TLS"},
    "smtplib": {"network": "SMTP SMTP_SSL LMTP"},
    "imaplib": {"network": "IMAP4 IMAP4_SSL IMAP4_stream"},
    "poplib": {"network": "POP3 POP3_SSL"},
    "ssl": {"network": "create_default_context get_server_certificate SSLContext SSLSocket", "random": "RAND_bytes"},
    **LIBRARIES,
}

# Modules in which every function and class that is not listed as fine is refused, and the kind of that refusal.
REFUSED: Final[dict[str, tuple[str, str]]] = {
    "time": ("clock", "struct_time sleep strptime"),
    "random": ("random", ""),
    "secrets": ("random", "compare_digest"),
    "os": (
        "process",
        (
            "fspath fsencode fsdecode PathLike stat_result statvfs_result terminal_size uname_result times_result "
            "waitid_result sched_param strerror _exit abort WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG WIFSTOPPED "
            "WSTOPSIG WCOREDUMP WIFCONTINUED waitstatus_to_exitcode major minor makedev DirEntry"
        ),
    ),
    "tempfile": ("file", ""),
    "shutil": ("file", ""),
    "glob": ("file", "escape has_magic translate"),
    "fileinput": ("file", ""),
    "filecmp": ("file", ""),
    "subprocess": ("process", "list2cmdline CompletedProcess"),
    "signal": ("process", "strsignal"),
    "pty": ("process", ""),
    "socket": (
        "network",
        "inet_aton inet_ntoa inet_pton inet_ntop htons htonl ntohs ntohl CMSG_LEN CMSG_SPACE has_dualstack_ipv6",
    ),
    "select": ("network", ""),
    "selectors": ("network", "SelectorKey"),
    "socketserver": ("network", ""),
    "urllib.request": ("network", "Request parse_http_list parse_keqv_list pathname2url url2pathname"),
    "urllib.robotparser": ("network", ""),
    "locale": ("environment", "normalize"),
    "getpass": ("input", ""),
    "pwd": ("environment", "struct_passwd"),
    "grp": ("environment", "struct_group"),
    "resource": ("environment", ""),
    "gc": ("introspection", ""),
    "tracemalloc": ("introspection", ""),
    "faulthandler": ("global state", ""),
    "runpy": ("dynamic code", ""),
    "code": ("dynamic code", ""),
    "codeop": ("dynamic code", ""),
    "numpy.random": ("random", "Generator BitGenerator"),
    "pyarrow.fs": ("file", "FileInfo FileType FileSelector"),
    "s3fs": ("network", ""),
    "gcsfs": ("network", ""),
    "adlfs": ("network", ""),
}

# Modules behind refused modules: what says it is of these belongs to them.
HOMES: Final[dict[str, tuple[str, ...]]] = {
    "secrets": ("random",),  # methods of a generator there
    "os": ("posix", "nt"),
    "pyarrow.fs": ("pyarrow._fs", "pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs"),
}

# Kinds that are nearer to the truth than the kind of their module.
NEARER: Final[dict[str, dict[str, str]]] = {
    "os": {
        "environment": "environ environb getenv getenvb putenv unsetenv get_exec_path getcwd getcwdb cpu_count "
        "process_cpu_count getlogin getuid geteuid getgid getegid getgroups uname getloadavg confstr sysconf "
        "get_terminal_size ctermid sched_getaffinity umask",
        "random": "urandom getrandom",
        "clock": "times",
        "file": "open fdopen read write pread pwrite close stat lstat fstat listdir scandir walk fwalk mkdir makedirs "
        "rmdir removedirs remove unlink rename renames replace link symlink readlink access chmod chown utime "
        "truncate ftruncate lseek fsync statvfs chdir fchdir sendfile dup dup2 pipe mkfifo",
    },
    "time": {"environment": "timezone altzone daylight tzname localtime mktime tzset"},
    "shutil": {"environment": "which get_terminal_size disk_usage"},
    "tempfile": {"environment": "gettempdir gettempdirb gettempprefix gettempprefixb"},
    "random": {"global state": "seed setstate getstate"},
    "numpy.random": {"global state": "seed set_state get_state get_bit_generator set_bit_generator"},
    "socket": {"environment": "gethostname"},
    "urllib.request": {"environment": "getproxies getproxies_environment proxy_bypass proxy_bypass_environment"},
}

# Objects whose every method is refused: the hidden instances behind module-level functions.
OWNERS: Final[dict[str, dict[str, str]]] = {
    "random": {"random": "_inst"},
    "numpy.random.mtrand": {"random": "_rand"},
    "os": {"environment": "environ environb"},
}


# Beginnings of the names of those that look up nothing but what their text names, at the place of the call.
TAKE_NAMES: Final = ("pandas.DataFrame.", "patsy.", "formulaic.", "statsmodels.")

# Callables that take the words "now" and "today" for the time it is, or complete a date by what day it is.
WORDS_FOR_NOW: Final[dict[str, str]] = {
    "pandas": "Timestamp Period DatetimeIndex to_datetime date_range bdate_range period_range",
    "numpy": "datetime64",
    "dateutil.parser": "parse",
}


class Condition(NamedTuple):
    """What makes a call fine: an argument that is given and not None (given), or that is not given or None."""

    position: int | None  # counted without the receiver; None for arguments that have no position
    keyword: str | None
    given: bool = True


_FIRST = Condition(0, None)
_SEED = Condition(0, "seed")
_NO_PATH = Condition(0, "path_or_buf", given=False)
_NO_BUFFER = Condition(0, "buf", given=False)
_NO_FILE = Condition(0, "file", given=False)

# What tells such callables the day, so that they ask no clock.
TOLD_THE_DAY_BY: Final = {"dateutil.parser": Condition(None, "default")}

UNLESS: Final[dict[str, dict[str, Condition]]] = {
    "builtins": {"vars": _FIRST, "dir": _FIRST},
    "time": {"gmtime": _FIRST, "asctime": _FIRST, "strftime": Condition(1, None)},
    "datetime": {"datetime.fromtimestamp": Condition(1, "tz"), "datetime.astimezone": Condition(0, "tz")},
    "email.utils": {"formatdate": Condition(0, "timeval")},
    "argparse": {
        f"ArgumentParser.parse_{name}": Condition(0, "args")
        for name in ("args", "known_args", "intermixed_args", "known_intermixed_args")
    },
    "random": {"Random": Condition(0, "x")},
    "gzip": {"compress": Condition(None, "mtime")},
    "lxml.etree": {"XSLT": Condition(None, "access_control")},
    "rdkit.Chem.rdDistGeom": {name: Condition(2, "randomSeed") for name in ("EmbedMolecule", "EmbedMultipleConfs")},
    "numpy.random": {
        **dict.fromkeys(("default_rng", "RandomState", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"), _SEED),
        "SeedSequence": Condition(0, "entropy"),
    },
    "pandas": {
        "DataFrame.to_csv": _NO_PATH,
        "DataFrame.to_json": _NO_PATH,
        "DataFrame.to_html": _NO_BUFFER,
        "DataFrame.to_string": _NO_BUFFER,
        "DataFrame.to_latex": _NO_BUFFER,
        "DataFrame.to_markdown": _NO_BUFFER,
        "DataFrame.to_xml": Condition(0, "path_or_buffer", given=False),
        "DataFrame.to_parquet": Condition(0, "path", given=False),
        "DataFrame.to_orc": Condition(0, "path", given=False),
        "Series.to_csv": _NO_PATH,
        "Series.to_json": _NO_PATH,
        "Series.to_string": _NO_BUFFER,
        "Series.to_latex": _NO_BUFFER,
        "Series.to_markdown": _NO_BUFFER,
        "Timestamp.fromtimestamp": Condition(1, "tz"),
        "DataFrame.sample": Condition(4, "random_state"),
        "Series.sample": Condition(4, "random_state"),
    },
    "polars": {
        "SQLContext": Condition(None, "register_globals", given=False),
        "DataFrame.write_csv": _NO_FILE,
        "DataFrame.write_json": _NO_FILE,
        "DataFrame.write_ndjson": _NO_FILE,
        "DataFrame.serialize": _NO_FILE,
        "LazyFrame.serialize": _NO_FILE,
        "DataFrame.sample": Condition(None, "seed"),
        "Series.sample": Condition(None, "seed"),
        "Series.shuffle": _SEED,
        "Expr.sample": Condition(None, "seed"),
        "Expr.shuffle": _SEED,
    },
    "sklearn.model_selection": {"train_test_split": Condition(None, "random_state")},
}
