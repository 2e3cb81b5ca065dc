"""Several users of one machine: what one of them does reaches another only where that other has joined."""

import os
import stat
import sys

import pytest
from tests.trust.conftest import ALICE, BOB, MALLORY, TEAM, as_user, memo, nectar

KEPT, REUSED, NOTHING = "0 of 1 call from cache, 1 kept", "1 of 1 call from cache", "nothing kept"
TEAMS = {"groups": (TEAM,)}


@pytest.fixture
def shared(of):
    """A home that Alice shares with her team, with one result of hers in it."""
    home = of(ALICE, "share", 0o2775, TEAM) / "home"
    done = nectar(ALICE, "init", "--shared-by", TEAM, "--home", home, **TEAMS)
    assert done.returncode == 0, done.stderr
    said, errors = memo(ALICE, 1, home, **TEAMS)
    assert KEPT in said, errors
    return home


def test_a_home_of_somebody_else_is_refused_and_the_program_runs(of):
    home = of(ALICE, "alice") / "home"
    assert KEPT in memo(ALICE, 1, home)[0]
    for path in (home, *home.rglob("*")):
        path.chmod(0o777)
    said, errors = memo(BOB, 1, home)
    assert NOTHING in said
    assert f"nothing is reused or kept: the home {home} is not used: {home.parent} belongs to user {ALICE}" in errors
    assert errors.count("\n") == 1
    assert {path.stat().st_uid for path in home.rglob("*")} == {ALICE}, "and nothing is written there"


def test_commands_say_that_a_home_is_of_somebody_else(of):
    home = of(ALICE, "alice") / "home"
    assert KEPT in memo(ALICE, 1, home)[0]
    for command in (["ls"], ["stats"], ["check"], ["gc", "--all", "--apply"], ["show", "ab"]):
        done = nectar(BOB, *command, "--home", home)
        assert done.returncode == 1, command
        assert done.stderr.startswith(f"nectar: the home {home} is not used: "), done.stderr
        assert "Traceback" not in done.stderr
    code = "import nectar; nectar.open('team/x')"
    done = as_user(BOB, sys.executable, "-c", code, NECTAR_HOME=str(home))
    assert "UntrustedError: the home" in done.stderr


def test_root_uses_no_home_of_another_user(of):
    home = of(MALLORY, "mallory") / "home"
    assert KEPT in memo(MALLORY, 1, home)[0]
    said, errors = memo(0, 1, home)
    assert NOTHING in said
    assert f"belongs to user {MALLORY}" in errors


def test_a_home_of_root_is_read_by_others_and_left_as_it_is(place):
    home = place / "home"
    assert KEPT in memo(0, 1, home)[0]
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    said, errors = memo(BOB, 1, home)
    assert REUSED in said, errors
    assert errors == ""
    assert {path.stat().st_uid for path in home.rglob("*")} == {0}


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_all_members_keep_and_reuse_whatever_their_umask(shared, umask):
    more = {**TEAMS, "umask": umask}
    assert REUSED in memo(BOB, 1, shared, **more)[0]
    assert KEPT in memo(BOB, 2, shared, **more)[0]
    assert REUSED in memo(ALICE, 2, shared, **TEAMS)[0]
    assert KEPT in memo(ALICE, 3, shared, **TEAMS)[0], "the owner is not locked out by files of a member"
    assert {path.stat().st_gid for path in shared.rglob("*")} == {TEAM}
    assert not any(path.stat().st_mode & 0o007 for path in (shared, *shared.rglob("*")))
    assert all(path.stat().st_mode & stat.S_ISGID for path in shared.rglob("*") if path.is_dir())


def test_members_keep_at_the_same_time(shared):
    code = """
import sys, sqlite3, nectar
from pathlib import Path
@nectar.memo
def f(n):
    x = 0
    for i in range(300_000): x += i * n
    return [x] * 3000
f(int(sys.argv[1]))
nectar.session.current().settle()
assert all(path.stat().st_mode & 0o777 == 0o660 for path in Path(sys.argv[2]).glob("catalog.db*"))  # while it is open
print(nectar.last_run())
"""
    for n, user in enumerate((BOB, ALICE, BOB, ALICE), 10):
        done = as_user(user, sys.executable, "-c", code, str(n), str(shared), NECTAR_HOME=str(shared), **TEAMS)
        assert KEPT in done.stdout, done.stderr


