"""The demos keep their promises, and notice when one is not kept."""

import json

import pytest
from click.testing import CliRunner

from nectar.cli import main
from nectar.cli.demos import fingerprints as demo_module
from nectar.cli.demos import memo as memo_demo
from nectar.cli.demos import polars as polars_demo
from nectar.cli.demos.fingerprints_program import VARIANTS, source_of
from nectar.cli.demos.process import Ended


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.title)
def test_every_variant_is_a_program(variant):
    for name, text in source_of(variant).items():
        compile(text, name, "exec")


def test_demo_keeps_its_promises():
    result = CliRunner().invoke(main, ["demo", "fingerprints", "--json"])
    record = json.loads(result.stdout)
    assert [outcome for outcome in record["outcomes"] if outcome["found"] != outcome["promised"]] == []
    assert record["kept"] is True
    assert result.exit_code == 0
    assert {outcome["promised"] for outcome in record["outcomes"]} == {"same", "different", "refused"}


def answer(monkeypatch, **changed):
    """Lets the demo run without interpreters: every fingerprint is "ab", and changed says what else is answered."""

    def nectar(command, *arguments, environment=None):
        return {"fingerprint": "ab" * 32, **changed}

    monkeypatch.setattr(demo_module, "_nectar", nectar)
    return CliRunner().invoke(main, ["demo", "fingerprints"])


def test_demo_fails_when_a_change_is_not_seen(monkeypatch):
    result = answer(monkeypatch)
    assert result.exit_code == 1
    assert "promises were not kept" in result.stderr
    assert "a constant two modules away" in result.stderr
    assert "promised: different" in result.stdout


def test_demo_fails_when_nothing_can_be_fingerprinted(monkeypatch):
    result = answer(monkeypatch, fingerprint=None, error={"message": "out of order"})
    assert result.exit_code == 1
    assert "out of order" in result.stdout


# polars


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(polars_demo, "_MOST", 70_000)


def test_polars_demo_keeps_its_promises(small):
    result = CliRunner().invoke(main, ["demo", "polars", "--json"])
    record = json.loads(result.stdout)
    assert [each for each in record["runs"] if not each["promised"]] == []
    assert record["kept"] is True
    assert result.exit_code == 0
    assert "LONGEST was 600, is 900" in " ".join(each["because"] for each in record["runs"])


def pretend(monkeypatch, **changed):
    """Lets the demo run without interpreters: every run reuses one part of one, and changed says what else."""
    ended = {"code": 0, "stdout": "", "stderr": "nectar: 1 of 1 query from cache, 1 s saved", "seconds": 1.0, **changed}
    monkeypatch.setattr(polars_demo, "run_python", lambda *_: Ended(**ended))
    return CliRunner().invoke(main, ["demo", "polars"])


def test_polars_demo_fails_when_everything_is_reused(small, monkeypatch):
    result = pretend(monkeypatch)
    assert result.exit_code == 1
    for title in ("the first run", "another last step", "another limit, two modules away", "a new day of clicks"):
        assert title in result.stderr
    assert "the old limit is back" not in result.stderr


def test_polars_demo_fails_when_nothing_is_reused(small, monkeypatch):
    why = "nothing of it is known: first time, visitors, LONGEST was 600, is 900, came\nnectar: 0 of 1 query from cache"
    result = pretend(monkeypatch, stderr=why)
    assert "again, in another process" in result.stderr
    assert "another last step" in result.stderr
    assert "two modules away" not in result.stderr


def test_polars_demo_fails_when_the_reason_is_missing(small, monkeypatch):
    result = pretend(
        monkeypatch, stderr="nothing of it is known: no idea\nnectar: 0 of 1 query from cache, nothing kept"
    )
    assert "two modules away" in result.stderr


def test_polars_demo_fails_when_the_log_cannot_be_made(small, monkeypatch):
    result = pretend(monkeypatch, code=1, stderr="no space left")
    assert result.exit_code == 1
    assert "no space left" in result.stderr


def test_the_default_topic_is_what_is_installed(monkeypatch):
    shown = []
    monkeypatch.setattr(polars_demo, "run", lambda as_json: shown.append("polars"))
    monkeypatch.setattr(memo_demo, "run", lambda as_json: shown.append("memo"))
    CliRunner().invoke(main, ["demo"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    CliRunner().invoke(main, ["demo"])
    assert shown == ["polars", "memo"]
