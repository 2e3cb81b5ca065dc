"""Settings of libraries that no table lists: what can be set by the usual names is part of the fingerprint."""

import enum
import importlib
import sys
import types

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.keys.changes import change_of
from nectar.keys.conventions import settings_of


class Mode(enum.IntFlag):
    OLD = 1
    NEW = 2


@pytest.fixture
def library(monkeypatch):
    """A package with nothing in it; its classes say that they are of it."""
    module = types.ModuleType("madeup")
    monkeypatch.setitem(sys.modules, "madeup", module)
    return module


def submodule(monkeypatch, library, name, **content):
    module = types.ModuleType(f"{library.__name__}.{name}")
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    setattr(library, name, module)
    return module


def changed(change):
    before = settings_of("madeup")
    assert settings_of("madeup") == before
    change()
    return settings_of("madeup") != before


def test_nothing_to_set(library):
    assert settings_of("madeup") == []
    library.function = len
    library._private = 3
    assert settings_of("madeup") == []
    assert settings_of("not_loaded_at_all") == []


def test_getters_that_have_setters(library):
    now = {"locale": "en"}
    library.get_locale, library.set_locale = lambda: now["locale"], now.update
    assert changed(lambda: now.update(locale="fr"))
    assert changed(lambda: now.update(locale={"deep": [1, (2, 3)]}))
    assert changed(lambda: now["locale"]["deep"].append(4))


def test_getters_that_are_not_called(library):
    called = []
    for name in ("get_item", "get_num_threads", "get_lonely", "get_broken"):
        setattr(library, name, lambda *given, name=name: called.append(name))
        setattr(library, name.replace("get", "set"), len)
    library.get_item = lambda key: called.append(key)
    library.get_broken = lambda: 1 / 0
    del library.set_lonely
    assert settings_of("madeup") == [("set_broken", "None")]
    assert called == []


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, 2), (1, True), (1, 1.0), ("a", "b"), (None, 3), (Mode.OLD, Mode.NEW), (0.0, -0.0), (b"a", b"b")],
)
def test_plain_values_in_the_package(library, before, after):
    library.default = before
    assert changed(lambda: setattr(library, "default", after))


def test_paths_and_what_the_machine_has_do_not_count(library):
    library.folder, library.num_threads, library.handle = "/a", 2, object()
    assert settings_of("madeup") == []


def test_bundles_in_the_package_and_in_modules_for_settings(library, monkeypatch):
    library.options = {"width": 1, "deep": {"a": [1]}}
    assert changed(lambda: library.options.update(width=2))
    assert changed(lambda: library.options.update(width=2.0))
    assert changed(lambda: library.options["deep"]["a"].append(2))
    assert changed(lambda: setattr(library, "options", {"other": 1}))
    config = submodule(monkeypatch, library, "config", config={"rate": 1}, LIMIT=3)
    assert changed(lambda: config.config.update(rate=2))
    assert changed(lambda: setattr(config, "LIMIT", 4))


def test_objects_that_hold_settings(library):
    class Slotted:
        __slots__ = ("mode",)

    class Config:
        def __getattribute__(self, name):
            raise RuntimeError("asked")

    Slotted.__module__ = Config.__module__ = "madeup.core"
    library.settings, library.anything = Slotted(), Config()
    assert changed(lambda: setattr(library.settings, "mode", "a"))
    assert changed(lambda: setattr(library.settings, "mode", "b"))
    assert changed(lambda: setattr(library.anything, "theme", "dark"))


def test_objects_that_hold_themselves_end(library):
    class Config:
        pass

    Config.__module__ = "madeup"
    library.config = Config()
    library.config.parent = library.config
    library.config.level = 1
    assert changed(lambda: setattr(library.config, "level", 2))


def test_what_is_too_large_to_be_settings(library):
    library.defaults = dict.fromkeys(range(10_000), "x")
    assert settings_of("madeup") == []


def test_functions_of_the_application_are_part_of_settings(library):
    def hook():
        return 1

    library.options = {"hook": hook, "other": len}
    assert settings_of("madeup") == [("madeup.options..hook", hook)]


def test_lookers_do_not_ask_objects_about_themselves(library):
    class Lazy:
        @property
        def __class__(self):
            raise RuntimeError("loaded")

    library.corpus, library.config = Lazy(), Lazy()
    assert settings_of("madeup") == []


def test_configuration_of_dask():
    config = pytest.importorskip("dask.config")

    def scaled(x):
        return x * config.get("of_tests.rate", 1)

    before = nectar.fingerprint(scaled)
    with config.set({"of_tests.rate": 2}):
        within = nectar.fingerprint(scaled)
        assert within != before
        with config.set({"of_tests.rate": 2.0}):
            assert nectar.fingerprint(scaled) not in (before, within)
    assert nectar.fingerprint(scaled) == before


def test_validators_of_attrs():
    attr = pytest.importorskip("attr")

    def validated(x):
        return attr.validate(x)

    before = nectar.fingerprint(validated)
    attr.set_run_validators(False)
    try:
        assert nectar.fingerprint(validated) != before
    finally:
        attr.set_run_validators(True)
    assert nectar.fingerprint(validated) == before


KEPT_ELSEWHERE = """
    kept = {}
    class Item:  # a descriptor, as libraries of settings have them
        def __set_name__(self, owner, name): self.name = name
        def __get__(self, holder, owner=None): return kept.get(self.name, 0)
        def __set__(self, holder, value): kept[self.name] = value
    class Conf:
        width = Item()
        def set_temp(self, name, value): kept[name] = value
    class Plain:
        pass
    class Guarded:
        def __init__(self): self.__dict__["_held"] = {"depth": 1}
        def __setattr__(self, name, value): self._held[name] = value
        def __getattr__(self, name): return self._held[name]
    class options: depth = 1
    conf, settings, theme = Conf(), Plain(), Guarded()
    def width(): return conf.width
"""


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("from nt_elsewhere import conf\ndef change(): conf.width = 2", True),
        ("import nt_elsewhere\ndef change(): nt_elsewhere.conf.set_temp('width', 2)", True),
        ("import nt_elsewhere\ndef change(): nt_elsewhere.options.depth = 2", True),
        ("import nt_elsewhere\ndef change(): nt_elsewhere.settings.depth = 2", False),
        ("import nt_elsewhere\ndef change(): nt_elsewhere.theme.depth = 2", False),
        ("import nt_elsewhere\ndef change(): nt_elsewhere.theme.other = 2", True),
    ],
)
def test_a_setting_that_an_object_keeps_elsewhere_is_a_change(tmp_path, monkeypatch, text, changes):
    """What lies in the object itself is looked at, and part of each key."""
    install(tmp_path, monkeypatch, "nt_elsewhere", {"nt_elsewhere/__init__.py": KEPT_ELSEWHERE})
    (tmp_path / "nt_changing.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        importlib.import_module("nt_changing")
        assert bool(change_of("nt_elsewhere")) == changes
    finally:
        forget("nt_elsewhere")
        forget("nt_changing")
