"""What has run since somebody listens is known, and nothing of it is forgotten silently."""

import importlib.util
import linecache

import pytest

from nectar.keys import executed


@pytest.fixture
def heard(monkeypatch):
    """Nothing has run so far."""
    executed.listen()
    for name in ("files", "statements", "forgotten"):
        monkeypatch.setattr(executed, name, type(getattr(executed, name))())
    return executed


def load(path):
    spec = importlib.util.spec_from_file_location("nt_loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_file_is_known_with_its_module_and_how_often_it_ran(heard, tmp_path):
    path = tmp_path / "plugin.py"
    path.write_text("x = 1")
    before = heard.count()
    load(path)
    module = load(path)
    known = heard.files[str(path)]
    assert (heard.times(str(path)), known.module()) == (2, module)
    assert heard.count() > before
    del module
    assert known.module() is None, "nobody keeps it alive"
    exec(compile("", str(path), "exec"))
    assert heard.files[str(path)].module is None


def test_the_count_never_falls(heard, monkeypatch):
    counts = [heard.count()]
    for number in (1, 2, 1):
        name = f"<ipython-input-{number}-aa>"
        monkeypatch.setattr(linecache, "cache", {name: (0, None, [], name)})
        for _ in range(2):
            exec(compile("", name, "exec"))
        counts.append(heard.count())
    assert counts == list(range(counts[0], counts[0] + 4))


def test_a_cell_that_nobody_keeps_is_a_statement_without_a_text(heard):
    for name in ("<ipython-input-1-bb>", "<console>"):
        exec(compile("", name, "exec"))
    assert len(heard.statements) == 2


def test_texts_of_libraries_are_passed_over(heard):
    before = heard.count()
    for name in ("<string>", "<attrs generated init a.B>", importlib.util.__file__):
        exec(compile("", name, "exec"))
    assert heard.count() == before


@pytest.mark.parametrize(("limit", "name"), [("_MOST_FILES", "{}/{}.py"), ("_MOST_STATEMENTS", "<console>")])
def test_what_is_beyond_a_limit_is_said_to_be_forgotten(heard, monkeypatch, tmp_path, limit, name):
    monkeypatch.setattr(executed, limit, 2)
    for number in range(4):
        before = heard.count()
        exec(compile("", name.format(tmp_path, number), "exec"))
        assert heard.count() > before
        assert bool(heard.forgotten) is (number > 1)
