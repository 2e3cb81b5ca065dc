"""The demo keeps its promises, and notices when one is not kept."""

import json

import pytest
from click.testing import CliRunner

from nectar.cli import main
from nectar.cli.demos import fingerprints as demo_module
from nectar.cli.demos.fingerprints_program import VARIANTS, source_of


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