def test_members_evict_results_of_others(shared):
    done = nectar(BOB, "gc", "--all", "--apply", "--home", shared, **TEAMS)
    assert done.returncode == 0, done.stderr
    assert list((shared / "results" / "data").rglob("*.pickle")) == []
    said, errors = memo(ALICE, 1, shared, **TEAMS)
    assert KEPT in said, errors


def test_the_home_of_a_group_is_refused_to_those_who_are_not_in_it(shared):
    said, errors = memo(MALLORY, 1, shared, groups=(TEAM + 1,))
    assert NOTHING in said
    assert "not used" in errors or "cannot be looked at" in errors


def test_naming_it_does_not_help_who_is_not_in_the_group(shared):
    for path in (shared, *shared.rglob("*")):
        path.chmod(path.stat().st_mode | 0o005)
    said, errors = memo(MALLORY, 1, shared)
    assert NOTHING in said
    assert f"is shared by the group {TEAM}, and you are not in it" in errors


def test_a_home_that_is_shared_by_its_modes_alone_is_refused(of):
    home = of(ALICE, "share", 0o2775, TEAM) / "home"
    home.mkdir()
    os.chown(home, ALICE, TEAM)
    home.chmod(0o2770)
    said, errors = memo(BOB, 1, home, **TEAMS)
    assert NOTHING in said
    assert "nectar init --shared-by" in errors


def test_who_may_only_read_reuses_and_changes_nothing(of):
    home = of(ALICE, "share", 0o755, TEAM) / "home"
    done = nectar(ALICE, "init", "--shared-by", TEAM, "--read-only", "--home", home, **TEAMS)
    assert done.returncode == 0, done.stderr
    assert KEPT in memo(ALICE, 1, home, **TEAMS)[0]
    said, errors = memo(BOB, 1, home, **TEAMS)
    assert REUSED in said, errors
    said, errors = memo(BOB, 2, home, **TEAMS)
    assert NOTHING in said
    assert errors == "", "readers are no failure"
    assert {path.stat().st_uid for path in home.rglob("*")} == {ALICE}
    done = nectar(BOB, "gc", "--all", "--apply", "--home", home, **TEAMS)
    assert done.returncode == 1
    assert "may only be read: you have no right to write there" in done.stderr
    assert nectar(BOB, "ls", "--home", home, **TEAMS).returncode == 0


def test_only_members_share_with_a_group(of):
    home = of(ALICE, "alice") / "home"
    done = nectar(ALICE, "init", "--shared-by", TEAM, "--home", home)
    assert done.returncode == 1
    assert "you are not in it" in done.stderr
    done = nectar(ALICE, "init", "--shared-by", "no such group", "--home", home)
    assert done.returncode == 1
    assert "no group" in done.stderr


# settings


@pytest.fixture
def work(of):
    """A folder of Bob below one that everybody may write to, as /tmp is."""
    of(0, "shared", 0o1777)
    return of(BOB, "shared/bob")


SETTINGS = "from nectar.settings import load_settings; s = load_settings(); print(s.home, s.job_log)"


@pytest.mark.parametrize("name", ["nectar.toml", "pyproject.toml"])
def test_settings_that_others_wrote_do_not_count(work, place, name):
    """Another user leaves a file above the folder where somebody works; it names a home full of pickles of theirs."""
    path = place / "shared" / name
    head = "[tool.nectar]\n" if name == "pyproject.toml" else ""
    path.write_text(f'{head}home = "{place}/foreign"\njob_log = 7\n')
    os.chown(path, MALLORY, MALLORY)
    done = as_user(BOB, sys.executable, "-c", SETTINGS, folder=work)
    assert "foreign" not in done.stdout
    assert done.stdout.split()[1] == "10000"
    assert done.stderr == f"the settings in {path} do not count: {path} belongs to user {MALLORY}\n"


@pytest.mark.parametrize("which", ["writable file", "writable folder", "foreign folder", "foreign link"])
def test_settings_that_others_could_have_written_do_not_count(work, place, of, which):
    folder = of(BOB, "shared/bob/project")
    path = folder / "nectar.toml"
    path.write_text("job_log = 7\n")
    os.chown(path, BOB, BOB)
    assert as_user(BOB, sys.executable, "-c", SETTINGS, folder=folder).stdout.split()[1] == "7"
    if which == "writable file":
        path.chmod(0o666)
    elif which == "writable folder":
        folder.chmod(0o777)
    elif which == "foreign folder":
        os.chown(folder, MALLORY, MALLORY)
    else:
        path.rename(work / "real.toml")
        (place / "shared" / "link").symlink_to(work / "real.toml")
        os.chown(place / "shared" / "link", MALLORY, MALLORY, follow_symlinks=False)
        path.symlink_to(place / "shared" / "link")
    done = as_user(BOB, sys.executable, "-c", SETTINGS, folder=folder)
    assert done.stdout.split()[1] == "10000"
    assert "do not count" in done.stderr


