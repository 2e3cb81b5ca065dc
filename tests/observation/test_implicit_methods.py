"""Methods of library objects that run without a name in the bytecode: `config["a"]`, `config.a`, `f"{config}"`."""

import warnings

import polars as pl
import pytest
from tests.observation.installed import forget, install

import nectar

SPECIAL = (
    "__getitem__", "__getattr__", "__iter__", "__len__", "__contains__", "__bool__", "__add__", "__radd__", "__lt__",
    "__format__", "__enter__", "__neg__", "__index__", "__call__", "__matmul__", "__reversed__",
)  # fmt: skip
GIVES = {
    "__bool__": "bool(int(value))",
    "__iter__": "iter([int(value)])", "__contains__": "bool(int(value))", "__format__": "value", "__enter__": "value",
    "__reversed__": "iter([int(value)])",
}  # fmt: skip
OPERATIONS = {
    "subscript": ("__getitem__", "held['a']"),
    "attribute": ("__getattr__", "held.a"),
    "loop": ("__iter__", "[each for each in held]"),
    "spread": ("__iter__", "[*held]"),
    "unpacking": ("__iter__", "(lambda a: a)(*held)"),
    "sum": ("__iter__", "sum(held)"),
    "length": ("__len__", "len(held)"),
    "membership": ("__contains__", "1 in held"),
    "truth": ("__bool__", "1 if held else 2"),
    "negation": ("__bool__", "not held"),
    "addition": ("__add__", "held + 1"),
    "addition from the right": ("__radd__", "1 + held"),
    "comparison": ("__lt__", "held < 3"),
    "formatting": ("__format__", "f'{held}'"),
    "format function": ("__format__", "format(held)"),
    "minus": ("__neg__", "-held"),
    "index": ("__index__", "[5, 6, 7][held]"),
    "call": ("__call__", "held()"),
    "matrix product": ("__matmul__", "held @ 2"),
    "reversed": ("__reversed__", "list(reversed(held))"),
}
PLACES = {
    "itself": ("held", "held"),
    "in a table": ("{'c': [held]}", "held['c'][0]"),
    "in a set": ("{held}", "[*held][0]"),
}


def library():
    """A class for each special method: it reads the environment, and the others are as usual."""
    lines = ["import os"]
    for name in SPECIAL:
        lines += [f"class Of{name.strip('_')}:", f"    def {name}(self, *given):"]
        lines += [
            "        value = os.environ.get('NT_SETTING', '0')",
            f"        return {GIVES.get(name, 'int(value)')}",
        ]
        lines += ["    def __exit__(self, *_): pass"] if name == "__enter__" else []
    return "\n".join(lines) + "\n"


@pytest.fixture
def settings(tmp_path, monkeypatch):
    yield install(tmp_path, monkeypatch, "nt_settings", {"nt_settings.py": library()})
    forget("nt_settings")


def program(expression, value):
    """A function of the application that does something to a captured object."""
    space = {"__name__": "program", "held": value}
    exec(f"def program(given):\n    return str({expression}) + str(given)", space)
    return space["program"]


def instance(settings, name, place="itself"):
    held = getattr(settings, f"Of{name.strip('_')}")()
    return eval(PLACES[place][0], {"held": held})


def kept(function, *arguments):
    memo = nectar.memo(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo(*arguments)
        memo(*arguments)
    nectar.session.current().settle()
    return memo.check_call_in_cache(*arguments)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_operation_reads_is_seen(operation, settings, enabled):
    name, expression = OPERATIONS[operation]
    assert not kept(program(expression, instance(settings, name)), 1)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_of_what_the_function_has_made(operation, settings, enabled):
    name, expression = OPERATIONS[operation]
    made = f"settings.Of{name.strip('_')}()"
    space = {"__name__": "program", "settings": settings}
    exec(f"def program(given):\n    held = {made}\n    return str({expression}) + str(given)", space)
    assert not kept(space["program"], 1)


@pytest.mark.parametrize("place", PLACES)
def test_wherever_the_object_lies(place, settings, enabled):
    expression = f"({PLACES[place][1]})['a']"
    assert not kept(program(expression, instance(settings, "__getitem__", place)), 1)


def test_of_what_a_function_is_handed(settings, enabled):
    def program(given):
        return given["a"]

    assert not kept(program, instance(settings, "__getitem__"))


def test_in_a_with_block(settings, enabled):
    held = instance(settings, "__enter__")

    def program(given):
        with held as value:
            return value + str(given)

    assert not kept(program, 1)


def test_what_no_operation_comes_to_is_no_reason(settings, enabled):
    assert kept(program("type(held).__name__", instance(settings, "__getitem__")), 1)


def test_in_functions_of_queries(settings, enabled, tmp_path):
    path = tmp_path / "numbers.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    function = program("held['c'][0]['a']", instance(settings, "__getitem__", "in a table"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.scan_parquet(path).select(pl.col("a").map_elements(function, return_dtype=pl.String)).collect()
    enabled.settle()
    assert not list(enabled.catalog.index.entries())
