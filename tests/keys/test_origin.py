"""Where code comes from: by file, never by name."""

import base64
import collections
import ctypes
import functools
import hashlib
import importlib
import importlib.util
import json
import math
import os
import re
import sys
import threading
import types
import zipfile

import attr
import numpy
import pytest

from nectar.keys import origin
from nectar.keys.origin import (
    file_digest,
    module_of_globals,
    origin_of_builtin,
    origin_of_class,
    origin_of_function,
    origin_of_module,
    treat_as_application,
    was_made_by_application,
)
from nectar.model.origin import APPLICATION


class Site:
    """A directory of installed distributions under a temporary folder."""

    def __init__(self, path, monkeypatch):
        self.path = path
        path.mkdir(parents=True)
        monkeypatch.syspath_prepend(str(path))

    def write(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def install(self, name, version, files, direct_url=None):
        info = f"{name}-{version}.dist-info"
        lines = []
        for path, text in files.items():
            data = self.write(path, text).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(data)}")
        self.write(f"{info}/METADATA", f"Name: {name}\nVersion: {version}\n")
        if direct_url is not None:
            self.write(f"{info}/direct_url.json", json.dumps(direct_url))
        self.write(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,"]) + "\n")

    def load(self, name):
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)


@pytest.fixture
def site(tmp_path, monkeypatch):
    before = set(sys.modules)
    yield Site(tmp_path / "lib" / "site-packages", monkeypatch)
    for name in set(sys.modules) - before:
        if name.startswith("nt_"):
            del sys.modules[name]


@pytest.mark.parametrize("module", [json, json.decoder, os, os.path, math, sys, re, collections, importlib])
def test_standard_library(module):
    assert origin_of_module(module).kind == "standard"


def test_the_name_comes_from_the_place_of_the_file():
    assert origin_of_module(json.decoder).module == "json.decoder"
    assert origin_of_module(os.path).module == os.path.__name__


def test_installed_distributions():
    found = origin_of_module(attr)
    assert (found.kind, found.name, found.module) == ("distribution", "attrs", "attr")
    assert origin_of_module(numpy).version == numpy.__version__


def test_a_test_module_is_application_code():
    assert origin_of_module(sys.modules[__name__] if __name__ in sys.modules else types.ModuleType("x")) == APPLICATION
    assert origin_of_module(origin).name == "nectar-data"  # however it is installed


def test_listed_files_belong_to_their_distribution(site):
    site.install("nt_one", "1.5", {"nt_one/__init__.py": "", "nt_one/part.py": "def f(): pass\n"})
    site.load("nt_one")
    found = origin_of_module(site.load("nt_one.part"))
    assert (found.kind, found.name, found.version, found.module) == ("distribution", "nt-one", "1.5", "nt_one.part")


def test_another_name_than_the_distribution(site):
    site.install("Py.Other", "2", {"nt_other.py": ""})
    assert origin_of_module(site.load("nt_other")).name == "py-other"


def test_loose_files_in_site_packages_are_application_code(site):
    site.install("nt_one", "1.5", {"nt_one/__init__.py": ""})
    site.write("nt_loose.py", "")
    site.write("nt_one/added.py", "")
    assert origin_of_module(site.load("nt_loose")) == APPLICATION
    assert origin_of_module(site.load("nt_one.added")) == APPLICATION


def test_a_changed_file_is_application_code(site):
    site.install("nt_one", "1.5", {"nt_one.py": "X = 1\n"})
    site.write("nt_one.py", "X = 22\n")
    assert origin_of_module(site.load("nt_one")) == APPLICATION


def test_a_change_of_equal_length_and_old_date_is_noticed(site):
    site.install("nt_one", "1.5", {"nt_one.py": "X = 1\n"})
    file = site.write("nt_one.py", "X = 2\n")
    os.utime(file, (1, 1))
    if file.stat().st_ctime_ns <= (site.path / "nt_one-1.5.dist-info" / "RECORD").stat().st_mtime_ns:
        pytest.skip("the clock of the file system is too coarse to tell the order of the two files")
    assert origin_of_module(site.load("nt_one")) == APPLICATION


def test_editable_installs_are_application_code(site):
    url = {"url": "file:///somewhere", "dir_info": {"editable": True}}
    site.install("nt_one", "1.5", {"nt_one.py": ""}, url)
    assert origin_of_module(site.load("nt_one")) == APPLICATION


def test_a_version_installed_from_a_directory_does_not_tell_the_code(tmp_path, monkeypatch):
    versions = []
    for text in ("X = 1\n", "X = 2\n"):
        site = Site(tmp_path / str(len(versions)) / "site-packages", monkeypatch)
        site.install("nt_own", "0.1", {"nt_own.py": text}, {"url": "file:///own", "dir_info": {}})
        versions.append(origin_of_module(site.load("nt_own")).version)
        del sys.modules["nt_own"]
    assert versions[0] != versions[1]
    assert all(version.startswith("0.1@") for version in versions)