def test_settings_of_root_count(work, place):
    (place / "shared" / "nectar.toml").write_text("job_log = 7\n")
    assert as_user(BOB, sys.executable, "-c", SETTINGS, folder=work).stdout.split()[1] == "7"


def test_files_that_block_or_have_no_end_are_passed_by(work):
    os.mkfifo(work / "nectar.toml")
    (work / "pyproject.toml").symlink_to("/dev/zero")
    done = as_user(BOB, sys.executable, "-c", SETTINGS, folder=work)
    assert done.stdout.split()[1] == "10000"


def test_a_consent_that_others_could_have_written_does_not_count(work, place, of):
    config = of(BOB, "config")
    path = work / "nectar.toml"
    path.write_text(f'home = "{place}/elsewhere"\n')
    os.chown(path, BOB, BOB)
    run = {"folder": work, "XDG_CONFIG_HOME": str(config)}
    assert nectar(BOB, "trust", **run).returncode == 0
    assert "elsewhere" in as_user(BOB, sys.executable, "-c", SETTINGS, **run).stdout
    (config / "nectar" / "trusted").chmod(0o777)
    done = as_user(BOB, sys.executable, "-c", SETTINGS, **run)
    assert "elsewhere" not in done.stdout
    assert "does not count without your consent" in done.stderr


# links that others plant


@pytest.fixture
def precious(of):
    path = of(BOB, "bob", 0o700)
    (path / "precious").write_text("Bob's own file\n")
    os.chown(path / "precious", BOB, BOB)
    return path


def test_links_that_wait_in_an_open_folder_lead_nowhere(of, precious):
    home = of(BOB, "home", 0o2777)
    boot = open("/proc/sys/kernel/random/boot_id").read().strip() if os.path.exists("/proc/sys") else "x"  # noqa: SIM115
    names = ["catalog.db", "catalog.db-spare", "catalog.db-wal", f"verified-{boot}", "programs", "results", "rebuilds"]
    for name in names:
        target = precious / ("folder" if name in ("programs", "results", "rebuilds") else "precious")
        (home / name).symlink_to(target if name != "catalog.db-spare" else precious / "new")
        os.chown(home / name, MALLORY, MALLORY, follow_symlinks=False)
    said, _ = memo(BOB, 1, home)
    assert NOTHING in said
    assert [path.name for path in precious.iterdir()] == ["precious"]
    assert (precious / "precious").read_text() == "Bob's own file\n"


@pytest.mark.parametrize(
    "name", ["catalog.db", "catalog.db-spare", "catalog.db-wal", "programs", "results", "verified"]
)
def test_links_of_a_member_lead_nowhere(shared, precious, name):
    """Members trust each other with code; that is no reason to follow a link of theirs by accident."""
    boot = open("/proc/sys/kernel/random/boot_id").read().strip() if os.path.exists("/proc/sys") else "x"  # noqa: SIM115
    path = shared / (f"verified-{boot}" if name == "verified" else name)
    if path.exists():
        path.rename(shared / "aside")
    path.symlink_to(precious if name in ("programs", "results") else precious / "precious")
    os.chown(path, MALLORY, TEAM, follow_symlinks=False)
    memo(BOB, 5, shared, **TEAMS)
    assert [each.name for each in precious.iterdir()] == ["precious"]
    assert (precious / "precious").read_text() == "Bob's own file\n"


def test_a_link_within_the_store_of_a_group_is_not_followed(shared, precious):
    (folder,) = (shared / "results" / "data").iterdir()
    folder.rename(precious / folder.name)
    folder.symlink_to(precious / folder.name)
    os.chown(folder, MALLORY, TEAM, follow_symlinks=False)
    said, _ = memo(BOB, 1, shared, **TEAMS)
    assert REUSED not in said
    done = nectar(BOB, "gc", "--all", "--apply", "--home", shared, **TEAMS)
    assert done.returncode in (0, 1)
    assert len(list((precious / folder.name).rglob("*.json"))) == 1, "nothing is deleted through it"
