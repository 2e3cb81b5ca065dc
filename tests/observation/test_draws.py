"""Draws and clocks that no name in any code shows: generators that are handed on, clocks that tests set."""

import base64
import hashlib
import importlib
import os
import random
import secrets
import subprocess
import sys
import textwrap
import warnings

import pytest

import nectar
from nectar.keys.purity import tables

TEXTS = {
    "nt_salts.py": """
        import random, secrets
        import nt_salts_inner

        _system = random.SystemRandom()
        def salted(given): return _hash(_system, given)
        def keyed(given): return nt_salts_inner.made(secrets.token_bytes, given)
        def unsalted(given): return nt_salts_inner.made(lambda size: size, given)
        def _hash(generator, given): return given + str(generator.getrandbits(64))
        """,
    "nt_salts_inner.py": """
        def made(make, given): return given, make(8)
        """,
    "nt_late.py": """
        import secrets
        SALT = secrets.token_bytes(4)
        def length(given): return len(given)
        """,
    "nt_days.py": """
        import time, datetime
        def stamp(given): return time.time()
        def day(given): return datetime.date.today().isoformat()
        def plain(given): return given if given else time.time()
        """,
    "freezegun/__init__.py": "",
    "freezegun/api.py": """
        import datetime
        set_to = [1.0]
        def fake_time(): return set_to[0]
        class FakeDate(datetime.date):
            @classmethod
            def today(cls): return cls(2024, 1, int(set_to[0]))
        """,
    "igraph/__init__.py": "from igraph._igraph import GraphBase\nclass Graph(GraphBase): pass",
    "igraph/_igraph.py": """
        class GraphBase:
            @classmethod
            def Erdos_Renyi(cls, n): return cls()
            @classmethod
            def Ring(cls, n): return cls()
        """,
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Libraries that are installed; gives one by its name."""
    folder = tmp_path / "lib" / "site-packages"
    lines = []
    for name, text in TEXTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{path.stat().st_size}")
    info = folder / "nt_salts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: nt-salts\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    names = {name.partition("/")[0].removesuffix(".py") for name in TEXTS}
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    yield importlib.import_module
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[name]
    sys.modules.update(before)


def is_kept(module, name, value="2024"):
    space = {"__name__": "program", module.__name__: module}
    exec(f"def program(given):\n    return {module.__name__}.{name}(given)", space)
    memo = nectar.memo(space["program"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memo(value)
        memo(value)
    nectar.session.current().settle()
    return memo.check_call_in_cache(value)


def test_a_generator_of_the_system_is_seen_whoever_holds_it(site, enabled):
    salts = site("nt_salts")
    assert not is_kept(salts, "salted")
    assert not is_kept(salts, "keyed")
    assert is_kept(salts, "unsalted")


def test_draws_of_modules_that_are_imported_meanwhile_are_theirs(site, enabled):
    @nectar.memo
    def length(given):
        import nt_late

        return nt_late.length(given)

    assert length("four") == 4
    nectar.session.current().settle()
    assert "token_bytes" in dir(secrets)
    assert length.check_call_in_cache("four")


def test_generators_of_the_system_still_draw(site, enabled):
    is_kept(site("nt_salts"), "salted")  # from here on draws are listened to
    assert len({random.SystemRandom().getrandbits(64) for _ in range(3)} | {secrets.token_hex(8)}) == 4


def test_a_clock_that_tests_set_is_a_clock(site, enabled, monkeypatch):
    faked, days = site("freezegun.api"), site("nt_days")
    monkeypatch.setattr(days, "time", faked)  # as freezegun does with each name that a clock has
    monkeypatch.setattr(faked, "time", faked.fake_time, raising=False)
    monkeypatch.setattr(days, "datetime", faked)
    monkeypatch.setattr(faked, "date", faked.FakeDate, raising=False)
    assert not is_kept(days, "stamp")
    assert not is_kept(days, "day")
    assert is_kept(days, "plain")


def test_graphs_at_random_are_refused_in_whatever_thread(site):
    graph = site("igraph").Graph
    assert tables.verdict(graph.Erdos_Renyi).kind == "random"
    assert tables.verdict(graph.Ring) is None


FIRST = """
import random
import nectar

@nectar.memo
def shuffled(numbers):
    found = sorted(numbers)
    random.Random(13).shuffle(found)
    return found

before = nectar.fingerprint(shuffled.function)
shuffled([3, 1, 2])
print(nectar.last_run().parts[-1].keeping, nectar.fingerprint(shuffled.function) == before)
"""


def test_what_listens_to_draws_is_no_part_of_any_key(tmp_path):
    """The first call of a process that used a generator of its own was never kept."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST], capture_output=True, text=True,
        env={**os.environ, "NECTAR_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert done.stdout == "being kept True\n", done.stdout + done.stderr
