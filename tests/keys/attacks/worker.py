"""Runs programs one by one, each in a forked child, and answers with what was seen.

Reads jobs, one Python literal a line (programs may patch json): {"files", "mode", "after", "witness"}. For each it
writes one line: {"status": "ok" | "refused" | "broken", "value", "again", "seen", "later", "seen_later"}. `value` is
the fingerprint of f, `again` the one taken after f was called, `seen` what the witness shows, `later` and `seen_later`
the same after the code in "after" ran in the program's module. "broken" is any exception that is not Nectar's own.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import shutil
import signal
import sys
import tempfile
import types
from typing import Any

import nectar
from nectar.errors import NectarError

LIMIT = 30  # seconds a program may take before it counts as hanging


def outcome(f: Any, *args: Any, **keywords: Any) -> Any:
    """What a call gives, or the name of what it raises."""
    try:
        return f(*args, **keywords)
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"


def load(job: dict[str, Any], root: str) -> dict[str, Any]:
    """The namespace of the program, loaded the way the job asks for."""
    for name, text in job["files"].items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    mode = job.get("mode", "import")
    if mode == "import":
        return vars(importlib.import_module("prog"))
    path = os.path.join(root, "prog.py")
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        source = file.read()
    module = types.ModuleType("__main__" if mode != "string" else "dynamic")
    sys.modules[module.__name__] = module
    if mode == "main":
        module.__file__ = path
    name = {"main": path, "string": "<string>", "cell": "<ipython-input-3-0a1b2c>"}[mode]
    if mode == "cell":
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec", dont_inherit=True), vars(module))
    return vars(module)


def answer(job: dict[str, Any], root: str) -> dict[str, Any]:
    """Loads a program and looks at it."""
    found: dict[str, Any] = {"status": "ok", "value": None, "again": None, "seen": None, "later": None}
    space = load(job, root)
    names = {**space, "outcome": outcome}
    try:
        found["value"] = str(nectar.fingerprint(space["f"]))
    except NectarError as error:
        found["status"], found["value"] = "refused", f"{type(error).__name__}: {error}"[:600]
    except BaseException as error:
        found["status"], found["value"] = "broken", f"{type(error).__name__}: {error}"[:300]
    if job.get("witness"):
        try:
            found["seen"] = ascii(eval(job["witness"], names))
        except Exception as error:
            found["seen"] = f"raises {type(error).__name__}: {error}"
    if found["status"] == "ok":
        try:
            found["again"] = str(nectar.fingerprint(space["f"]))
        except BaseException as error:
            found["again"] = f"{type(error).__name__}: {error}"[:300]
    if job.get("after"):
        exec(compile(job["after"], "<change>", "exec", dont_inherit=True), space)
        names.update(space)
        try:
            found["later"] = str(nectar.fingerprint(space["f"]))
        except NectarError as error:
            found["later"] = f"refused {type(error).__name__}: {error}"[:300]
        if job.get("witness"):
            try:
                found["seen_later"] = ascii(eval(job["witness"], names))
            except Exception as error:
                found["seen_later"] = f"raises {type(error).__name__}: {error}"
    return found


def main() -> None:
    """One child a line, so that programs see nothing of each other."""
    for library in sys.argv[1:]:  # imported once for all programs
        if importlib.util.find_spec(library) is not None:
            importlib.import_module(library)
    nectar.fingerprint(lambda: len)  # so that children need not find out what is installed
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = ast.literal_eval(line)
        reading, writing = os.pipe()
        root = tempfile.mkdtemp(prefix="attack_")
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            signal.alarm(LIMIT)
            os.chdir(root)
            try:
                found = answer(job, root)
            except BaseException as error:
                found = {"status": "unloadable", "value": f"{type(error).__name__}: {error}"[:300]}
            with os.fdopen(writing, "w") as out:
                out.write(repr(found))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as incoming:
            text = incoming.read()
        os.waitpid(pid, 0)
        shutil.rmtree(root, ignore_errors=True)
        print(text or repr({"status": "broken", "value": "died or timed out"}), file=reply, flush=True)


if __name__ == "__main__":
    main()
