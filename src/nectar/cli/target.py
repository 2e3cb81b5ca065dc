"""From what a person types, `module:function` or `path/to/file.py:function`, to the function.

In: text. Out: the object it names, with the module imported as the program itself would import it. Whatever the module
prints while it is imported goes to stderr: stdout belongs to the command.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

from nectar.cli.failure import Failure

FORMS = "module:function or path/to/file.py:function"


class Target(click.ParamType[str]):
    """Text of the form `module:function`; anything else is wrong usage."""

    name = "module:function"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself, once it is known to have both halves."""
        module, colon, attribute = value.rpartition(":")
        if not colon or not module or not all(part.isidentifier() for part in attribute.split(".")):
            self.fail(f"{value!r} does not name a function; write {FORMS}", param, ctx)
        return value


@contextlib.contextmanager
def loaded(target: str) -> Iterator[object]:
    """The object a target names, inside the block.

    Afterwards sys.path and sys.modules are as before, so that another version of the same modules can be loaded next.
    """
    path_before, modules_before = list(sys.path), set(sys.modules)
    module, _, attribute = target.rpartition(":")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found: object = _import_file(Path(module)) if module.endswith(".py") else _import_name(module)
        for part in attribute.split("."):
            found = _attribute(found, part, target)
        yield found
    finally:
        root = Path(sys.path[0])
        sys.path[:] = path_before
        _forget_modules(root, modules_before)


def _import_name(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    with _import_errors_explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                raise click.UsageError(
                    f"there is no module {error.name!r} in the current folder or among the installed packages; "
                    f"write {FORMS}"
                ) from error
            raise


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.UsageError(f"there is no file {str(path)!r}")
    root, name = _importable_name(path.resolve())
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    with _import_errors_explained(str(path)):
        if "." in name:
            return importlib.import_module(name)
        # A file may be called like a module that is already loaded; it is then loaded beside it, not instead of it.
        free_name = name if name not in sys.modules else f"{name} in {root}"
        spec = importlib.util.spec_from_file_location(free_name, path.resolve())
        if spec is None or spec.loader is None:
            raise Failure(f"{path} cannot be imported as a Python module")
        module = importlib.util.module_from_spec(spec)
        sys.modules[free_name] = module
        spec.loader.exec_module(module)
        return module


def _importable_name(path: Path) -> tuple[Path, str]:
    """The folder to put on sys.path, and the dotted name of the file as seen from there."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.append(folder.name)
        folder = folder.parent
    return folder, ".".join(reversed(parts)) or path.stem


@contextlib.contextmanager
def _import_errors_explained(what: str) -> Iterator[None]:
    """Whatever a module raises while it is imported, sys.exit() included, becomes a failure that says so."""
    try:
        yield
    except (click.ClickException, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Failure(f"importing {what} raised {type(error).__name__}: {error}") from error


def _attribute(owner: object, name: str, target: str) -> object:
    try:
        return getattr(owner, name)
    except AttributeError as error:
        where = owner.__name__ if isinstance(owner, (ModuleType, type)) else repr(owner)
        raise click.UsageError(f"there is no {name!r} in {where} (asked for as {target!r})") from error


def _forget_modules(root: Path, before: set[str]) -> None:
    """Takes out of sys.modules what came from below root, but neither libraries nor Nectar, which others hold on to."""
    for name in set(sys.modules) - before:
        if name.partition(".")[0] != "nectar" and _is_application_code(sys.modules[name], root):
            del sys.modules[name]


def _is_application_code(module: ModuleType, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    places = [file] if isinstance(file, str) else list(getattr(module, "__path__", ()))
    for place in map(Path, places):
        # Extension modules are left where they are: many cannot be loaded twice in one process.
        if place.suffix in {".py", ".pyc", ""} and place.is_relative_to(root):
            return not {"site-packages", "dist-packages"} & set(place.relative_to(root).parts)
    return False
