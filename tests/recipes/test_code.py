"""Which modules and packages functions need: captured, or named as a reason."""

import importlib
import pickle
import sys
import textwrap

import pytest

from nectar.recipes.code import code_of, suspects_in


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes modules of an application, which can be imported until the end of the test."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(**texts):
        for name, text in texts.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(
            getattr(sys.modules[name], "__file__", "") or getattr(sys.modules[name], "__path__", "")
        ):
            del sys.modules[name]


def names_of(code):
    return [module.name for module in code.modules]


def test_modules_are_captured_with_all_that_they_import(write):
    write(
        needed_top="""
            import json
            from needed_pack import middle
            import needed_aside          # not reached by f, and still run when this is imported
            def f(x):
                return middle.g(x)
        """,
        unneeded="",
    )
    write(needed_aside="VALUE = 1")
    package = {"needed_pack/__init__": "", "needed_pack/middle": "from .bottom import h\ndef g(x):\n    return h(x)\n"}
    package["needed_pack/bottom"] = "def h(x):\n    return x\n"
    write(**package)
    import needed_top

    code = code_of([needed_top.f], [pickle.dumps(needed_top.f)])
    assert names_of(code) == ["needed_aside", "needed_pack", "needed_pack.bottom", "needed_pack.middle", "needed_top"]
    assert code.texts["needed_pack.bottom"] == "def h(x):\n    return x\n"
    assert [module.package for module in code.modules] == [False, True, False, False, False]
    assert not code.refusals


def test_packages_are_named_with_who_uses_them(write):
    write(uses_toolz="import toolz\ndef f(x):\n    return toolz.identity(x)\n")
    import uses_toolz

    code = code_of([uses_toolz.f], [pickle.dumps(uses_toolz.f)])
    package = code.packages["toolz"]
    assert package.version == importlib.metadata.version("toolz")
    assert package.used_by == "f (uses_toolz.py:2)"


def test_a_module_that_is_only_imported_brings_its_packages_too(write):
    write(imports_boltons="import boltons\ndef f(x):\n    return x\n")
    import imports_boltons

    code = code_of([imports_boltons.f], [pickle.dumps(imports_boltons.f)])
    assert code.packages["boltons"].used_by == "the module imports_boltons"


def test_a_module_without_text_is_a_reason(write, monkeypatch):
    write(made_up="def f(x):\n    return x\n")
    import made_up

    monkeypatch.setattr(made_up.__spec__.loader, "get_source", lambda name: None, raising=False)
    code = code_of([made_up.f], [pickle.dumps(made_up.f)])
    assert [reason for reason in code.refusals if "made_up" in reason and "no text" in reason]
    assert not code.modules


def test_a_compiled_module_is_a_reason(write, monkeypatch):
    write(compiled_one="def f(x):\n    return x\n")
    import compiled_one

    monkeypatch.setattr(compiled_one.__spec__, "origin", "/somewhere/compiled_one.so")
    monkeypatch.setattr("nectar.recipes.code.is_native", lambda module: module is compiled_one)
    code = code_of([], [pickle.dumps(compiled_one.f)])
    assert ["is compiled" in reason for reason in code.refusals] == [True]


def test_a_file_that_was_changed_after_its_import_is_a_reason(write, tmp_path):
    write(edited="def f(x):\n    return x + 1\n")
    import edited

    assert not code_of([edited.f], [pickle.dumps(edited.f)]).refusals
    (tmp_path / "edited.py").write_text("def f(x):\n    return x + 2\n")
    code = code_of([edited.f], [pickle.dumps(edited.f)])
    assert ["was changed after it was imported" in reason for reason in code.refusals] == [True]


def test_suspects_are_functions_that_only_a_promise_lets_pass(write):
    write(
        promised="""
            import time
            import nectar
            @nectar.pure
            def f(x):
                return x + time.time_ns()
            def g(x):
                return x + 1
        """
    )
    import promised

    assert not suspects_in([promised.g])
    (suspect,) = suspects_in([promised.f])
    assert "clock" in suspect
    assert "promised.py" in suspect