def test_two_versions_of_one_distribution_are_both_named(site):
    site.install("nt_one", "1.5", {"nt_one.py": "X = 1\n"})
    site.install("nt_one", "1.6", {"nt_one.py": "X = 1\n"})
    assert origin_of_module(site.load("nt_one")).version == "1.5|1.6"


def test_of_two_versions_the_one_that_fits_the_file_counts(site):
    site.install("nt_one", "1.5", {"nt_one.py": "X = 1\n"})
    site.install("nt_one", "1.6", {"nt_one.py": "X = 22\n"})
    assert origin_of_module(site.load("nt_one")).version == "1.6"


def test_namespace_packages_span_distributions(site):
    site.install("nt-space-a", "1", {"nt_space/a.py": ""})
    site.install("nt-space-b", "2", {"nt_space/b.py": ""})
    assert origin_of_module(site.load("nt_space.a")).name == "nt-space-a"
    assert origin_of_module(site.load("nt_space.b")).name == "nt-space-b"
    assert origin_of_module(sys.modules["nt_space"]) == APPLICATION


def test_a_package_of_the_operating_system_without_record_is_known_by_its_file(site):
    site.write("nt_system.py", "X = 1\n")
    site.write("nt_system-3.2.egg-info/PKG-INFO", "Name: nt_system\nVersion: 3.2\n")
    found = origin_of_module(site.load("nt_system"))
    assert found.kind == "distribution"
    assert found.version.startswith("3.2#")


def test_an_egg_info_beside_sources_says_nothing(tmp_path, monkeypatch):
    site = Site(tmp_path / "src", monkeypatch)
    site.write("nt_checkout.py", "")
    site.write("nt_checkout-1.egg-info/PKG-INFO", "")
    assert origin_of_module(site.load("nt_checkout")) == APPLICATION


