"""Something is done when a library is imported, and not before: nobody waits for a library the program does not use.

Imported with nectar itself, and so it imports next to nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the time that importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Final

_actions: Final[dict[str, dict[str, Callable[[], None]]]] = {}  # by library and purpose


def when_imported(library: str, action: Callable[[], None], purpose: str = "hook") -> None:
    """The action is done at once if the library is there already, otherwise right after it has been imported.

    There is one action for each purpose: a later one takes the place of an earlier one.
    """
    if library in sys.modules:
        action()
        return
    _actions.setdefault(library, {})[purpose] = action
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def no_longer(library: str, purpose: str = "hook") -> None:
    """Nothing is done any more for this purpose when the library is imported."""
    waiting = _actions.get(library, {})
    waiting.pop(purpose, None)
    if not waiting:
        _actions.pop(library, None)
    if not _actions and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


_finder: Final = _Finder()


class _Loader:
    """Stands in for the loader of a library until the library is loaded."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        for purpose, action in list(_actions.get(module.__name__, {}).items()):
            no_longer(module.__name__, purpose)
            action()
