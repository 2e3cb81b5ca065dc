"""Settings: which of four places wins, and what is said about values that mean nothing."""

import os
from contextlib import suppress
from dataclasses import fields
from math import inf, nan
from pathlib import Path

import pytest

from nectar import settings as settings_module
from nectar.errors import SettingError
from nectar.settings import _FREE, _PARSERS, Settings, load_settings, settings_file
from nectar.trust.consent import Asked
from nectar.trust.places import distrust


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


@pytest.fixture
def consents(tmp_path, monkeypatch):
    """Nothing was consented to."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(settings_module, "_told", set())
    return tmp_path / "config" / "nectar" / "trusted"


NEEDING = {"home": "elsewhere", "store": "s3://bucket", "verify": "before", "shared": "/", "patience": "1d"}


def test_which_settings_need_consent():
    """A new setting needs consent unless somebody has said that it cannot harm."""
    assert set(_PARSERS) - _FREE == set(NEEDING)


@pytest.mark.parametrize("name", sorted(NEEDING))
@pytest.mark.parametrize("file", ["nectar.toml", "pyproject.toml"])
def test_a_file_chooses_no_more_than_it_may_and_the_rest_counts(tmp_path, consents, caplog, name, file):
    head = "[tool.nectar]\n" if file == "pyproject.toml" else ""
    (tmp_path / file).write_text(f'{head}{name} = "{NEEDING[name]}"\njob-log = 3\n')
    before = load_settings({}, {}, Path("/"))
    settings = load_settings({}, {}, tmp_path)
    assert getattr(settings, name) == getattr(before, name)
    assert settings.job_log == 3
    load_settings({}, {}, tmp_path)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{tmp_path / file} asks for {name}, which does not count without your consent; "
        f"`nectar trust {tmp_path / file}` gives it"
    )


def test_what_was_consented_to_counts_until_it_changes(tmp_path, consents, caplog):
    path = tmp_path / "nectar.toml"
    path.write_text('home = "/one"\nstore = "/two"\n')
    found = settings_file(tmp_path)
    Asked(found.path, found.needing_consent).agree()
    settings = load_settings({}, {}, tmp_path)
    assert (str(settings.home), settings.store) == ("/one", "/two")
    path.write_text('home = "/one"\nstore = "/two"\nbudget = "1GB"\n')
    assert str(load_settings({}, {}, tmp_path).home) == "/one", "it asks for nothing new that could harm"
    assert caplog.records == []
    path.write_text('home = "/one"\nstore = "/three"\n')
    settings = load_settings({}, {}, tmp_path)
    assert str(settings.home) != "/one"
    assert settings.store == ""
    path.write_text('home = "/one"\nstore = "/two"\n')
    assert str(load_settings({}, {}, tmp_path).home) == "/one"
    Asked(found.path, found.needing_consent).withdraw()
    assert str(load_settings({}, {}, tmp_path).home) != "/one"


def test_consent_to_one_file_is_none_to_another(tmp_path, consents):
    for name in ("mine", "clone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nectar.toml").write_text('home = "relative"\n')
    found = settings_file(tmp_path / "mine")
    Asked(found.path, found.needing_consent).agree()
    assert str(load_settings({}, {}, tmp_path / "mine").home) == "relative"
    assert str(load_settings({}, {}, tmp_path / "clone").home) != "relative"


def test_consents_lie_where_nobody_else_may_write(tmp_path, consents):
    (tmp_path / "nectar.toml").write_text('home = "/one"\n')
    found = settings_file(tmp_path)
    Asked(found.path, found.needing_consent).agree()
    assert {path.stat().st_mode & 0o777 for path in (consents, *consents.iterdir())} == {0o700, 0o600}


def test_what_others_choose_in_any_case_is_not_worth_a_word(tmp_path, consents, caplog):
    (tmp_path / "nectar.toml").write_text('home = "/one"\nstore = "/two"\n')
    settings = load_settings({"store": "/mine"}, {"NECTAR_HOME": "/my/home"}, tmp_path)
    assert (str(settings.home), settings.store) == ("/my/home", "/mine")
    assert caplog.records == []


LONG_KEY = "nectar." * 30_000 + "a = 1"
QUOTED = "'tool' . \"nectar\"." + '"a b" .' * 20_000 + "a = 1"


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 100_000, "tool = 3", "[tool]\nnectar = 3", "[[tool]]", "\x00", LONG_KEY, QUOTED,
     f"[{QUOTED[:-4]}]", "nectar" * 40_000, "tool.nectar" * 20_000, "# nectar\n" + "tool" * 60_000, "nectar\"" * 30_000,
     "nectar'" * 30_000],
)  # fmt: skip
@pytest.mark.parametrize("file", ["nectar.toml", "pyproject.toml"])
def test_files_that_are_strange_raise_nothing_but_what_they_may(tmp_path, text, file):
    (tmp_path / file).write_text(text)
    with suppress(SettingError):
        assert load_settings({}, {}, tmp_path).job_log == 10_000
    if file == "pyproject.toml":
        assert settings_file(tmp_path) is None


def test_nothing_of_a_file_is_parsed_that_others_could_have_written(tmp_path, monkeypatch):
    monkeypatch.setattr("nectar.settings.distrust", lambda path, used: f"everybody may write to {path}")
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("it was parsed"))
    (tmp_path / "nectar.toml").write_text("job-log = 1")
    (tmp_path / "pyproject.toml").write_text("[tool.nectar]\njob_log = 2")
    assert settings_file(tmp_path) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize("how", ["taken away", "exchanged"])
def test_a_file_that_is_gone_while_it_is_judged_does_not_count(tmp_path, monkeypatch, caplog, how):
    """Whoever may write to a folder on the way could take their file away as soon as it has been read."""
    path = tmp_path / "nectar.toml"
    path.write_text("job-log = 1")
    path.chmod(0o666)

    def late(*arguments, **named):
        path.unlink()
        if how == "exchanged":
            path.write_text("job-log = 2")
            path.chmod(0o600)
        return distrust(*arguments, **named)

    monkeypatch.setattr("nectar.settings.distrust", late)
    assert settings_file(tmp_path) is None
    assert f"the settings in {path} do not count" in caplog.text


def test_a_key_of_many_names_is_not_parsed(tmp_path, monkeypatch):
    """The time for it grows with the square of its names: a repository could stop every program for minutes."""
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("it was parsed"))
    for text in (LONG_KEY, QUOTED):
        (tmp_path / "nectar.toml").write_text(text)
        with pytest.raises(SettingError, match="more than 100 names"):
            settings_file(tmp_path)


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
    ("name", "value"),
    [("off", 5), ("read_only", [1]), ("exact_floats", 1.5), ("refresh", {}), ("most_files", inf), ("budget", 10**400),
     ("most_age", 10**400), ("overhead", 10**400), ("overhead", "1" * 400), ("budget", "9" * 400), ("linger", inf),
     ("linger", nan), ("linger", -1), ("protect", inf), ("most_files", -5), ("budget", "1000000000TB"),
     ("job_log", 10**30),
     ("policy", 5), ("shared", 5), ("shared", [[1]]), ("identity", []), ("inline", [3]), ("overhead_floor", 1e300)],
)  # fmt: skip
def test_whatever_stands_in_a_file_raises_no_other_error(tmp_path, monkeypatch, name, value):
    """A cloned repository may have any value that TOML knows."""
    (tmp_path / "nectar.toml").write_text("x = 1")
    monkeypatch.setattr("tomllib.loads", lambda text: {name: value})
    with suppress(SettingError):
        found = getattr(load_settings({}, {}, tmp_path), name)
        assert not isinstance(found, int | float) or 0 <= found <= 2**62 or (name, found) == ("overhead", inf)


@pytest.mark.parametrize(
    ("value", "meant"),
    [("1", True), ("yes", True), ("On", True), ("0", False), ("no", False), ("", False), (True, True), (False, False)],
)
def test_flags(value, meant):
    assert load_settings({"read_only": value}, {}, Path("/")).read_only is meant


@pytest.mark.parametrize("values", [{}, {"NECTAR_HOME": "~/nectar"}])
def test_a_user_without_a_folder_has_no_home_in_the_one_where_a_program_runs(monkeypatch, values):
    """What lies there may be somebody else's: a repository could bring a folder of the name ~ with it."""
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(SettingError, match="home|no folder of their own"):
        load_settings({}, values, Path("/"))
    assert load_settings({}, {"NECTAR_HOME": "/given"}, Path("/")).home == Path("/given")


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


@pytest.mark.parametrize(
    "text",
    [
        "[tool.nectar]\nbudget = '1GB'", "[ tool . 'nectar' ]\nbudget = '1GB'", "tool.nectar.budget = '1GB'",
        "[tool]\nnectar = {budget = '1GB'}", "[tool] # ours\nnectar.budget = '1GB'",
        "tool = {nectar = {budget = '1GB'}}",
        '["t\\u006fol"."n\\u0065ctar"]\nbudget = "1GB"', "['tool']\r\n['tool'.nectar]\r\nbudget = '1GB'",
    ],
)  # fmt: skip
def test_a_project_may_write_our_table_in_any_way_that_toml_knows(text, tmp_path):
    (tmp_path / "pyproject.toml").write_text(text)
    assert load_settings({}, {}, tmp_path).budget == 10**9


def test_a_project_that_says_nothing_of_us_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("tomllib.loads", None)
    text = "[project]\nname = 'etl'\ndependencies = ['nectar']\n[tool.ruff]\nline-length = 1"
    (tmp_path / "pyproject.toml").write_text(text)
    assert load_settings({}, {}, tmp_path).budget == 20 * 10**9
