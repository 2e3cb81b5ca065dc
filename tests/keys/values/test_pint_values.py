"""Registries of units have one key in every process, and another whenever anything in them is another."""

import os
import subprocess
import sys

import pytest
from tests.dialects.python.programs import SOURCE
from tests.observation.installed import forget, install

# What pint does, in small: units are frozen, made in the order of a set, looked up by name, and remembered.
PLAIN = """
    from collections import ChainMap
    from dataclasses import dataclass

    class UnitsContainer:
        __slots__ = ("_d", "_hash", "_one", "_non_int_type")
        def __init__(self, d):
            self._d, self._hash, self._one, self._non_int_type = dict(d), None, 1, float
        def __eq__(self, other):
            return self._d == other._d
        def __hash__(self):
            return hash(frozenset(self._d.items()))

    @dataclass(frozen=True)
    class ScaleConverter:
        scale: float

    @dataclass(frozen=True)
    class Prefix:
        name: str
        defined_symbol: str
        value: float

    @dataclass(frozen=True)
    class Unit:
        name: str
        defined_symbol: str
        aliases: tuple
        converter: ScaleConverter
        reference: UnitsContainer

    class RegistryCache:
        def __init__(self):
            self.root_units, self.equivalents, self.conversion_factor = {}, {}, {}

    class GenericPlainRegistry:
        def __init__(self):
            self._units = ChainMap({})
            for name in ("meter", "second", "gram"):
                self.define(name, 1.0, {f"[{name}]": 1})
            self._prefixes = {"kilo": Prefix("kilo", "k", 1000.0), "milli": Prefix("milli", None, 0.001)}
            self._cache = RegistryCache()
            self._caches = {(): self._cache}
            self.preprocessors = []
            for name in {"kilometer", "millisecond", "milligram", "kilogram"}:
                self.factor(name)
        def define(self, name, scale, reference, symbol=None):
            self._units[name] = Unit(name, symbol, (), ScaleConverter(scale), UnitsContainer(reference))
        def unit(self, name):
            if name not in self._units:
                prefix = next(each for each in self._prefixes.values() if name.startswith(each.name))
                base = name.removeprefix(prefix.name)
                symbol = (prefix.defined_symbol or prefix.name) + self._units[base].name
                self.define(name, prefix.value, {base: 1}, symbol)
            return self._units[name]
        def factor(self, name):
            key = UnitsContainer({name: 1})
            if key not in self._cache.root_units:
                self._cache.root_units[key] = self.unit(name).converter.scale, key
                self._cache.equivalents.setdefault(key, set()).add(name)
            return self._cache.root_units[key][0]

    class UnitRegistry(GenericPlainRegistry):
        pass
"""
FILES = {
    "pint/__init__.py": """
        from pint.facets.plain import UnitRegistry
        class ApplicationRegistry:
            def get(self):
                return self
        application_registry = ApplicationRegistry()
    """,
    "pint/facets/__init__.py": "",
    "pint/facets/plain.py": PLAIN,
}
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import nectar, pint
from pint.facets.plain import UnitsContainer
ureg = pint.UnitRegistry()
{change}
@nectar.memo
def convert(name, value):
    return value * ureg.factor(name)
nectar.enable()
print(nectar.fingerprint(ureg), convert("millimeter", 2.0), nectar.last_run().parts[0].outcome)
"""
CHANGES = {
    "nothing": "",
    "a unit": "ureg.define('mile', 1609.0, {'meter': 1})",
    "a unit anew": "ureg.define('kilometer', 999.0, {'meter': 1})",
    "stale": "ureg.factor('millimeter'); ureg.define('millimeter', 7.0, {'meter': 1})",
    "not stale": "ureg.define('millimeter', 7.0, {'meter': 1})",
    "remembered": "ureg.factor('millimeter')",
    "a setting": "ureg.preprocessors.append(str.lower)",
    "a context": "ureg._caches[('x',)] = ureg._cache",
    "a value": "ureg._cache.root_units[UnitsContainer({'kilometer': 1})] = 5.0, None",
    "a set": "ureg._cache.equivalents[UnitsContainer({'kilometer': 1})].add('x')",
    "a subclass": "ureg.__class__ = type('Mine', (pint.UnitRegistry,), {'factor': lambda *_: 3.0})",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    if "pint" in sys.modules:
        pytest.skip("the real pint is loaded")
    install(tmp_path, monkeypatch, "pint", FILES)
    forget("pint")
    script = tmp_path / "script.py"

    def told(change, seed="0", home="home"):
        script.write_text(PROGRAM.format(change=CHANGES[change]))
        environment = {"PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed, "NECTAR_HOME": str(tmp_path / home)}
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "lib" / "site-packages")], stdout=subprocess.PIPE, text=True,
            env={**os.environ, **environment}, check=True,
        )  # fmt: skip
        return done.stdout.split()

    return told


def test_the_key_is_the_same_in_every_process(run):
    first, *others = (run("nothing", seed) for seed in "1234")
    assert first[1:] == ["0.002", "computed"]
    assert [other[0] for other in others] == [first[0]] * 3
    assert [other[2] for other in others] == ["reused"] * 3


def test_whatever_is_defined_or_remembered_counts(run):
    found = {change: run(change) for change in CHANGES}
    assert len({key for key, _, _ in found.values()}) == len(CHANGES)
    assert {outcome for _, _, outcome in found.values()} == {"computed"}
    alone = {change: run(change, home=change) for change in CHANGES}
    assert [value for _, value, _ in found.values()] == [value for _, value, _ in alone.values()]


CHANGING = """
import sys
sys.path.insert(0, sys.argv[1])
import nectar, pint
from pint.facets.plain import UnitsContainer
ureg = pint.UnitRegistry()
nectar.enable()
def work(text):
{work}
    return text
call = nectar.memo(work)
call("a")
nectar.session.current().settle()
print(nectar.last_run().details())
"""


@pytest.mark.parametrize(
    ("work", "kept"),
    [
        ("ureg.unit('millimeter')", True),
        ("ureg.factor('millimeter')", True),
        ("getattr(ureg, 'def' + 'ine')('mile', 1609.0, {'meter': 1})", False),
        ("getattr(ureg, 'def' + 'ine')('kilometer', 999.0, {'meter': 1}, 'kmeter')", False),
        ("getattr(ureg, 'def' + 'ine')('millimeter', 0.002, {'meter': 1}, 'millimeter')", False),
        ("getattr(ureg, 'def' + 'ine')('kilometer', 1000.0, {'meter': 1}, 'km')", False),
        ("getattr(ureg, 'def' + 'ine')('kilometer', 1000.0, {'gram': 1}, 'kmeter')", False),
    ],
)
def test_what_a_registry_makes_itself_is_no_change_and_anything_else_is(work, kept, run, tmp_path):
    script = tmp_path / "changing.py"
    script.write_text(CHANGING.format(work=f"    {work}"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path / "lib" / "site-packages")],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "NECTAR_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert "uncacheable" not in done.stdout
    assert ("kept" in done.stdout and "not kept" not in done.stdout) == kept, done.stdout