def test_an_application_file_with_a_name_of_the_standard_library(tmp_path):
    file = tmp_path / "token.py"
    file.write_text("def f(): pass\n")
    spec = importlib.util.spec_from_file_location("token", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert origin_of_module(module) == APPLICATION


def test_modules_in_zip_files_are_application_code(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "nt.zip", "w") as archive:
        archive.writestr("nt_zipped.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "nt.zip"))
    assert origin_of_module(importlib.import_module("nt_zipped")) == APPLICATION


def test_a_reload_is_noticed(site):
    site.install("nt_one", "1.5", {"nt_one.py": "X = 1\n"})
    module = site.load("nt_one")
    assert origin_of_module(module).kind == "distribution"
    site.write("nt_one.py", "X = 22\n")
    importlib.reload(module)
    assert origin_of_module(module) == APPLICATION


def test_globals_are_matched_by_identity():
    assert module_of_globals(vars(json)) is json
    assert module_of_globals(dict(vars(json))) is None
    assert module_of_globals({}) is None
    assert module_of_globals({"__name__": ["unhashable"]}) is None


def test_functions():
    assert origin_of_function(json.loads).module == "json"
    assert origin_of_function(os.path.join).kind == "standard"
    assert origin_of_function(attr.evolve).name == "attrs"
    assert origin_of_function(test_functions) == APPLICATION


def test_a_function_that_copies_names_stays_application_code():
    @functools.wraps(json.loads)
    def loads(*args):
        return args

    assert origin_of_function(loads) == APPLICATION


def test_code_put_into_a_library_is_application_code():
    namespace = vars(json)
    try:
        exec("def nt_planted(): return 1", namespace)
        assert origin_of_function(namespace["nt_planted"]) == APPLICATION
    finally:
        namespace.pop("nt_planted", None)
    borrowed = types.FunctionType((lambda: 1).__code__, vars(json))
    assert origin_of_function(borrowed) == APPLICATION
    with_globals_of_its_own = types.FunctionType(json.loads.__code__, {**vars(json), "_default_decoder": None})
    assert origin_of_function(with_globals_of_its_own) == APPLICATION
    code_of_its_own = json.loads.__code__.replace(co_consts=(None, "other"))
    assert origin_of_function(types.FunctionType(code_of_its_own, dict(vars(json)))) == APPLICATION


def test_an_exact_copy_of_library_code_is_library_code():
    """Classes that were pickled by value bring along what libraries have put into them."""
    copy = types.FunctionType(json.loads.__code__, dict(vars(json)))
    assert origin_of_function(copy) == origin_of_function(json.loads)


@pytest.mark.parametrize(
    "cls",
    [int, type(None), type(len), type(iter({})), collections.OrderedDict, functools.partial, re.Pattern,
     type(threading.Lock()), threading.local, types.FunctionType, type(functools.cache(len))],
)  # fmt: skip
def test_classes_of_the_standard_library(cls):
    assert origin_of_class(cls).kind == "standard"


def test_classes_of_distributions():
    for cls in (numpy.ndarray, numpy.float64, numpy.random.Generator, numpy.ufunc, type(numpy.sum), attr.Attribute):
        assert origin_of_class(cls).kind == "distribution"


def test_a_class_that_lies_about_its_module_is_application_code():
    fake = type("JSONDecoder", (), {"__module__": "json"})
    assert origin_of_class(fake) == APPLICATION
    assert origin_of_class(type("X", (), {"__module__": property(lambda self: "json")})) == APPLICATION
    assert origin_of_class(type("X", (), {"__module__": None})) == APPLICATION
    assert origin_of_class(type("function", (), {"__module__": "builtins"})) == APPLICATION


def test_builtin_functions():
    assert origin_of_builtin(len).module == "builtins"
    assert origin_of_builtin(math.sin).module == "math"
    assert origin_of_builtin(dict.fromkeys).module == "builtins"
    assert origin_of_builtin(numpy.array).name == "numpy"


class _Method(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


# Functions made of it point to it as long as they live, and pytest lets them live longer than their fixture.
_BLUR = _Method(b"blur", ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value, 8, None)


@pytest.fixture
def nameless():
    """A native function that says neither where it is from nor what it is bound to, as those of OpenCV."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    made = make(ctypes.addressof(_BLUR), None, None)
    assert made.__module__ is None
    assert made.__self__ is None
    yield made
    origin._publishers.pop(id(made), None)
    del made


def _native_of_application(monkeypatch):
    module = types.ModuleType("application_native")
    module.__spec__ = importlib.util.spec_from_file_location("application_native", "/nowhere/application_native.so")
    monkeypatch.setitem(sys.modules, "application_native", module)
    return module


def test_a_native_function_without_a_module_is_of_the_library_that_has_it(nameless, monkeypatch):
    assert origin_of_builtin(nameless) is APPLICATION
    monkeypatch.setattr(numpy, "blur", nameless, raising=False)
    monkeypatch.setattr(sys.modules[__name__], "blur", nameless, raising=False)  # imported by the application
    assert origin_of_builtin(nameless) == origin_of_module(numpy)


def test_but_not_if_two_libraries_have_it(nameless, monkeypatch):
    monkeypatch.setattr(numpy, "blur", nameless, raising=False)
    monkeypatch.setattr(attr, "blur", nameless, raising=False)
    assert origin_of_builtin(nameless) is APPLICATION


def test_nor_if_it_is_native_code_of_the_application(nameless, monkeypatch):
    monkeypatch.setattr(numpy, "blur", nameless, raising=False)
    monkeypatch.setattr(_native_of_application(monkeypatch), "blur", nameless, raising=False)
    assert origin_of_builtin(nameless) is APPLICATION


def test_installed_packages_can_be_treated_as_application_code():
    with treat_as_application("attr"):
        assert origin_of_module(attr) == APPLICATION
        assert origin_of_function(attr.evolve) == APPLICATION
        assert origin_of_class(attr.Attribute) == APPLICATION
        assert origin_of_module(json).kind == "standard"
        with treat_as_application("attr", "numpy"):
            assert origin_of_module(numpy) == APPLICATION
        assert origin_of_module(attr) == APPLICATION
    assert origin_of_module(attr).kind == "distribution"
    with treat_as_application("attrs"):  # the distribution's own name
        assert origin_of_module(attr) == APPLICATION


def test_the_digest_of_a_file_follows_its_content(tmp_path):
    file = tmp_path / "nt_native.py"
    file.write_text("X = 1\n")
    spec = importlib.util.spec_from_file_location("nt_native", file)
    module = importlib.util.module_from_spec(spec)
    first = file_digest(module)
    assert file_digest(module) == first
    assert len(first) == 32
    file.write_text("X = 2\n")
    os.utime(file, ns=(1, 1))
    assert file_digest(module) != first


def test_no_digest_without_a_file():
    with pytest.raises(OSError, match="nt_none"):
        file_digest(types.ModuleType("nt_none"))


def test_modules_that_native_code_has_made_within_its_own_are_no_code_of_the_application():
    compiled = [].append
    compiled.__module__ = "nowhere.part"

    def module_of(**values):
        module = types.ModuleType("nowhere.part")
        vars(module).update(values)
        return module

    assert not was_made_by_application(module_of(act=compiled, LARGEST=3))
    assert was_made_by_application(module_of(act=compiled, other=lambda: 1)), "somebody has put code into it"
    assert was_made_by_application(module_of(act=math.sin)), "which is of another module"
    assert was_made_by_application(module_of(LARGEST=3))
