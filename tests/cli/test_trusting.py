"""`nectar trust` and `nectar init`: what they say, what counts afterwards."""

import json
import os
import stat

import pytest
from click.testing import CliRunner

from nectar import settings
from nectar.cli.app import main
from nectar.settings import load_settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(settings, "_told", set())
    (tmp_path / "work" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "inner")
    return tmp_path / "work"


WARNING = "whoever can write there, or has written there before, can run code as you\n"


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_trust_says_what_it_is_about_and_takes_effect(folder):
    (folder / "nectar.toml").write_text('home = "/one"\nbudget = "1GB"\n')
    done = run("trust")
    assert done.exit_code == 0
    assert done.output == f"{folder / 'nectar.toml'} is trusted with\n  home = '/one'\n" + WARNING
    assert str(load_settings().home) == "/one"
    done = run("trust", "--revoke", folder / "nectar.toml")
    assert done.output.startswith(f"{folder / 'nectar.toml'} is no longer trusted with")
    assert str(load_settings().home) != "/one"


def test_trust_in_json(folder):
    (folder / "nectar.toml").write_text('store = "/one"\n')
    for options, trusted in (((), True), (("--revoke",), False)):
        said = json.loads(run("trust", folder, "--json", *options).output)
        assert said == {"file": str(folder / "nectar.toml"), "settings": {"store": "/one"}, "trusted": trusted}


def test_nothing_to_trust(folder):
    done = run("trust", folder)
    assert done.exit_code == 1
    assert "no settings file that counts" in done.output
    (folder / "nectar.toml").write_text('budget = "1GB"\n')
    done = run("trust")
    assert done.exit_code == 0
    assert "asks for nothing that needs consent" in done.output


def test_a_file_that_others_could_have_written_cannot_be_trusted(folder):
    (folder / "nectar.toml").write_text('home = "/one"\n')
    (folder / "nectar.toml").chmod(0o666)
    done = run("trust", folder / "nectar.toml")
    assert done.exit_code == 1
    assert not (folder.parent / "config").exists()


def test_init_makes_a_private_home(tmp_path):
    done = run("init", "--home", tmp_path / "home")
    assert done.exit_code == 0
    assert done.output == f"{tmp_path / 'home'}: nobody else may look into it\n"
    assert (tmp_path / "home" / "catalog.db").exists()
    assert json.loads(run("init", "--home", tmp_path / "home", "--json").output)["group"] is None
    assert run("init", "--read-only").exit_code == 2


@pytest.mark.skipif(not hasattr(os, "getegid"), reason="there are no groups here")
def test_init_shares_the_home_and_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("NECTAR_STORE", str(tmp_path / "store"))
    group = os.getegid()
    done = run("init", "--shared-by", group, "--home", tmp_path / "home")
    assert done.exit_code == 0, done.output
    assert "shared by the group" in done.output
    for name in ("home", "store"):
        found = (tmp_path / name).stat()
        assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (group, 0o2770)
    assert json.loads(run("init", "--home", tmp_path / "home", "--json").output)["group"] == group


@pytest.mark.parametrize("name", ["no such group", ""])
def test_init_names_a_group_that_is_none(tmp_path, name):
    done = run("init", "--shared-by", name, "--home", tmp_path / "home")
    assert done.exit_code == 1
    assert "there is no group" in done.output
    assert not (tmp_path / "home").exists()
