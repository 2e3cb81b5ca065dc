"""Modules from the texts of a recipe: imported as if their files were there, and nothing is written.

Law: a captured module is the captured text, whatever else has its name on this machine; a module that was not captured
is never found inside a captured package. Sources can be shown (`inspect.getsource`, tracebacks).
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from nectar.recipes.recipe import Module


class CapturedModules(MetaPathFinder, InspectLoader):
    """Finds and loads the modules of one recipe."""

    def __init__(self, modules: Sequence[Module], texts: Mapping[str, str]) -> None:
        self._modules = {module.name: module for module in modules}
        self._texts = dict(texts)

    def install(self) -> None:
        """From now on the captured modules are imported before any other of their names."""
        sys.meta_path.insert(0, self)
        for module in self._modules.values():
            if module.path:
                lines = self._texts[module.name].splitlines(keepends=True)
                linecache.cache[module.path] = (len(self._texts[module.name]), None, lines, module.path)

    def uninstall(self) -> None:
        """Captured modules are not found any more; those that were imported are forgotten."""
        sys.meta_path.remove(self)
        for module in self._modules.values():
            linecache.cache.pop(module.path, None)
            loaded = sys.modules.get(module.name)
            if loaded is not None and getattr(loaded, "__loader__", None) is self:
                del sys.modules[module.name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The captured module of a name."""
        module = self._modules.get(fullname)
        if module is None:
            return None
        spec = ModuleSpec(fullname, self, origin=module.path or None, is_package=module.package)
        if module.path:
            spec.has_location = True
        elif module.package:
            spec.submodule_search_locations = _folders_of(fullname, path)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Runs the text of a module."""
        name = module.__name__
        path = self._modules[name].path or f"<{name} of a recipe>"
        exec(compile(self._texts[name], path, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, fullname: str) -> str:
        """The text of a captured module."""
        return self._texts[fullname]

    def is_package(self, fullname: str) -> bool:
        """Whether a captured module has others in it."""
        return self._modules[fullname].package


def _folders_of(name: str, path: Sequence[str] | None) -> list[str]:
    """Of a package that is nothing but folders, those of installed packages that share it."""
    found = PathFinder.find_spec(name, path)
    return list(found.submodule_search_locations or ()) if found is not None else []
