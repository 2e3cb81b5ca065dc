"""Settings: which of four places wins, and what is said about values that mean nothing."""

from dataclasses import fields
from pathlib import Path

import pytest

from nectar.errors import SettingError
from nectar.settings import _PARSERS, Settings, load_settings


def test_defaults(tmp_path):
    settings = load_settings(environment={}, folder=tmp_path)
    assert settings == Settings(home=settings.home)
    assert settings.home.name == "nectar"
    assert settings.budget == 20 * 10**9


def test_every_setting_can_be_set_everywhere():
    assert set(_PARSERS) == {field.name for field in fields(Settings)}


def test_a_keyword_wins_over_the_environment_over_a_file_over_the_default(tmp_path):
    (tmp_path / "nectar.toml").write_text('budget = "1GB"\ninline = 10\nprotect = "1min"\n')
    environment = {"NECTAR_BUDGET": "2GB", "NECTAR_INLINE": "20", "NECTAR_UNKNOWN_TO_US": "x", "OTHER": "y"}
    settings = load_settings({"budget": "3GB"}, environment, tmp_path)
    assert (settings.budget, settings.inline, settings.protect) == (3 * 10**9, 20, 60.0)
    assert settings.policy == "cost-benefit"


def test_the_nearest_file_counts(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "nectar.toml").write_text("job-log = 1")
    assert load_settings({}, {}, inner).job_log == 1
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.nectar]\njob_log = 2")
    assert load_settings({}, {}, inner).job_log == 2
    (inner / "pyproject.toml").write_text("[tool.other]\njob_log = 3")
    assert load_settings({}, {}, inner).job_log == 2, "a file that says nothing about Nectar is passed by"


def test_a_pyproject_that_cannot_be_read_is_not_ours_to_complain_about(tmp_path):
    (tmp_path / "pyproject.toml").write_text("this is [no toml")
    assert load_settings({}, {}, tmp_path).job_log == 10_000
    (tmp_path / "nectar.toml").write_text("this is [no toml")
    with pytest.raises(SettingError, match=r"nectar\.toml cannot be read"):
        load_settings({}, {}, tmp_path)


def test_a_name_nobody_knows(tmp_path):
    with pytest.raises(SettingError, match="no setting 'buget'.*keywords.*budget"):
        load_settings({"buget": 1}, {}, tmp_path)
    (tmp_path / "nectar.toml").write_text("buget = 1")
    with pytest.raises(SettingError, match="settings file"):
        load_settings({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("budget", "much"), ("most_files", "many"), ("verify", "never"), ("read_only", "perhaps"),
     ("protect", "1 year"), ("job_log", None)],
)  # fmt: skip
def test_a_value_that_means_nothing(name, value):
    with pytest.raises(SettingError, match=f"setting {name} \\(in the keywords\\)"):
        load_settings({name: value}, {}, Path("/"))


@pytest.mark.parametrize(
    ("value", "meant"),
    [("1", True), ("yes", True), ("On", True), ("0", False), ("no", False), ("", False), (True, True), (False, False)],
)
def test_flags(value, meant):
    assert load_settings({"read_only": value}, {}, Path("/")).read_only is meant


def test_home_may_begin_with_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/somebody")
    assert load_settings({"home": "~/nectar"}, {}, Path("/")).home == Path("/somebody/nectar")


def test_the_environment_is_read_when_none_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("NECTAR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load_settings().home == tmp_path


def test_a_working_folder_that_was_deleted_has_no_settings(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert load_settings({"home": "/somewhere"}).home == Path("/somewhere")
